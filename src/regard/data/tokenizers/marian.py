"""The tokenizer of an imported Marian model: sentencepiece with ids from a separate vocabulary.

Marian has one sentencepiece model for the source and one for the target, but a single vocabulary.
Here the special tokens come first, as in every vocabulary of regard.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from typing_extensions import Self

from regard.core.errors import UserError
from regard.core.files import read_bytes
from regard.data.tensors.special import SPECIALS, UNK
from regard.data.tokenizers.subword import SPACE, PieceTokenizer
from regard.data.tokenizers.tokenizer import COPY

OPEN, CLOSE = ">>", "<<"  # around a language code, as in >>fra<<


class MarianTokenizer(PieceTokenizer):
    """A sentencepiece tokenizer with a separate vocabulary; pieces outside of it become UNK.

    A language code such as `>>fra<<` at the start of a text is one token. Decoding returns the
    text as sentencepiece normalized it.
    """

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
            return cls(read_bytes(model), tokens)
        except FileNotFoundError:
            raise UserError(f"{model}: missing subword model", help=COPY) from None
        except (OSError, RuntimeError) as error:
            raise UserError(f"{model}: corrupted subword model ({error})", help=COPY) from None


def split_code(text: str) -> tuple[list[str], str]:
    """Return the language code at the start of a text (a list, [] if none), and the rest."""
    end = text.find(CLOSE)
    if not text.startswith(OPEN) or end < 0:
        return [], text
    end += len(CLOSE)
    return [text[:end]], text[end:]
