"""Vocabularies: text to ids and back."""

from __future__ import annotations

import itertools
import json
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np

from regard.core.files import write_json
from regard.data.tensors.special import SPECIALS, UNK
from regard.data.vocabulary.cut import GLUED, cut_chunk, glued
from regard.data.vocabulary.display_names import printable
from regard.data.vocabulary.pieces import close_rows

UNKNOWN_TEXT = "\u2047"  # what a reader sees in place of UNK: a double question mark


class Vocabulary(ABC):
    """Cuts text into symbols, numbers them, and puts numbers back together as text."""

    kind: str
    whole_words = False  # whether a word is never cut into several symbols

    @abstractmethod
    def __len__(self) -> int:
        """The number of ids, special ones included."""

    @abstractmethod
    def symbols(self, text: str) -> list[str]:
        """The text cut into symbols, known or not; as many as `encode` gives ids."""

    @abstractmethod
    def encode(self, text: str) -> list[int]:
        """The ids of the text, without BOS and EOS; UNK for what is not known."""

    @abstractmethod
    def decode(self, ids: Sequence[int]) -> str:
        """The text as the user would write it; PAD BOS EOS MASK are left out."""

    @abstractmethod
    def symbol(self, id: int) -> str:
        """The symbol of an id, as `symbols` gives it."""

    @abstractmethod
    def save(self, folder: Path, name: str) -> None:
        """Writes `name.json` (and `name.model` for subwords) into the folder."""

    def encode_glued(self, text: str) -> list[int]:
        """The ids of the text behind another one without a space; [] where they are the same."""
        return []

    def encode_all(self, texts: Sequence[str]) -> list[list[int]]:
        """The ids of many texts."""
        return [self.encode(text) for text in texts]

    def encode_flat(self, texts: Sequence[str], end: int) -> tuple[np.ndarray, np.ndarray]:
        """The ids of many texts one after the other, each closed with `end`; and their lengths."""
        rows = self.encode_all(texts)
        lengths = np.fromiter(map(len, rows), np.int64, len(rows))
        flat = np.fromiter(itertools.chain.from_iterable(rows), np.int32, int(lengths.sum()))
        return close_rows(flat, lengths, end)

    def content(self) -> bytes:
        """All that decides how texts are cut and numbered."""
        return json.dumps([self.kind, [self.symbol(id) for id in range(len(self))]]).encode()

    def normal(self, text: str) -> str:
        """The text as `decode` would write it: kinds that ignore runs of spaces lose them."""
        return text

    def name(self, id: int) -> str:
        """A printable name for an id, for plots and tables: white space and marks made visible."""
        return printable(self.symbol(id))

    def names(self) -> list[str]:
        """The names of all its symbols."""
        return [self.name(id) for id in range(len(self))]


class TableVocabulary(Vocabulary):
    """A vocabulary that is a plain list of symbols; the kinds differ in how they cut and join."""

    def __init__(self, symbols: Sequence[str]) -> None:
        self._names = [*SPECIALS, *symbols]
        self._ids = {symbol: id for id, symbol in enumerate(symbols, len(SPECIALS))}

    def __len__(self) -> int:
        return len(self._names)

    @abstractmethod
    def join(self, symbols: Iterable[str]) -> str:
        """The text that these symbols were cut from."""

    def symbol(self, id: int) -> str:
        return self._names[id]

    def normal(self, text: str) -> str:
        return self.join(self.symbols(text))

    def encode(self, text: str) -> list[int]:
        return self.number(self.symbols(text))

    def number(self, symbols: Iterable[str]) -> list[int]:
        """The ids of symbols that are cut already."""
        find = self._ids.get
        return [find(symbol, UNK) for symbol in symbols]

    def knows(self, symbol: str) -> bool:
        """Whether the symbol has an id of its own."""
        return symbol in self._ids

    def decode(self, ids: Sequence[int]) -> str:
        names = self._names
        return self.join(
            UNKNOWN_TEXT if id == UNK else names[id]
            for id in ids
            if id >= len(SPECIALS) or id == UNK
        )

    def save(self, folder: Path, name: str) -> None:
        content = {"kind": self.kind, "symbols": self._names[len(SPECIALS) :]}
        write_json(folder / f"{name}.json", content)


class CharVocabulary(TableVocabulary):
    """One symbol a code point; every text comes back exactly."""

    kind = "char"

    def symbols(self, text: str) -> list[str]:
        return list(text)

    def join(self, symbols: Iterable[str]) -> str:
        return "".join(symbols)


class SpaceVocabulary(TableVocabulary):
    """Symbols that the user has already set apart by spaces, such as phonemes.

    Runs of spaces count as one, and spaces at the ends are left out.
    """

    kind = "space"

    def symbols(self, text: str) -> list[str]:
        return [symbol for symbol in text.split(" ") if symbol]

    def join(self, symbols: Iterable[str]) -> str:
        return " ".join(symbols)


class WordVocabulary(TableVocabulary):
    """Words and single punctuation characters; the text comes back up to runs of white space.

    A symbol that follows another without a space carries a mark: "Go!" is "Go" and GLUED "!".
    A mark of the user's own is a symbol of length one, so the two cannot be confused.
    """

    kind = "word"
    whole_words = True

    def symbols(self, text: str) -> list[str]:
        return [symbol for chunk in text.split() for symbol in cut_chunk(chunk)]

    def encode_glued(self, text: str) -> list[int]:
        return self.number(glued(self.symbols(text)))

    def join(self, symbols: Iterable[str]) -> str:
        text = ""
        for symbol in symbols:
            glued = len(symbol) > 1 and symbol[0] == GLUED
            text += symbol[1:] if glued else " " + symbol
        return text[1:] if text.startswith(" ") else text


TABLES: dict[str, type[TableVocabulary]] = {
    "char": CharVocabulary,
    "word": WordVocabulary,
    "space": SpaceVocabulary,
}


def count_symbols(symbols: Iterable[str], size: int | None = None) -> SpaceVocabulary:
    """The vocabulary of symbols that are cut already, most frequent first, at most `size`."""
    counts = Counter(symbols)
    ordered = sorted(counts, key=lambda symbol: (-counts[symbol], symbol))
    return SpaceVocabulary(ordered[:size])
