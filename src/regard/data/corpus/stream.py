"""Running text as one long row of tokens, cut into windows.

N tokens, B windows side by side, T length of a window.
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
    """Documents one after the other, each closed with EOS, read through windows.

    sequential: each epoch goes through the text from left to right, in as many places at once as
    a batch has rows, so that what a model remembers can be carried on. Otherwise windows come in
    random order, cut anew in each epoch. overlap: tokens of a window that in evaluation are only
    read, since the window before has predicted them.
    """

    side: Ragged
    context: int
    sequential: bool
    overlap: int = 0

    @property
    def lengths(self) -> np.ndarray:
        """(documents, 1): tokens of each, EOS included."""
        return self.side.lengths[:, None]

    def longest(self) -> list[int]:
        """The context: no window is longer, however long the documents."""
        return [self.context]

    def order(self, tokens: int, seed: int, epoch: int) -> list[np.ndarray]:
        """The batches of an epoch, as rows (B, 2): the beginning and the end of each window."""
        N, T = len(self.side.flat), min(self.context, len(self.side.flat))
        rows = max(1, min(tokens // self.context, N // T))
        if self.sequential:
            length = N // rows
            places = np.arange(rows) * length
            starts = range(0, length, T)
            return [np.stack([places + s, places + min(s + T, length)], 1) for s in starts]
        random = np.random.default_rng([seed, epoch])
        first = int(random.integers(min(T, N - T + 1)))
        begins = random.permutation(np.arange(first, N - T + 1, T))
        spans = np.stack([begins, begins + T], 1)
        return np.split(spans, range(rows, len(spans), rows))

    def batch(self, rows: np.ndarray) -> Batch:
        """The windows `flat[begin:end]` as a batch; `before` is the token before each."""
        begins, ends = rows[:, 0], rows[:, 1]
        target = pad_flat(self.side.flat, begins, ends - begins)
        before = np.where(begins > 0, self.side.flat[begins - 1], EOS).astype(np.int64)
        return Batch(target=target, before=torch.from_numpy(before))

    def sample(self, batch_size: int, most: int) -> list[Batch]:
        """Batches of random windows, at most `most`."""
        return [self.batch(rows) for rows in self.order(batch_size * self.context, 0, 0)[:most]]

    def windows(self) -> Iterator[np.ndarray]:
        """Windows for evaluation, document by document: (n, 3) begin, where it counts, end."""
        step = self.context - self.overlap
        for start, length in zip(self.side.starts, self.side.lengths, strict=True):
            counted = np.arange(0, length, step)
            begins, ends = np.maximum(counted - self.overlap, 0), np.minimum(counted + step, length)
            yield np.stack([begins, counted, ends], 1) + start

    def scored(self, rows: np.ndarray) -> Batch:
        """Windows of `windows` as a batch in which only what counts is unmasked."""
        batch = self.batch(rows[:, [0, 2]])
        assert batch.target is not None
        places = torch.arange(batch.target.mask.shape[1])
        skip = torch.from_numpy(rows[:, 1] - rows[:, 0])[:, None]
        return batch._replace(
            target=batch.target._replace(mask=batch.target.mask & (places >= skip))
        )


class MaskedCorpus(SourceCorpus):
    """Windows of running text, in which tokens will be masked; each an example of its own."""

    def batch(self, rows: np.ndarray) -> Batch:
        """The windows with these numbers; the target is what stands there."""
        source = self.source.pad(rows)
        return Batch(source, source.tokens())


def cut(rows: Sequence[Sequence[Any]], length: int) -> list[Sequence[Any]]:
    """Rows in pieces of at most `length`."""
    return [row[at : at + length] for row in rows for at in range(0, len(row), length)]


def masked_words(
    documents: Sequence[str], words: TableTokenizer, chars: TableTokenizer, context: int
) -> MaskedCorpus:
    """Documents of words between spaces, each word as a whole and as its letters."""
    sentences = [s for document in documents for s in cut([document.split()], context)]
    return MaskedCorpus(split_words([s for s in sentences if s], words, chars))
