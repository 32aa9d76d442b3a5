"""Names that a user gives: what was meant."""

import difflib
from collections.abc import Iterable


def nearest(name: str, known: Iterable[str]) -> str:
    """The end of a refusal: the name that was meant, and all that there are."""
    names = list(known)
    if not names:
        return "; there are none"
    near = difflib.get_close_matches(name, names, 1)
    all_names = f"here are {', '.join(names)}"
    return f"; did you mean {near[0]}? T{all_names}" if near else f"; t{all_names}"
