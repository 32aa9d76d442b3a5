"""Unicode normalization of texts before tokenization, and its automatic choice."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Literal, overload

import numpy as np
from typing_extensions import Self

from regard.data.tensors.special import SPECIALS
from regard.data.tokenizers.tables import TABLES
from regard.data.tokenizers.tokenizer import Tokenizer
from regard.data.tokenizers.tokenizer_choice import sample_texts

FORMS: dict[str, Literal["NFC", "NFD"]] = {"nfc": "NFC", "nfd": "NFD"}
HANGUL_SYLLABLES = (0xAC00, 0xD7A3)  # first and last code point; NFD splits them into jamo


class NormalizedTokenizer(Tokenizer):
    """A tokenizer that reads texts in a normalization form: nfc or nfd.

    Decoding returns text in NFC, so that what NFD decomposed is composed again.
    """

    def __init__(self, inner: Tokenizer, normalization: str) -> None:
        super().__init__(inner._names[len(SPECIALS) :])
        self.inner, self.normalization = inner, normalization
        self.kind = inner.kind
        self.whole_words, self.subwords = inner.whole_words, inner.subwords
        self.characters = inner.characters

    @classmethod
    def load(cls, model: Path, tokens: Sequence[str]) -> Self:
        raise NotImplementedError  # `load_tokenizer` loads the inner tokenizer

    def _form(self, text: str) -> str:
        return normalize(text, self.normalization)

    def tokenize(self, text: str) -> list[str]:
        return self.inner.tokenize(self._form(text))

    def encode(self, text: str) -> list[int]:
        return self.inner.encode(self._form(text))

    def encode_attached(self, text: str) -> list[int]:
        return self.inner.encode_attached(self._form(text))

    def encode_all(self, texts: Sequence[str]) -> list[list[int]]:
        return self.inner.encode_all([self._form(text) for text in texts])

    def encode_flat(self, texts: Sequence[str], end: int) -> tuple[np.ndarray, np.ndarray]:
        return self.inner.encode_flat([self._form(text) for text in texts], end)

    def join(self, tokens: Iterable[str]) -> str:
        return unicodedata.normalize("NFC", self.inner.join(tokens))

    def decode(self, ids: Sequence[int]) -> str:
        return unicodedata.normalize("NFC", self.inner.decode(ids))

    def normalize(self, text: str) -> str:
        return unicodedata.normalize("NFC", self.inner.normalize(self._form(text)))

    def metric_tokens(self, text: str) -> list[str]:
        return self.inner.metric_tokens(text)

    def token(self, id: int) -> str:
        return self.inner.token(id)

    def content(self) -> bytes:
        return self.inner.content() + self.normalization.encode()

    def save_model(self, path: Path) -> None:
        self.inner.save_model(path)


class NormalizedTexts(Sequence[str]):
    """Texts in a normalization form, normalized when they are read."""

    def __init__(self, texts: Sequence[str], normalization: str) -> None:
        self.texts, self.normalization = texts, normalization

    def __len__(self) -> int:
        return len(self.texts)

    def __iter__(self) -> Iterator[str]:
        return (normalize(text, self.normalization) for text in self.texts)

    @overload
    def __getitem__(self, at: int) -> str: ...
    @overload
    def __getitem__(self, at: slice) -> list[str]: ...
    def __getitem__(self, at: int | slice) -> str | list[str]:
        if isinstance(at, int):
            return normalize(self.texts[at], self.normalization)
        return [normalize(text, self.normalization) for text in self.texts[at]]


def normalize(text: str, normalization: str) -> str:
    """Return the text in a normalization form: nfc, nfd, or none (unchanged)."""
    return unicodedata.normalize(FORMS[normalization], text) if normalization in FORMS else text


def normalized(texts: Sequence[str], normalization: str) -> Sequence[str]:
    """Return the texts in a normalization form. Texts of large files stay on disk."""
    if normalization not in FORMS:
        return texts
    found = NormalizedTexts(texts, normalization)
    return list(found) if isinstance(texts, list) else found


def choose_normalization(kind: str, texts: Sequence[str]) -> tuple[str, str]:
    """Return the normalization form for a kind of tokenizer and these texts, and the reason.

    A character model of Korean reads letters (jamo): there are 11,172 syllables, but 67 letters.
    """
    if kind not in TABLES or not TABLES[kind].characters:
        return "none", "the tokens are not characters"
    tokenize = TABLES[kind]([]).tokenize
    tokens = [token for text in sample_texts(texts) for token in tokenize(text)]
    letters = [token for token in tokens if len(token) == 1 and token.isalpha()]
    first, last = HANGUL_SYLLABLES
    syllables = [letter for letter in letters if first <= ord(letter) <= last]
    if 2 * len(syllables) <= len(letters):
        return "none", "few letters are Hangul syllables"
    return "nfd", (
        f"{len(syllables) / len(letters):.0%} of the letters are Hangul syllables, "
        f"{len(set(syllables)):,} distinct; NFD splits them into jamo"
    )
