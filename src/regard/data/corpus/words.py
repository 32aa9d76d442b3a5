"""Sentences of words, each word seen twice: as a whole and as its letters.

B rows, S words, U different words, L letters, F forms.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch

from regard.data.corpus.ragged import Ragged, Rows
from regard.data.tensors.padded import Padded, SharedRows
from regard.data.tensors.special import BOS, EOS, MASK
from regard.data.tokenizers.tokenizer import TableTokenizer


@dataclass(frozen=True)
class WordRows(Rows):
    """Sentences as places among the different words (forms) that they have.

    words: (F,), the number of each form; letters: F rows; sentences: rows of places. The first
    form is no word: it stands for a word that is masked, and for padding.
    """

    words: np.ndarray
    chars: Ragged
    sentences: Ragged

    @property
    def lengths(self) -> np.ndarray:  # type: ignore[override]
        """(N,): words of each sentence."""
        return self.sentences.lengths

    def pad(self, rows: np.ndarray) -> Padded:
        """(B, S, 2): of each word its number, and its place among the letters that rows share."""
        return self.spelled(self.sentences.pad(rows))

    def spelled(self, sentences: Padded) -> Padded:
        """Sentences (B, S) of places among the forms, with the letters of those they have."""
        places = sentences.data.numpy()
        forms, inverse = np.unique(np.append(places, 0), return_inverse=True)
        data = np.stack([self.words[places], inverse[:-1].reshape(places.shape)], -1)
        spelled = self.chars.pad(forms)  # (U, L)
        shared = SharedRows(spelled.data, spelled.mask)
        return Padded(torch.from_numpy(data.astype(np.int64)), sentences.mask, shared=shared)

    def row(self, number: int) -> np.ndarray:
        return self.words[self.sentences.row(number)]

    def take(self, rows: np.ndarray) -> "WordRows":
        return WordRows(self.words, self.chars, self.sentences.take(rows))

    def update(self, mark: "hashlib._Hash") -> None:
        mark.update(np.ascontiguousarray(self.words).tobytes())
        self.chars.update(mark)
        self.sentences.update(mark)


def split_words(
    sentences: Sequence[Sequence[str]], words: TableTokenizer, chars: TableTokenizer
) -> WordRows:
    """Sentences as places among the different words that they have."""
    places: dict[str, int] = {}
    rows = [[places.setdefault(word, len(places) + 1) for word in row] for row in sentences]
    numbers = np.array([MASK, *words.number([word_key(form) for form in places])], np.int64)
    spelled = [[BOS, *chars.number(form), EOS] for form in places]
    return WordRows(numbers, Ragged.of([[BOS, MASK, EOS], *spelled]), Ragged.of(rows))


def word_key(form: str) -> str:
    """A word as it is looked up: without case and with all digits alike; letters keep the rest."""
    lower = form.lower()
    return "".join("0" if c.isdigit() else c for c in lower) if not lower.isalpha() else lower
