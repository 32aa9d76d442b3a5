"""Characters and morphological features: `go V;PST` has the tokens g, o, space, ;V and ;PST."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache

from regard.data.tokenizers.tokenizer import TableTokenizer

SEPARATORS = ";|,"  # UniMorph: V;PST. Universal Dependencies: Case=Nom|Number=Sing
WHITESPACE = re.compile(r"(\s+)")
TAG = re.compile(r"[A-Z0-9{][A-Z0-9.+\-/*_:(){},]*")  # PST, 3, V.PTCP, AT+ESS, {NOM/ACC}
KEY_VALUE = re.compile(r"[A-Za-z][A-Za-z0-9_\[\]]*=[A-Za-z0-9.+\-/*_,]+")  # Case=Nom


class FeatureTokenizer(TableTokenizer):
    """A tokenizer with one token per feature of a feature bundle, otherwise one per code point.

    A bundle is a whitespace-separated word of at least two features, or a single Key=Value. The
    token of a feature starts with the separator of its bundle; `join` drops the first separator.
    Decoding is exact: all other tokens have length one.
    """

    kind = "char_features"
    characters = True

    def tokenize(self, text: str) -> list[str]:
        tokens: list[str] = []
        for part in WHITESPACE.split(text):
            tokens += split_features(part) or part  # a string adds its characters
        return tokens

    def join(self, tokens: Iterable[str]) -> str:
        text, in_bundle = "", False
        for token in tokens:
            is_feature = len(token) > 1
            text += token[1:] if is_feature and not in_bundle else token
            in_bundle = is_feature
        return text


@lru_cache(maxsize=100_000)
def split_features(word: str) -> tuple[str, ...]:
    """Return the tokens of a feature bundle, each with its separator; () for other words."""
    for separator in SEPARATORS:
        features = word.split(separator)
        if len(features) > 1 and _is_bundle(features):
            return tuple(separator + feature for feature in features)
    return ("|" + word,) if KEY_VALUE.fullmatch(word) else ()


def _is_bundle(features: list[str]) -> bool:
    """Return whether these are all features, and not all numbers."""
    return all(TAG.fullmatch(one) or KEY_VALUE.fullmatch(one) for one in features) and any(
        one[0].isalpha() or one[0] == "{" for one in features
    )
