"""Arrays of numbers made small for a page: two bytes a number, as text."""

import base64
from typing import Any

import numpy as np

LARGEST = 65535  # of two bytes
FEW = 16  # numbers below which a list is as short
FINE = 4096  # numbers of a saliency that stays whole: its rows are of very different sizes


def packed(inspection: dict[str, Any]) -> dict[str, Any]:
    """The dictionary of an inspection with its large arrays packed.

    An array is {"shape", "min", "max", "u16"}: u16 is base64 of little-endian numbers x, each
    min + x / 65535 * (max - min); min is left out where it is 0.
    """
    found = dict(inspection)
    found["attention"] = [one | {"heads": _pack(one["heads"])} for one in found["attention"]]
    found["gates"] = [one | {"units": _pack(one["units"])} for one in found["gates"]]
    if found["saliency"] is not None:
        found["saliency"] = _saliency(found["saliency"])
    return found


def unpacked(array: Any) -> Any:
    """The numbers of an array, packed or not, as nested lists."""
    if not isinstance(array, dict):
        return array
    raw = np.frombuffer(base64.b64decode(array["u16"]), "<u2").astype(np.float64)
    low = array.get("min", 0.0)
    return (low + raw / LARGEST * (array["max"] - low)).reshape(array["shape"]).tolist()


def _saliency(saliency: dict[str, Any]) -> dict[str, Any]:
    found = saliency | {"values": _pack(saliency["values"], FINE)}
    return found | {"before": _saliency(found["before"])} if "before" in found else found


def _pack(numbers: list[Any], few: int = FEW) -> Any:
    """An array as text; one of few numbers stays as it is."""
    array = np.asarray(numbers, np.float64)
    if array.size < few or not np.isfinite(array).all():
        return numbers
    low, high = min(0.0, float(array.min())), float(array.max())
    span = high - low
    scaled = np.rint((array - low) / span * LARGEST) if span > 0 else np.zeros_like(array)
    text = base64.b64encode(scaled.astype("<u2").tobytes()).decode("ascii")
    found = {"shape": list(array.shape), "max": high, "u16": text}
    return found | {"min": low} if low else found
