"""Printable token names, with visible spaces, combining marks and control characters."""

import unicodedata


def printable(token: str) -> str:
    """Return the printable name of a token for plots and tables."""
    if token and unicodedata.combining(token[0]):
        token = "\u25cc" + token
    return "".join("\u2423" if character == " " else _visible(character) for character in token)


def _visible(character: str) -> str:
    return character if character.isprintable() else f"U+{ord(character):04X}"
