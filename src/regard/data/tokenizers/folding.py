"""Folding: characters that the training data does not have are read as similar ones that it has.

A model that was trained on lowercase words reads `Attention` as `attention` and, without `ë` in its
vocabulary, `Zoë` as `zoe`.
"""

import unicodedata
from collections.abc import Iterator

from regard.data.tensors.special import SPECIALS
from regard.data.tokenizers.tokenizer import Tokenizer

# Typographic characters without a Unicode decomposition.
PLAIN = str.maketrans("\u2018\u2019\u201c\u201d\u2010\u2011\u2013\u2014\u2212", "''\"\"-----")


class Folding:
    """Replaces unknown characters by similar characters of a vocabulary."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self.tokenizer = tokenizer
        ids = range(len(SPECIALS), len(tokenizer))
        self._known = frozenset(tokenizer.token(id) for id in ids)

    def fold(self, text: str) -> str:
        """Return the text with all unknown characters folded that have a known folded form."""
        if self._known.issuperset(text):
            return text
        return self.tokenizer.join(folded for _, folded in self._parts(text))

    def changes(self, text: str) -> tuple[str, ...]:
        """Return the distinct changes of `fold`, such as `A → a`, in the order of the text."""
        if self._known.issuperset(text):
            return ()
        parts = self._parts(text)
        return tuple(dict.fromkeys(f"{a} → {b}" if b else f"{a} → ∅" for a, b in parts if a != b))

    def _parts(self, text: str) -> list[tuple[str, str]]:
        """Return the tokens of the text, each with its folded form."""
        tokens = self.tokenizer.tokenize(text)
        if not self._known.issuperset(tokens):  # a base character and its marks may be one
            composed = self.tokenizer.tokenize(unicodedata.normalize("NFC", text))
            if len(composed) < len(tokens):
                tokens = composed
        return [(token, self._folded(token)) for token in tokens]

    def _folded(self, token: str) -> str:
        """Return the first known form of an unknown character, otherwise the token itself."""
        if token in self._known or len(token) != 1:
            return token
        forms = (form for form in similar(token) if self._known.issuperset(form))
        return next(forms, token)


def similar(character: str) -> Iterator[str]:
    """Yield forms of a character, the most similar first: other case, without marks, both.

    The form of a combining mark without its base is empty.
    """
    plain = character.translate(PLAIN)
    for form in (plain, unicodedata.normalize("NFD", plain), unicodedata.normalize("NFKC", plain)):
        yield from (form, form.lower(), form.upper())
    bare = "".join(
        one for one in unicodedata.normalize("NFKD", plain) if not unicodedata.combining(one)
    )
    yield from (bare, bare.lower(), bare.upper())
