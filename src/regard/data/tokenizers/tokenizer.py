"""Vocabularies: text to ids and back."""

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
from regard.data.tokenizers.display_names import printable
from regard.data.tokenizers.split import ATTACHED, mark_attached, split_chunk

WORD_LIMIT = 30_000
UNKNOWN_TEXT = "\u2047"  # what a reader sees in place of UNK: a double question mark


class Tokenizer(ABC):
    """Cuts text into tokens, numbers them, and puts numbers back together as text."""

    kind: ClassVar[str]
    whole_words: ClassVar[bool] = False  # whether a word is never cut into several tokens
    characters: ClassVar[bool] = False  # whether tokens are characters
    subwords: ClassVar[bool] = False  # whether tokens are words or pieces of words

    def __init__(self, tokens: Sequence[str]) -> None:
        self._names = [*SPECIALS, *tokens]

    @classmethod
    def build(cls, texts: Sequence[str], size: int | None) -> Self:
        """The vocabulary of the texts, at most `size` tokens besides specials."""
        raise NotImplementedError  # an imported one cannot be made of texts

    @classmethod
    @abstractmethod
    def load(cls, model: Path, tokens: Sequence[str]) -> Self:
        """The vocabulary of these saved tokens; model: the file of subwords beside them."""

    @abstractmethod
    def tokenize(self, text: str) -> list[str]:
        """The text cut into tokens, known or not; as many as `encode` gives ids."""

    @abstractmethod
    def encode(self, text: str) -> list[int]:
        """The ids of the text, without BOS and EOS; UNK for what is not known."""

    @abstractmethod
    def join(self, tokens: Iterable[str]) -> str:
        """The text that these tokens were cut from."""

    def __len__(self) -> int:
        """The number of ids, special ones included."""
        return len(self._names)

    def token(self, id: int) -> str:
        """The token of an id, as `tokens` gives it."""
        return self._names[id]

    def decode(self, ids: Sequence[int]) -> str:
        """The text as the user would write it; PAD BOS EOS MASK are left out."""
        names = self._names
        return self.join(
            UNKNOWN_TEXT if id == UNK else names[id]
            for id in ids
            if id >= len(SPECIALS) or id == UNK
        )

    def save(self, folder: Path, name: str) -> None:
        """Writes `name.json` (and `name.model` for subwords) into the folder."""
        content = {"kind": self.kind, "tokens": self._names[len(SPECIALS) :]}
        write_json(folder / f"{name}.json", content)

    def encode_attached(self, text: str) -> list[int]:
        """The ids of the text behind another one without a space; [] where they are the same."""
        return []

    def encode_all(self, texts: Sequence[str]) -> list[list[int]]:
        """The ids of many texts."""
        return [self.encode(text) for text in texts]

    def encode_flat(self, texts: Sequence[str], end: int) -> tuple[np.ndarray, np.ndarray]:
        """The ids of many texts one after the other, each closed with `end`; and their lengths."""
        rows = self.encode_all(texts)
        lengths = np.fromiter((len(row) + 1 for row in rows), np.int64, len(rows))
        closed = itertools.chain.from_iterable((*row, end) for row in rows)
        return np.fromiter(closed, np.int32, int(lengths.sum())), lengths

    def content(self) -> bytes:
        """All that decides how texts are cut and numbered."""
        return json.dumps([self.kind, [self.token(id) for id in range(len(self))]]).encode()

    def normal(self, text: str) -> str:
        """The text as `decode` would write it: kinds that ignore runs of spaces lose them."""
        return text

    def name(self, id: int) -> str:
        """A printable name for an id, for plots and tables: white space and marks made visible."""
        return printable(self.token(id))

    def names(self) -> list[str]:
        """The names of all its tokens."""
        return [self.name(id) for id in range(len(self))]


class TableTokenizer(Tokenizer):
    """A vocabulary that is a plain list of tokens; the kinds differ in how they cut and join."""

    limit: ClassVar[int | None] = None  # tokens of a vocabulary whose size is left open

    def __init__(self, tokens: Sequence[str]) -> None:
        super().__init__(tokens)
        self._ids = {token: id for id, token in enumerate(tokens, len(SPECIALS))}

    @classmethod
    def build(cls, texts: Sequence[str], size: int | None) -> Self:
        """The most frequent tokens first."""
        return cls(by_frequency(cls.count(texts))[: size or cls.limit])

    @classmethod
    def count(cls, texts: Sequence[str]) -> Counter[str]:
        """How often each token occurs."""
        cut = cls([]).tokenize
        return Counter(token for text in texts for token in cut(text))

    @classmethod
    def load(cls, model: Path, tokens: Sequence[str]) -> Self:
        return cls(tokens)

    def normal(self, text: str) -> str:
        return self.join(self.tokenize(text))

    def encode(self, text: str) -> list[int]:
        return self.number(self.tokenize(text))

    def encode_all(self, texts: Sequence[str]) -> list[list[int]]:
        find = self._ids.get
        return [[find(token, UNK) for token in self.tokenize(text)] for text in texts]

    def number(self, tokens: Iterable[str]) -> list[int]:
        """The ids of tokens that are cut already."""
        find = self._ids.get
        return [find(token, UNK) for token in tokens]

    def knows(self, token: str) -> bool:
        """Whether the token has an id of its own."""
        return token in self._ids


class CharTokenizer(TableTokenizer):
    """One token a code point; every text comes back exactly."""

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
    """Tokens that the user has already set apart by spaces, such as phonemes.

    Runs of spaces count as one, and spaces at the ends are left out.
    """

    kind = "whitespace"

    def tokenize(self, text: str) -> list[str]:
        return [token for token in text.split(" ") if token]

    def join(self, tokens: Iterable[str]) -> str:
        return " ".join(tokens)


class WordTokenizer(TableTokenizer):
    """Words and single punctuation characters; the text comes back up to runs of white space.

    A token that follows another without a space carries a mark: "Go!" is "Go" and ATTACHED "!".
    A mark of the user's own is a token of length one, so the two cannot be confused.
    """

    kind = "word"
    whole_words = True
    subwords = True
    limit = WORD_LIMIT

    def tokenize(self, text: str) -> list[str]:
        return [token for chunk in text.split() for token in split_chunk(chunk)]

    def encode_attached(self, text: str) -> list[int]:
        return self.number(mark_attached(self.tokenize(text)))

    def join(self, tokens: Iterable[str]) -> str:
        text = ""
        for token in tokens:
            attached = len(token) > 1 and token[0] == ATTACHED
            text += token[1:] if attached else " " + token
        return text[1:] if text.startswith(" ") else text


TABLES: dict[str, type[TableTokenizer]] = {
    table.kind: table for table in (CharTokenizer, WordTokenizer, WhitespaceTokenizer)
}


def count_tokens(tokens: Iterable[str], size: int | None = None) -> WhitespaceTokenizer:
    """The vocabulary of tokens that are cut already, most frequent first, at most `size`."""
    return WhitespaceTokenizer(by_frequency(Counter(tokens))[:size])


def by_frequency(counts: Counter[str]) -> list[str]:
    """Tokens, the most frequent first; of equally frequent ones in the order of the alphabet."""
    return sorted(counts, key=lambda token: (-counts[token], token))
