"""What goes wrong by the user's hand, and how anything is said to the user."""

import os
import sys


class UserError(ValueError):
    """Something the user can put right: says where, what was expected, what came, what to do.

    The command line prints it without a traceback and leaves with code 2.
    """


def complain(error: object) -> None:
    """Why a process ends, on stderr; of several processes each speaks for itself."""
    number = int(os.environ.get("RANK", "0"))
    who = f"process {number} on {os.uname().nodename}: " if number else ""
    print(f"{who}error: {error}", file=sys.stderr, flush=True)


def say(text: str) -> None:
    """A line on stderr; stdout is for answers. Of several processes only the first speaks."""
    if int(os.environ.get("RANK", "0")):
        return
    print(text, file=sys.stderr, flush=True)
