"""Names of tokens for people: white space, marks and control characters made visible."""

import unicodedata


def printable(token: str) -> str:
    """A name of a token for plots and tables."""
    if token and unicodedata.combining(token[0]):
        token = "\u25cc" + token
    return "".join("\u2423" if character == " " else _seen(character) for character in token)


def _seen(character: str) -> str:
    return character if character.isprintable() else f"U+{ord(character):04X}"
