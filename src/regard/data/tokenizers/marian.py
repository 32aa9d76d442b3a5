"""The vocabulary of an imported Marian model: pieces of sentencepiece, numbered by a list.

Marian cuts each side with a sentencepiece model of its own, but numbers the pieces of both by one
list. Special tokens come first here, as in every vocabulary.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from typing_extensions import Self

from regard.core.errors import UserError
from regard.data.tensors.special import SPECIALS, UNK
from regard.data.tokenizers.subword import SPACE, PieceTokenizer

OPEN, CLOSE = ">>", "<<"  # around the code of a language, as in >>fra<<


class MarianTokenizer(PieceTokenizer):
    """Pieces that the list does not hold are unknown. A code such as `>>fra<<` at the beginning
    of a text is one token. The text comes back as sentencepiece normalized it."""

    kind = "marian"

    def __init__(self, model: bytes, tokens: Sequence[str]) -> None:
        super().__init__(model, tokens)
        self._ids = {token: id for id, token in enumerate(tokens, len(SPECIALS))}

    def tokenize(self, text: str) -> list[str]:
        code, rest = split_code(text)
        pieces: list[str] = self._processor.encode(rest, out_type=str)
        return [*code, *pieces]

    def encode(self, text: str) -> list[int]:
        find = self._ids.get
        return [find(token, UNK) for token in self.tokenize(text)]

    def join(self, tokens: Iterable[str]) -> str:
        text: str = self._processor.decode_pieces(list(tokens))
        return text.replace(SPACE, " ").strip()

    def content(self) -> bytes:
        return super().content() + self._model

    @classmethod
    def load(cls, model: Path, tokens: Sequence[str]) -> Self:
        try:
            return cls(model.read_bytes(), tokens)
        except FileNotFoundError:
            raise UserError(
                f"{model}: subword model missing; copy the whole model folder"
            ) from None
        except (OSError, RuntimeError) as error:
            raise UserError(f"{model}: subword model damaged ({error}); copy it again") from None


def split_code(text: str) -> tuple[list[str], str]:
    """The code of a language at the beginning of a text, where there is one, and the rest."""
    end = text.find(CLOSE)
    if not text.startswith(OPEN) or end < 0:
        return [], text
    end += len(CLOSE)
    return [text[:end]], text[end:]
