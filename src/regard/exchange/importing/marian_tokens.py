"""The vocabulary of a Marian model, and the row of each token in the embedding tables."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch import Tensor

from regard.core.errors import UserError
from regard.data.tensors.special import BOS, MASK, SPECIALS
from regard.exchange.importing.torch_checkpoint import Checkpoint, Metadata, read_object

NONE = -1  # the row of a token that the Marian model lacks


@dataclass(frozen=True)
class MarianTokens:
    """The vocabulary of a Marian model.

    tokens: all tokens except special ones. rows: the Marian row of each of our ids, or NONE.
    disabled: our ids that must never be output, because they have no row of their own.
    """

    tokens: list[str]
    rows: list[int]
    disabled: list[int]
    unnamed: int  # rows without a token

    def of(self, table: Tensor, otherwise: float = 0.0) -> Tensor:
        """Return the rows of a table (V, ...) in order of our ids; `otherwise` if missing."""
        ours = table.new_full((len(self.rows), *table.shape[1:]), otherwise)
        known = [id for id, row in enumerate(self.rows) if row != NONE]
        ours[known] = table[[self.rows[id] for id in known]]
        return ours


def read_tokens(checkpoint: Checkpoint, name: str, size: int, start: int | None) -> MarianTokens:
    """Read a vocabulary file such as vocab.json.

    size: the number of rows of the embedding table. start: the row of the start token of the
    decoder; None for a source vocabulary.
    """
    path = checkpoint.path(name)
    rows = read_object(path)
    wrong = [s for s, row in rows.items() if type(row) is not int or not 0 <= row < size]
    if wrong:
        raise UserError(
            f"{path}: {wrong[0]!r} has the id {rows[wrong[0]]!r}, but the embeddings of the model "
            f"have {size:,} rows; does this vocabulary belong to another model?"
        )
    pad, unk, eos = (_row(path, rows, special) for special in specials(checkpoint.tokenizer))
    first = [pad, unk, pad if start is None else start, eos, NONE]
    assert len(first) == len(SPECIALS)
    names = {row: token for token, row in rows.items()}
    rest = [row for row in range(size) if row not in first]
    disabled = [MASK] if first[BOS] not in (pad, unk, eos) else [BOS, MASK]
    tokens = [names.get(row, f"<row {row}>") for row in rest]
    unnamed = sum(row not in names for row in rest)
    return MarianTokens(tokens, [*first, *rest], disabled, unnamed)


def specials(tokenizer: Metadata) -> list[str]:
    """Return the tokenizer's PAD, UNK and EOS tokens."""
    names = {"pad_token": "<pad>", "unk_token": "<unk>", "eos_token": "</s>"}
    return [_written(tokenizer.get(key), default) for key, default in names.items()]


def _written(token: Any, default: str) -> str:
    """Return the text of a token in tokenizer_config.json, which is a string or an object."""
    token = token.get("content") if isinstance(token, dict) else token
    return token if isinstance(token, str) else default


def _row(path: Path, rows: Metadata, token: str) -> int:
    if token not in rows:
        raise UserError(f"{path}: the required token {token} is missing")
    return int(rows[token])


def added(tokenizer: Metadata) -> Sequence[str]:
    """Return the added tokens of the tokenizer, without special tokens."""
    tokens = tokenizer.get("added_tokens_decoder") or {}
    found = [_written(token, "") for token in tokens.values()]
    return [token for token in found if token and token not in specials(tokenizer)]
