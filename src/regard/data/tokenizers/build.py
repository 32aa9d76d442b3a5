"""The vocabulary of texts, and the one that a folder holds."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from regard.core.errors import UserError
from regard.data.tokenizers.tokenizer import TABLES, TableTokenizer, Tokenizer

KINDS = (*TABLES, "bpe", "unigram")
IMPORTED = {"marian": "; it comes with an imported model: train --init-from that"}


def build_tokenizer(kind: str, texts: Sequence[str], size: int | None = None) -> Tokenizer:
    """The vocabulary of the texts, most frequent tokens first, at most `size` besides specials.

    Without a size: all characters, all spaced tokens, 30,000 words, subwords by amount of text.
    """
    if kind not in KINDS:
        hint = IMPORTED.get(kind, "")
        raise UserError(f"tokens: {' '.join(KINDS)} expected, '{kind}' found{hint}")
    if size is not None and size < 1:
        raise UserError(f"vocabulary size: 1 or more expected, {size} found")
    return _class(kind).build(texts, size)


def load_tokenizer(folder: Path, name: str) -> Tokenizer:
    """The vocabulary that `save(folder, name)` wrote."""
    kind, tokens = _read(folder / f"{name}.json")
    return _class(kind).load(folder / f"{name}.model", tokens)


def load_table(folder: Path, name: str) -> TableTokenizer:
    """A vocabulary that is a plain list of tokens."""
    kind, tokens = _read(folder / f"{name}.json")
    if kind not in TABLES:
        raise UserError(f"{folder / name}.json: a list of tokens expected; copy the folder again")
    return TABLES[kind](tokens)


def _class(kind: str) -> type[Tokenizer]:
    """The class of a kind; sentencepiece is imported only for those who need it."""
    if kind in TABLES:
        return TABLES[kind]
    from regard.data.tokenizers import marian, subword

    pieces = (subword.BpeTokenizer, subword.UnigramTokenizer, marian.MarianTokenizer)
    return next(one for one in pieces if one.kind == kind)


def _read(path: Path) -> tuple[str, list[str]]:
    """The kind and the tokens of a saved vocabulary."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        kind, tokens = content["kind"], content["tokens"]
        known = kind in (*KINDS, *IMPORTED) and all(isinstance(token, str) for token in tokens)
    except FileNotFoundError:
        raise UserError(f"{path}: vocabulary missing; copy the whole model folder") from None
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UserError(f"{path}: vocabulary damaged ({error}); copy the folder again") from None
    if not known:
        raise UserError(f"{path}: vocabulary damaged or newer than this regard: kind '{kind}'")
    return kind, tokens
