"""Streams that a process was started without, or with an encoding that cannot write all text."""

import codecs
import io
import os
import sys

from regard.core.errors import UserError

UTF8 = "utf-8"


def fix_std_streams() -> None:
    """A closed stdin is an empty one, a closed stderr is not listened to; stdout must be there.

    Python has None for such a stream, and the next file that is opened would take its number.
    Answers are in UTF-8, as texts are read, whatever the terminal is set to.
    """
    if sys.stdin is None:
        sys.stdin = open(os.devnull, encoding=UTF8)  # noqa: SIM115 -- until the end
    if sys.stderr is None:  # else what is meant for it would go to stdout
        sys.stderr = open(os.devnull, "w", encoding=UTF8)  # noqa: SIM115
    if sys.stdout is None:
        raise UserError("standard output is closed, and answers go there; open it: >/dev/null")
    if isinstance(sys.stdout, io.TextIOWrapper) and codecs.lookup(sys.stdout.encoding).name != UTF8:
        sys.stdout.reconfigure(encoding=UTF8)
