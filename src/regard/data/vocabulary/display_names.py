"""Names of symbols for people: white space, marks and control characters made visible."""

import unicodedata


def printable(symbol: str) -> str:
    """A name of a symbol for plots and tables."""
    if symbol and unicodedata.combining(symbol[0]):
        symbol = "\u25cc" + symbol
    return "".join("\u2423" if character == " " else _seen(character) for character in symbol)


def _seen(character: str) -> str:
    return character if character.isprintable() else f"U+{ord(character):04X}"
