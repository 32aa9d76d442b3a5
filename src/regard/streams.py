"""Streams that a process was started without."""

import os
import sys

from regard.errors import UserError


def mend_streams() -> None:
    """A closed stdin is an empty one, a closed stderr is not listened to; stdout must be there.

    Python has None for such a stream, and the next file that is opened would take its number.
    """
    if sys.stdin is None:
        sys.stdin = open(os.devnull, encoding="utf-8")  # noqa: SIM115 -- until the end
    if sys.stderr is None:  # else what is meant for it would go to stdout
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
    if sys.stdout is None:
        raise UserError("standard output is closed, and answers go there; open it: >/dev/null")
