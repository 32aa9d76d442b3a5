"""How much text is read into memory as a whole."""

import os
import re

from regard.core.errors import UserError

MEMORY = 256 * 1024**2  # bytes of text; as Python objects they take some ten times that


def memory_limit() -> int:
    """Bytes of text above which a file is read in pieces; $REGARD_MEMORY, such as 500MB."""
    given = os.environ.get("REGARD_MEMORY", "").strip()
    if not given:
        return MEMORY
    found = re.fullmatch(r"(\d+(?:\.\d+)?)\s*(?:([KMGT])i?B?)?", given, re.I)
    if not found:
        raise UserError(f"REGARD_MEMORY: a size such as 500MB or 2GB expected, '{given}' found")
    power = 1 + "KMGT".index(found[2].upper()) if found[2] else 0
    return int(float(found[1]) * 1024**power)
