"""Printable token names, with visible spaces, combining marks and control characters."""

import unicodedata
from collections.abc import Callable


def printable(token: str) -> str:
    """Return the printable name of a token for plots and tables."""
    if token and unicodedata.combining(token[0]):
        token = "\u25cc" + token
    return "".join("\u2423" if character == " " else _visible(character) for character in token)


def _visible(character: str) -> str:
    return character if character.isprintable() else f"U+{ord(character):04X}"


class NameCache(dict[int, str]):
    """The names of the ids that were looked up. name: returns the name of an id."""

    def __init__(self, name: Callable[[int], str]) -> None:
        self._name = name

    def __missing__(self, id: int) -> str:
        found = self[id] = self._name(id)
        return found
