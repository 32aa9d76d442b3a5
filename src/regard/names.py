"""Names that a user gives: what was meant."""

import difflib
from collections.abc import Iterable


def nearest(name: str, known: Iterable[str]) -> str:
    """The end of a refusal: the name that was meant, and all that there are."""
    names = list(known)
    if not names:
        return "; there are none"
    near = difflib.get_close_matches(name, names, 1)
    meant = f"; did you mean {near[0]}?" if near else ";"
    return f"{meant} There are {', '.join(names)}"
