"""Limits that environment variables change: text in memory, and the length of a text."""

import os
import re

from regard.core.errors import UserError

MEMORY = 256 * 1024**2  # bytes of text; as Python objects, about ten times as much
MAX_TEXT = 500_000  # characters of a line that a model reads or is scored on


def memory_limit() -> int:
    """Return the size in bytes above which a file is read in chunks ($REGARD_MEMORY=500MB)."""
    value = os.environ.get("REGARD_MEMORY", "").strip()
    if not value:
        return MEMORY
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*(?:([KMGT])i?B?)?", value, re.I)
    if not match:
        raise UserError(f"REGARD_MEMORY: expected a size such as 500MB or 2GB, found {value!r}")
    power = 1 + "KMGT".index(match[2].upper()) if match[2] else 0
    return int(float(match[1]) * 1024**power)


def text_limit(default: int = MAX_TEXT) -> int:
    """Return the maximum length of a text ($REGARD_MAX_TEXT=2000000)."""
    value = os.environ.get("REGARD_MAX_TEXT", "").strip()
    if not value:
        return default
    if not re.fullmatch(r"\d{1,12}", value):
        raise UserError(f"REGARD_MAX_TEXT: expected a number such as 2000000, found {value!r}")
    return int(value)


def check_text_length(where: str, what: str, length: int, limit: int, unit: str) -> None:
    """Raise UserError if a text is longer than a limit. where: file and line, if known."""
    if length > limit:
        raise UserError(
            f"{where}{what} of {length:,} {unit}: expected at most {limit:,}",
            help=f"split it into sentences or paragraphs, or raise the limit: REGARD_MAX_TEXT="
            f"{length}",
        )
