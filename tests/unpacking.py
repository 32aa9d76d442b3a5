"""Arrays of a page as numbers."""

import base64
from typing import Any

import numpy as np

from regard.views.inspection.inspection_page import MAX_UINT16


def unpacked(array: Any) -> Any:
    """The numbers of an array, packed or not, as nested lists."""
    if not isinstance(array, dict):
        return array
    raw = np.frombuffer(base64.b64decode(array["u16"]), "<u2").astype(np.float64)
    low = array.get("min", 0.0)
    return (low + raw / MAX_UINT16 * (array["max"] - low)).reshape(array["shape"]).tolist()
