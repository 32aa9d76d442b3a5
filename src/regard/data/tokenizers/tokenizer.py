"""The interface of tokenizers, and tokenizers for characters, words and spaced tokens."""

from __future__ import annotations

import itertools
import json
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import ClassVar

import numpy as np
from typing_extensions import Self

from regard.core.files import write_json
from regard.data.tensors.special import SPECIALS, UNK
from regard.data.tokenizers.amount import amount_of
from regard.data.tokenizers.display_names import NameCache, printable
from regard.data.tokenizers.split import ATTACHED, mark_attached, split_chunk

MAX_WORDS = 30_000  # default vocabulary size of WordTokenizer
COPY = "copy the complete model folder again"
UNKNOWN_TEXT = "\u2047"  # shown instead of UNK: a double question mark


class Tokenizer(ABC):
    """Base class of tokenizers: split text into tokens, encode it as ids, decode ids."""

    kind: str
    whole_words: bool = False  # whether a word is always one token
    characters: bool = False  # whether tokens are characters
    subwords: bool = False  # whether tokens are words or pieces of words
    normalization: str = "none"  # Unicode normalization form of the texts: nfc, nfd or none

    def __init__(self, tokens: Sequence[str]) -> None:
        self._names = [*SPECIALS, *tokens]
        self._printable = NameCache(self.name)

    @classmethod
    def build(cls, texts: Sequence[str], size: int | None) -> Self:
        """Return a tokenizer for the texts, with at most `size` tokens plus special tokens."""
        raise NotImplementedError  # imported tokenizers cannot be built from texts

    @classmethod
    @abstractmethod
    def load(cls, model: Path, tokens: Sequence[str]) -> Self:
        """Return the tokenizer with these saved tokens. model: path of the subword model."""

    @abstractmethod
    def tokenize(self, text: str) -> list[str]:
        """Return the tokens of the text, one per id of `encode`, unknown tokens included."""

    @abstractmethod
    def encode(self, text: str) -> list[int]:
        """Return the ids of the text, without BOS and EOS; UNK for unknown tokens."""

    @abstractmethod
    def join(self, tokens: Iterable[str]) -> str:
        """Return the text that these tokens form, the inverse of `tokenize`."""

    def __len__(self) -> int:
        """Return the number of ids, special tokens included."""
        return len(self._names)

    def token(self, id: int) -> str:
        """Return the token with this id, as `tokenize` returns it."""
        return self._names[id]

    def decode(self, ids: Sequence[int]) -> str:
        """Return the text of ids, without PAD, BOS, EOS and MASK."""
        names = self._names
        if len(ids) and min(ids) >= len(SPECIALS):  # the usual case, and faster
            return self.join(map(names.__getitem__, ids))
        return self.join(
            UNKNOWN_TEXT if id == UNK else names[id]
            for id in ids
            if id >= len(SPECIALS) or id == UNK
        )

    def save(self, folder: Path, name: str) -> None:
        """Write `name.json` (and `name.model` for subwords) to the folder."""
        self.save_model(folder / f"{name}.model")
        tokens = self._names[len(SPECIALS) :]
        content = {"kind": self.kind, "normalization": self.normalization, "tokens": tokens}
        write_json(folder / f"{name}.json", content)

    def save_model(self, path: Path) -> None:
        """Write the subword model, if there is one."""
        return

    def encode_attached(self, text: str) -> list[int]:
        """Return the ids of the text if it follows other text without a space.

        Return [] if they cannot differ from `encode(text)`.
        """
        return []

    def encode_all(self, texts: Sequence[str]) -> list[list[int]]:
        """Return the ids of many texts."""
        return [self.encode(text) for text in texts]

    def encode_flat(self, texts: Sequence[str], end: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the concatenated ids of texts, each followed by `end`, and the lengths (N,)."""
        rows = self.encode_all(texts)
        lengths = np.fromiter((len(row) + 1 for row in rows), np.int64, len(rows))
        flat = itertools.chain.from_iterable((*row, end) for row in rows)
        return np.fromiter(flat, np.int32, int(lengths.sum())), lengths

    def content(self) -> bytes:
        """Return bytes that determine the ids of any text, for cache keys."""
        return json.dumps([self.kind, [self.token(id) for id in range(len(self))]]).encode()

    def normalize(self, text: str) -> str:
        """Return the text as `decode` would write it, e.g. without repeated spaces."""
        return text

    def metric_tokens(self, text: str) -> list[str]:
        """Return the tokens of a text that error rates count, without Unicode normalization."""
        return self.tokenize(text)

    def name(self, id: int) -> str:
        """Return a printable name of the token with this id, e.g. with visible whitespace."""
        return printable(self.token(id))

    def names_of(self, ids: Iterable[int]) -> tuple[str, ...]:
        """Return the printable names of these ids."""
        return tuple(map(self._printable.__getitem__, ids))

    def names(self) -> list[str]:
        """Return the printable names of all tokens, by id."""
        return [self.name(id) for id in range(len(self))]


class TableTokenizer(Tokenizer):
    """A tokenizer whose vocabulary is a list of tokens. Subclasses define how text is split."""

    default_size: ClassVar[int | None] = None  # maximum number of tokens by default

    def __init__(self, tokens: Sequence[str]) -> None:
        super().__init__(tokens)
        self._ids = {token: id for id, token in enumerate(tokens, len(SPECIALS))}

    @classmethod
    def build(cls, texts: Sequence[str], size: int | None) -> Self:
        """Return a tokenizer with the most frequent tokens of the texts, at most `size`."""
        return cls(by_frequency(cls.count(texts))[: size or cls.default_size])

    @classmethod
    def count(cls, texts: Sequence[str]) -> Counter[str]:
        """Return the number of occurrences of each token in the texts."""
        tokenize = cls([]).tokenize
        return Counter(token for text in texts for token in tokenize(text))

    @classmethod
    def load(cls, model: Path, tokens: Sequence[str]) -> Self:
        return cls(tokens)

    def normalize(self, text: str) -> str:
        return self.join(self.tokenize(text))

    def encode(self, text: str) -> list[int]:
        return self.ids_of(self.tokenize(text))

    def encode_all(self, texts: Sequence[str]) -> list[list[int]]:
        find = self._ids.get
        return [[find(token, UNK) for token in self.tokenize(text)] for text in texts]

    def ids_of(self, tokens: Iterable[str]) -> list[int]:
        """Return the ids of tokens, UNK for unknown tokens."""
        find = self._ids.get
        return [find(token, UNK) for token in tokens]

    def knows(self, token: str) -> bool:
        """Return whether the token is in the vocabulary."""
        return token in self._ids


class CharTokenizer(TableTokenizer):
    """A tokenizer with one token per Unicode code point; decoding is exact."""

    kind = "char"
    characters = True

    @classmethod
    def count(cls, texts: Sequence[str]) -> Counter[str]:
        return amount_of(texts).characters

    def tokenize(self, text: str) -> list[str]:
        return list(text)

    def join(self, tokens: Iterable[str]) -> str:
        return "".join(tokens)


class WhitespaceTokenizer(TableTokenizer):
    """A tokenizer for data whose tokens are separated by spaces, such as phonemes.

    Repeated spaces count as one; leading and trailing spaces are ignored.
    """

    kind = "whitespace"

    def tokenize(self, text: str) -> list[str]:
        return [token for token in text.split(" ") if token]

    def join(self, tokens: Iterable[str]) -> str:
        return " ".join(tokens)


class WordTokenizer(TableTokenizer):
    """A tokenizer for words and punctuation; decoding is exact up to repeated whitespace.

    A token that follows the previous token without a space starts with the character ATTACHED:
    "Go!" becomes "Go" and ATTACHED + "!". If the text itself contains this character, it is a
    token of length one, so it is not mistaken for the prefix.
    """

    kind = "word"
    whole_words = True
    subwords = True
    default_size = MAX_WORDS

    def tokenize(self, text: str) -> list[str]:
        return [token for chunk in text.split() for token in split_chunk(chunk)]

    def encode_attached(self, text: str) -> list[int]:
        return self.ids_of(mark_attached(self.tokenize(text)))

    def join(self, tokens: Iterable[str]) -> str:
        text = ""
        for token in tokens:
            attached = len(token) > 1 and token[0] == ATTACHED
            text += token[1:] if attached else " " + token
        return text[1:] if text.startswith(" ") else text


def count_tokens(tokens: Iterable[str], size: int | None = None) -> WhitespaceTokenizer:
    """Return a tokenizer with the most frequent of these tokens, at most `size`."""
    return WhitespaceTokenizer(by_frequency(Counter(tokens))[:size])


def by_frequency(counts: Counter[str]) -> list[str]:
    """Return the distinct tokens, most frequent first, ties in alphabetical order."""
    return sorted(counts, key=lambda token: (-counts[token], token))
