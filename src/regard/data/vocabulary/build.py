"""The vocabulary of texts, and the one that a folder holds."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from regard.core.errors import UserError
from regard.data.vocabulary.amount import amount_of
from regard.data.vocabulary.vocabulary import TABLES, TableVocabulary, Vocabulary

WORD_LIMIT = 30_000
KINDS = (*TABLES, "bpe", "unigram")


def build_vocabulary(kind: str, texts: Sequence[str], size: int | None = None) -> Vocabulary:
    """The vocabulary of the texts, most frequent symbols first, at most `size` besides specials.

    Without a size: all characters, all spaced symbols, 30,000 words, subwords by amount of text.
    """
    if kind not in KINDS:
        hint = "; it comes with an imported model: train --from that" if kind == "marian" else ""
        raise UserError(f"symbols: {' '.join(KINDS)} expected, '{kind}' found{hint}")
    if size is not None and size < 1:
        raise UserError(f"vocabulary size: 1 or more expected, {size} found")
    if kind not in TABLES:
        from regard.data.vocabulary.subword import train_subwords

        return train_subwords(kind, texts, size)

    table = TABLES[kind]
    cut = table([]).symbols
    if kind == "char":
        counts = amount_of(texts).characters
    else:
        counts = Counter(symbol for text in texts for symbol in cut(text))
    ordered = sorted(counts, key=lambda symbol: (-counts[symbol], symbol))
    limit = size or (WORD_LIMIT if kind == "word" else None)
    return table(ordered[:limit])


def load_vocabulary(folder: Path, name: str) -> Vocabulary:
    """The vocabulary that `save(folder, name)` wrote."""
    path = folder / f"{name}.json"
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        kind, symbols = content["kind"], content["symbols"]
        known = kind in (*KINDS, "marian") and all(isinstance(symbol, str) for symbol in symbols)
    except FileNotFoundError:
        raise UserError(f"{path}: vocabulary missing; copy the whole model folder") from None
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UserError(f"{path}: vocabulary damaged ({error}); copy the folder again") from None
    if not known:
        raise UserError(f"{path}: vocabulary damaged or newer than this regard: kind '{kind}'")
    if kind in TABLES:
        return TABLES[kind](symbols)

    # sentencepiece is imported only for those who need it
    from regard.data.vocabulary import marian, subword

    if kind == "marian":
        return marian.load_marian(folder / f"{name}.model", symbols)
    return subword.load_subwords(folder / f"{name}.model", kind, symbols)


def load_table(folder: Path, name: str) -> TableVocabulary:
    """A vocabulary that is a plain list of symbols."""
    vocabulary = load_vocabulary(folder, name)
    if not isinstance(vocabulary, TableVocabulary):
        raise UserError(f"{folder / name}.json: a list of symbols expected; copy the folder again")
    return vocabulary
