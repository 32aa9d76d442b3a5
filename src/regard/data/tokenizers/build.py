"""Build a tokenizer from texts, or load one from a folder."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from regard.core.errors import UserError
from regard.core.files import parse_json, read_bytes
from regard.data.tokenizers.normalized import FORMS, NormalizedTokenizer, normalized
from regard.data.tokenizers.tables import TABLES
from regard.data.tokenizers.tokenizer import COPY, TableTokenizer, Tokenizer

KINDS = (*TABLES, "bpe", "unigram")
IMPORTED = {"marian": "it comes with an imported model: train --init-from that model"}


def build_tokenizer(
    kind: str, texts: Sequence[str], size: int | None = None, normalization: str = "none"
) -> Tokenizer:
    """Return a tokenizer for the texts, most frequent tokens first.

    size: maximum number of tokens, without special tokens. Default: all characters, all
    whitespace-separated tokens, 30,000 words, or a number of subwords that grows with the text.
    normalization: Unicode normalization form of the texts: none, nfc or nfd.
    """
    if kind not in KINDS:
        raise UserError(
            f"tokenizer: expected {', '.join(KINDS)}, found '{kind}'", help=IMPORTED.get(kind, "")
        )
    if size is not None and size < 1:
        raise UserError(f"vocab_size: expected 1 or more, found {size}")
    return _normalizing(_class(kind).build(normalized(texts, normalization), size), normalization)


def load_tokenizer(folder: Path, name: str) -> Tokenizer:
    """Return the tokenizer that `save(folder, name)` wrote."""
    kind, tokens, normalization = _read(folder / f"{name}.json")
    return _normalizing(_class(kind).load(folder / f"{name}.model", tokens), normalization)


def load_table(folder: Path, name: str) -> TableTokenizer:
    """Return a saved TableTokenizer; raise UserError for other kinds."""
    kind, tokens, _ = _read(folder / f"{name}.json")
    if kind not in TABLES:
        raise UserError(f"{folder / name}.json: expected a list of tokens", help=COPY)
    return TABLES[kind](tokens)


def _normalizing(tokenizer: Tokenizer, normalization: str) -> Tokenizer:
    """Return the tokenizer, which normalizes texts unless `normalization` is none."""
    return NormalizedTokenizer(tokenizer, normalization) if normalization in FORMS else tokenizer


def _class(kind: str) -> type[Tokenizer]:
    """Return the tokenizer class of this kind; import sentencepiece only if needed."""
    if kind in TABLES:
        return TABLES[kind]
    from regard.data.tokenizers import marian, subword

    pieces = (subword.BpeTokenizer, subword.UnigramTokenizer, marian.MarianTokenizer)
    return next(one for one in pieces if one.kind == kind)


def _read(path: Path) -> tuple[str, list[str], str]:
    """Return the kind, the tokens and the normalization form of a saved tokenizer."""
    try:
        content = parse_json(read_bytes(path).decode("utf-8"))
        kind, tokens = content["kind"], content["tokens"]
        normalization = content.get("normalization", "none")  # files of older versions lack it
        if not isinstance(tokens, list) or not all(isinstance(token, str) for token in tokens):
            raise TypeError("tokens: expected a list of strings")
        if len(set(tokens)) < len(tokens):
            raise ValueError("tokens: expected distinct strings")
    except FileNotFoundError:
        raise UserError(f"{path}: missing vocabulary", help=COPY) from None
    except (OSError, ValueError, KeyError, TypeError) as error:
        reason = getattr(error, "strerror", None) or error
        raise UserError(f"{path}: corrupted vocabulary ({reason})", help=COPY) from None
    if kind not in (*KINDS, *IMPORTED):
        raise UserError(f"{path}: corrupted, or written by a newer regard: kind '{kind}'")
    if normalization not in ("none", *FORMS):
        raise UserError(
            f"{path}: corrupted, or written by a newer regard: normalization '{normalization}'"
        )
    return kind, tokens, normalization
