"""Sentences of words, each encoded by a word id and by its characters.

A form is a distinct word as written. B sentences per batch, S words per sentence, U forms in a
batch, L characters per form, F forms in the data.
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
    """Sentences as rows of form indices.

    words: (F,), the word id of each form. chars: the character ids of each form, one row per form.
    sentences: rows of form indices. Form 0 is not a word: it represents masked words and padding.
    """

    words: np.ndarray
    chars: Ragged
    sentences: Ragged

    @property
    def lengths(self) -> np.ndarray:  # type: ignore[override]
        """Number of words per sentence: (N,)."""
        return self.sentences.lengths

    def pad(self, rows: np.ndarray) -> Padded:
        """Return sentences as (B, S, 2): word id, and index of the characters in `shared`."""
        return self.with_chars(self.sentences.pad(rows))

    def with_chars(self, sentences: Padded) -> Padded:
        """Return sentences (B, S) of form indices as (B, S, 2), as `pad` does."""
        indices = sentences.data.numpy()
        forms, inverse = np.unique(np.append(indices, 0), return_inverse=True)
        data = np.stack([self.words[indices], inverse[:-1].reshape(indices.shape)], -1)
        chars = self.chars.pad(forms)  # (U, L)
        shared = SharedRows(chars.data, chars.mask)
        return Padded(torch.from_numpy(data.astype(np.int64)), sentences.mask, shared=shared)

    def row(self, index: int) -> np.ndarray:
        return self.words[self.sentences.row(index)]

    def take(self, rows: np.ndarray) -> "WordRows":
        return WordRows(self.words, self.chars, self.sentences.take(rows))

    def update(self, digest: "hashlib._Hash") -> None:
        digest.update(np.ascontiguousarray(self.words).tobytes())
        self.chars.update(digest)
        self.sentences.update(digest)


def split_words(
    sentences: Sequence[Sequence[str]], words: TableTokenizer, chars: TableTokenizer
) -> WordRows:
    """Return sentences of words as form indices, with the word id and characters of each form."""
    forms: dict[str, int] = {}
    rows = [[forms.setdefault(word, len(forms) + 1) for word in row] for row in sentences]
    ids = np.array([MASK, *words.ids_of([word_key(form) for form in forms])], np.int64)
    spellings = [[BOS, *chars.ids_of(form), EOS] for form in forms]
    return WordRows(ids, Ragged.of([[BOS, MASK, EOS], *spellings]), Ragged.of(rows))


def word_key(form: str) -> str:
    """Return the vocabulary entry of a word: lowercase, with all digits replaced by 0."""
    lower = form.lower()
    return "".join("0" if c.isdigit() else c for c in lower) if not lower.isalpha() else lower
