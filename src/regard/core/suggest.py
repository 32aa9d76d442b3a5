"""Names that a user gives: what was meant."""

import difflib
from collections.abc import Iterable


def did_you_mean(name: str, known: Iterable[str], otherwise: str = "") -> str:
    """The end of a refusal: the name that was meant, or something else."""
    near = difflib.get_close_matches(name, list(known), 1)
    return f"; did you mean {near[0]}?" if near else otherwise


def nearest(name: str, known: Iterable[str]) -> str:
    """The end of a refusal: the name that was meant, and all that there are."""
    names = list(known)
    if not names:
        return "; there are none"
    near, all_names = did_you_mean(name, names), f"here are {', '.join(names)}"
    return f"{near} T{all_names}" if near else f"; t{all_names}"
