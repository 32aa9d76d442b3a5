"""The vocabulary of an imported Marian model: pieces of sentencepiece, numbered by a list.

Marian cuts each side with a sentencepiece model of its own, but numbers the pieces of both by one
list. Special symbols come first here, as in every vocabulary.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import sentencepiece

from regard.core.errors import UserError
from regard.core.files import write_bytes, write_json
from regard.data.tensors.special import SPECIALS, UNK
from regard.data.vocabulary.pieces import NOTHING, behind_nothing
from regard.data.vocabulary.vocabulary import UNKNOWN_TEXT, Vocabulary

SPACE = "\u2581"
OPEN, CLOSE = ">>", "<<"  # around the code of a language, as in >>fra<<


class MarianVocabulary(Vocabulary):
    """Pieces that the list does not hold are unknown. A code such as `>>fra<<` at the beginning
    of a text is one symbol. The text comes back as sentencepiece normalised it."""

    kind = "marian"

    def __init__(self, symbols: Sequence[str], model: bytes) -> None:
        self._model = model
        self._processor = sentencepiece.SentencePieceProcessor(model_proto=model)
        self._names = [*SPECIALS, *symbols]
        self._ids = {symbol: id for id, symbol in enumerate(symbols, len(SPECIALS))}

    def __len__(self) -> int:
        return len(self._names)

    def symbols(self, text: str) -> list[str]:
        code, rest = split_code(text)
        pieces: list[str] = self._processor.encode(rest, out_type=str)
        return [*code, *pieces]

    def encode(self, text: str) -> list[int]:
        find = self._ids.get
        return [find(symbol, UNK) for symbol in self.symbols(text)]

    def encode_glued(self, text: str) -> list[int]:
        return behind_nothing(self.symbols(NOTHING + text), self.encode(NOTHING + text))

    def decode(self, ids: Sequence[int]) -> str:
        pieces = [
            UNKNOWN_TEXT if id == UNK else self._names[id]
            for id in ids
            if id >= len(SPECIALS) or id == UNK
        ]
        text: str = self._processor.decode_pieces(pieces)
        return text.replace(SPACE, " ").strip()

    def symbol(self, id: int) -> str:
        return self._names[id]

    def content(self) -> bytes:
        return super().content() + self._model

    def save(self, folder: Path, name: str) -> None:
        write_bytes(folder / f"{name}.model", self._model)
        content = {"kind": self.kind, "symbols": self._names[len(SPECIALS) :]}
        write_json(folder / f"{name}.json", content)


def split_code(text: str) -> tuple[list[str], str]:
    """The code of a language at the beginning of a text, where there is one, and the rest."""
    end = text.find(CLOSE)
    if not text.startswith(OPEN) or end < 0:
        return [], text
    end += len(CLOSE)
    return [text[:end]], text[end:]


def load_marian(path: Path, symbols: Sequence[str]) -> MarianVocabulary:
    """The vocabulary whose sentencepiece model lies at `path`."""
    try:
        return MarianVocabulary(symbols, path.read_bytes())
    except FileNotFoundError:
        raise UserError(f"{path}: subword model missing; copy the whole model folder") from None
    except (OSError, RuntimeError) as error:
        raise UserError(f"{path}: subword model damaged ({error}); copy it again") from None
