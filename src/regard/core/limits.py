"""The limit for the text that is read into memory at once."""

import os
import re

from regard.core.errors import UserError

MEMORY = 256 * 1024**2  # bytes of text; as Python objects, about ten times as much


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
