"""Errors that the user can fix, and everything that is printed to the user.

Lines have stable prefixes: `error:`, `warning:`, `note:`, `help:`, `auto:` (a setting that was
chosen automatically), `skipped:` and `next:`. All of them go to stderr; stdout is for results.
"""

import os
import sys


class UserError(ValueError):
    """An error that the user can fix. message: `WHERE: what is wrong: expected X, found Y`.

    The command line prints it without a traceback and exits with code 2. note: an explanation.
    help: what to type or change.
    """

    def __init__(self, message: str, *, note: str = "", help: str = "") -> None:
        super().__init__(message)
        self.message, self.note, self.help = message, note, help

    def at(self, where: str) -> "UserError":
        """Return this error with a location (a file, a line) before its message."""
        return UserError(f"{where}: {self.message}", note=self.note, help=self.help)

    def __str__(self) -> str:
        extra = (("note", self.note), ("help", self.help))
        return "\n".join([self.message, *(f"{name}: {text}" for name, text in extra if text)])


class UserTypeError(UserError, TypeError):
    """A UserError for a value of a wrong type, so that `except TypeError` catches it too."""


def info(text: str) -> None:
    """Print a line to stderr, only in the main process."""
    if _rank() == 0:
        print(text, file=sys.stderr, flush=True)


def warn(text: str, *, help: str = "") -> None:
    """Print a warning, and what to do about it, to stderr, only in the main process."""
    info(f"warning: {text}")
    if help:
        info(f"help: {help}")


def note(text: str) -> None:
    """Print an explanation to stderr, only in the main process."""
    info(f"note: {text}")


def print_error(error: object) -> None:
    """Print the error that ends a process to stderr, with the rank unless it is rank 0."""
    where = f"rank {_rank()} on {os.uname().nodename}: " if _rank() else ""
    print(f"{where}error: {error}", file=sys.stderr, flush=True)


def _rank() -> int:
    return int(os.environ.get("RANK", "0"))
