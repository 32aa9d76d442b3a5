"""Standard streams that are closed, or whose encoding cannot represent all text."""

import codecs
import io
import os
import sys

from regard.core.errors import UserError

UTF8 = "utf-8"


def fix_std_streams() -> None:
    """Replace a closed stdin or stderr by /dev/null; raise UserError if stdout is closed.

    Python sets a closed stream to None, and the next opened file would reuse the file descriptor.
    Output is UTF-8, like input, regardless of the terminal's settings.
    """
    if sys.stdin is None:
        sys.stdin = open(os.devnull, encoding=UTF8)  # noqa: SIM115 -- until the end
    if sys.stderr is None:  # otherwise messages would go to stdout
        sys.stderr = open(os.devnull, "w", encoding=UTF8)  # noqa: SIM115
    if sys.stdout is None:
        raise UserError("stdout is closed", help="redirect it, e.g. >/dev/null")
    if isinstance(sys.stdout, io.TextIOWrapper) and codecs.lookup(sys.stdout.encoding).name != UTF8:
        sys.stdout.reconfigure(encoding=UTF8)
