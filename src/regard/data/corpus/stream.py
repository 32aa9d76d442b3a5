"""Plain text as one long sequence of tokens, read in windows.

A window is a span of consecutive tokens that a model reads at once. N is the number of tokens of
the text, B of windows per batch, T of tokens per window.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from regard.data.corpus.corpora import Corpus, SourceCorpus
from regard.data.corpus.ragged import Ragged
from regard.data.corpus.words import split_words
from regard.data.tensors.padded import Batch, pad_flat
from regard.data.tensors.special import EOS
from regard.data.tokenizers.tokenizer import TableTokenizer


@dataclass(frozen=True)
class StreamCorpus(Corpus):
    """Concatenated documents, each followed by EOS, read in windows.

    side: one row of tokens per document. context: maximum window length. sequential: whether an
    epoch reads the text from left to right, so that a model can carry its state over. Each row of
    a batch then continues the same row of the previous batch. Otherwise windows are shuffled, with
    a new random offset per epoch. overlap: tokens at the start of an evaluation window that are
    context only and not scored.
    """

    side: Ragged
    context: int
    sequential: bool
    overlap: int = 0

    @property
    def lengths(self) -> np.ndarray:
        """Number of tokens per document, EOS included: (documents, 1)."""
        return self.side.lengths[:, None]

    def longest(self) -> list[int]:
        """Return the maximum window length."""
        return [self.context]

    def order(self, tokens: int, seed: int, epoch: int) -> list[np.ndarray]:
        """Return the batches of an epoch as arrays (B, 2): start and end of each window."""
        N, T = len(self.side.flat), min(self.context, len(self.side.flat))
        rows = max(1, min(tokens // self.context, N // T))
        if self.sequential:
            length = N // rows
            offsets = np.arange(rows) * length
            steps = range(0, length, T)
            return [np.stack([offsets + s, offsets + min(s + T, length)], 1) for s in steps]
        random = np.random.default_rng([seed, epoch])
        first = int(random.integers(min(T, N - T + 1)))
        starts = random.permutation(np.arange(first, N - T + 1, T))
        spans = np.stack([starts, starts + T], 1)
        return np.split(spans, range(rows, len(spans), rows))

    def batch(self, rows: np.ndarray) -> Batch:
        """Return the windows with these starts and ends (B, 2), and the token before each."""
        starts, ends = rows[:, 0], rows[:, 1]
        target = pad_flat(self.side.flat, starts, ends - starts)
        before = np.where(starts > 0, self.side.flat[starts - 1], EOS).astype(np.int64)
        return Batch(target=target, before=torch.from_numpy(before))

    def sample(self, batch_size: int, max_batches: int) -> list[Batch]:
        """Return at most `max_batches` batches of windows, the same at each call."""
        return [
            self.batch(rows) for rows in self.order(batch_size * self.context, 0, 0)[:max_batches]
        ]

    def windows(self) -> Iterator[np.ndarray]:
        """Yield the evaluation windows of each document, (n, 3): start, first scored token, end."""
        step = self.context - self.overlap
        for start, length in zip(self.side.starts, self.side.lengths, strict=True):
            scored = np.arange(0, length, step)
            starts, ends = np.maximum(scored - self.overlap, 0), np.minimum(scored + step, length)
            yield np.stack([starts, scored, ends], 1) + start

    def eval_batch(self, rows: np.ndarray) -> Batch:
        """Return evaluation windows (B, 3) as a batch; mask the context that is not scored."""
        batch = self.batch(rows[:, [0, 2]])
        assert batch.target is not None
        positions = torch.arange(batch.target.mask.shape[1])
        skip = torch.from_numpy(rows[:, 1] - rows[:, 0])[:, None]
        return batch._replace(
            target=batch.target._replace(mask=batch.target.mask & (positions >= skip))
        )


class MaskedCorpus(SourceCorpus):
    """Windows of plain text for masked language modeling, one window per example."""

    def batch(self, rows: np.ndarray) -> Batch:
        """Return the windows with these indices as a batch whose target is the source."""
        source = self.source.pad(rows)
        return Batch(source, source.tokens())


def split_rows(rows: Sequence[Sequence[Any]], length: int) -> list[Sequence[Any]]:
    """Split each row into pieces of at most `length` elements."""
    return [row[at : at + length] for row in rows for at in range(0, len(row), length)]


def masked_words(
    documents: Sequence[str], words: TableTokenizer, chars: TableTokenizer, context: int
) -> MaskedCorpus:
    """Return a corpus of whitespace-separated words, with at most `context` words per window."""
    sentences = [s for document in documents for s in split_rows([document.split()], context)]
    return MaskedCorpus(split_words([s for s in sentences if s], words, chars))
