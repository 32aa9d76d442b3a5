"""The tokens of a Marian model: which row of its tables each of ours is."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch import Tensor

from regard.core.errors import UserError
from regard.data.tensors.special import BOS, MASK, SPECIALS
from regard.exchange.importing.torch_checkpoint import Checkpoint, Facts, read_object

NONE = -1  # the row of a token that the other model does not have


@dataclass(frozen=True)
class MarianTokens:
    """tokens: all but the special ones. rows: for each of our ids the row it was, or NONE.
    silent: our ids that must never count, since another id has the same row, or none."""

    tokens: list[str]
    rows: list[int]
    silent: list[int]
    unnamed: int  # rows for which the list has no token

    def of(self, table: Tensor, otherwise: float = 0.0) -> Tensor:
        """The rows of a table (V, ...) in our order."""
        ours = table.new_full((len(self.rows), *table.shape[1:]), otherwise)
        known = [id for id, row in enumerate(self.rows) if row != NONE]
        ours[known] = table[[self.rows[id] for id in known]]
        return ours


def read_tokens(checkpoint: Checkpoint, name: str, size: int, start: int | None) -> MarianTokens:
    """The tokens of a list such as vocab.json, for tables of `size` rows.

    start: the row that decoding begins with; of a source, None.
    """
    path = checkpoint.path(name)
    rows = read_object(path)
    wrong = [s for s, row in rows.items() if type(row) is not int or not 0 <= row < size]
    if wrong:
        raise UserError(
            f"{path}: {wrong[0]!r} has the number {rows[wrong[0]]!r}, but the tables of the model "
            f"have {size:,} rows; is it the list of another model?"
        )
    pad, unk, eos = (_row(path, rows, special) for special in specials(checkpoint.tokenizer))
    first = [pad, unk, pad if start is None else start, eos, NONE]
    assert len(first) == len(SPECIALS)
    names = {row: token for token, row in rows.items()}
    rest = [row for row in range(size) if row not in first]
    silent = [MASK] if first[BOS] not in (pad, unk, eos) else [BOS, MASK]
    tokens = [names.get(row, f"<row {row}>") for row in rest]
    unnamed = sum(row not in names for row in rest)
    return MarianTokens(tokens, [*first, *rest], silent, unnamed)


def specials(tokenizer: Facts) -> list[str]:
    """How the tokenizer writes padding, unknown pieces and the end."""
    names = {"pad_token": "<pad>", "unk_token": "<unk>", "eos_token": "</s>"}
    return [_written(tokenizer.get(key), usual) for key, usual in names.items()]


def _written(token: Any, usual: str) -> str:
    """A token of tokenizer_config.json: a text, or an object with one."""
    token = token.get("content") if isinstance(token, dict) else token
    return token if isinstance(token, str) else usual


def _row(path: Path, rows: Facts, token: str) -> int:
    if token not in rows:
        raise UserError(f"{path}: the token {token} is missing, which every Marian model has")
    return int(rows[token])


def added(tokenizer: Facts) -> Sequence[str]:
    """Tokens that were added to the tokenizer, other than those that every one has."""
    tokens = tokenizer.get("added_tokens_decoder") or {}
    found = [_written(token, "") for token in tokens.values()]
    return [token for token in found if token and token not in specials(tokenizer)]
