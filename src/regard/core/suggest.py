"""Suggestions for misspelled names."""

import difflib
from collections.abc import Iterable


def did_you_mean(name: str, known: Iterable[str], otherwise: str = "") -> str:
    """Return the end of an error message: the closest known name, or `otherwise` if none."""
    close = difflib.get_close_matches(name, list(known), 1)
    return f"; did you mean {close[0]}?" if close else otherwise


def suggest_names(name: str, known: Iterable[str]) -> str:
    """Return the end of an error message: the closest name, if any, and all available names."""
    names = list(known)
    if not names:
        return "; none available"
    return f"{did_you_mean(name, names)}; available: {', '.join(names)}".replace("?;", "?")
