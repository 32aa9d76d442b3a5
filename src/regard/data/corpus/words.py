"""Sentences of words, each word seen twice: as a whole and as its letters.

B rows, S words, U different words, L letters.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch

from regard.data.corpus.corpora import Corpus, TokenRows
from regard.data.tensors.padded import Batch, Padded, pad_flat
from regard.data.tensors.special import BOS, EOS, MASK
from regard.data.vocabulary.vocabulary import TableVocabulary


@dataclass(frozen=True)
class Forms:
    """The different words of some sentences. words: (F,) numbers; letters: F rows.

    The first one is no word: it stands for a word that is masked, and for padding.
    """

    words: np.ndarray
    letters: TokenRows

    def batch(self, sentences: Padded) -> tuple[Padded, Padded]:
        """Sentences (B, S) of places among the forms, as source (B, S, 2) and letters (U, L)."""
        places, mask = sentences.data.numpy(), sentences.mask
        forms, inverse = np.unique(np.append(places, 0), return_inverse=True)
        letters = pad_flat(
            self.letters.flat, self.letters.starts[forms], self.letters.lengths[forms]
        )
        data = np.stack([self.words[places], inverse[:-1].reshape(places.shape)], -1)
        return Padded(torch.from_numpy(data.astype(np.int64)), mask), letters


def split_words(
    sentences: Sequence[Sequence[str]], words: TableVocabulary, letters: TableVocabulary
) -> tuple[Forms, TokenRows]:
    """The different words of the sentences, and the sentences as places among them."""
    places: dict[str, int] = {}
    rows = [[places.setdefault(word, len(places) + 1) for word in row] for row in sentences]
    numbers = np.array([MASK, *words.number([word_key(form) for form in places])], np.int64)
    spelt = [[BOS, *letters.number(form), EOS] for form in places]
    return Forms(numbers, TokenRows.of([[BOS, MASK, EOS], *spelt])), TokenRows.of(rows)


def word_key(form: str) -> str:
    """A word as it is looked up: without case and with all digits alike; letters keep the rest."""
    lower = form.lower()
    return "".join("0" if c.isdigit() else c for c in lower) if not lower.isalpha() else lower


@dataclass(frozen=True)
class TagCorpus(Corpus):
    """Sentences with a tag for each word."""

    forms: Forms
    source: TokenRows
    target: TokenRows
    weight: np.ndarray | None = None

    @property
    def lengths(self) -> np.ndarray:
        """(N, 1): words of each sentence."""
        return self.source.lengths[:, None]

    def batch(self, rows: np.ndarray) -> Batch:
        """The sentences with these numbers as a batch."""
        sentences, target = (
            pad_flat(side.flat, side.starts[rows], side.lengths[rows])
            for side in (self.source, self.target)
        )
        source, letters = self.forms.batch(sentences)
        weight = None if self.weight is None else torch.from_numpy(self.weight[rows])
        return Batch(source, target, letters=letters, weight=weight)
