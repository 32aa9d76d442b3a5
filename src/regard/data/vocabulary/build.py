"""The vocabulary of texts, and the one that a folder holds."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from regard.core.errors import UserError
from regard.data.vocabulary.vocabulary import TABLES, TableVocabulary, Vocabulary

KINDS = (*TABLES, "bpe", "unigram")
IMPORTED = {"marian": "; it comes with an imported model: train --from that"}


def build_vocabulary(kind: str, texts: Sequence[str], size: int | None = None) -> Vocabulary:
    """The vocabulary of the texts, most frequent symbols first, at most `size` besides specials.

    Without a size: all characters, all spaced symbols, 30,000 words, subwords by amount of text.
    """
    if kind not in KINDS:
        hint = IMPORTED.get(kind, "")
        raise UserError(f"symbols: {' '.join(KINDS)} expected, '{kind}' found{hint}")
    if size is not None and size < 1:
        raise UserError(f"vocabulary size: 1 or more expected, {size} found")
    return _class(kind).build(texts, size)


def load_vocabulary(folder: Path, name: str) -> Vocabulary:
    """The vocabulary that `save(folder, name)` wrote."""
    kind, symbols = _read(folder / f"{name}.json")
    return _class(kind).load(folder / f"{name}.model", symbols)


def load_table(folder: Path, name: str) -> TableVocabulary:
    """A vocabulary that is a plain list of symbols."""
    kind, symbols = _read(folder / f"{name}.json")
    if kind not in TABLES:
        raise UserError(f"{folder / name}.json: a list of symbols expected; copy the folder again")
    return TABLES[kind](symbols)


def _class(kind: str) -> type[Vocabulary]:
    """The class of a kind; sentencepiece is imported only for those who need it."""
    if kind in TABLES:
        return TABLES[kind]
    from regard.data.vocabulary import marian, subword

    pieces = (subword.BpeVocabulary, subword.UnigramVocabulary, marian.MarianVocabulary)
    return next(one for one in pieces if one.kind == kind)


def _read(path: Path) -> tuple[str, list[str]]:
    """The kind and the symbols of a saved vocabulary."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        kind, symbols = content["kind"], content["symbols"]
        known = kind in (*KINDS, *IMPORTED) and all(isinstance(symbol, str) for symbol in symbols)
    except FileNotFoundError:
        raise UserError(f"{path}: vocabulary missing; copy the whole model folder") from None
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UserError(f"{path}: vocabulary damaged ({error}); copy the folder again") from None
    if not known:
        raise UserError(f"{path}: vocabulary damaged or newer than this regard: kind '{kind}'")
    return kind, symbols
