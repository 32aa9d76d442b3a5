"""The HTML page of an inspection: self-contained, with style, scripts and data."""

import base64
import json
from html import escape
from string import Template
from typing import Any

import numpy as np

from regard.views.pages import SCRIPTS, STYLES, assets
from regard.views.pages.policy import policy

MAX_UINT16 = 65535
MIN_PACKED = 16  # values; smaller arrays stay lists
MIN_PACKED_SALIENCY = 4096  # values; rows of small values lose precision if packed


def inspection_page(inspection: dict[str, Any]) -> str:
    """Return the HTML page of an inspection (`Inspection.as_dict()`)."""
    style = f"\n{assets(STYLES)}\n"
    script = f"\n{assets((*SCRIPTS, 'standalone.js'))}\n"
    source, target = inspection["source"]["text"], inspection["target"]["text"]
    page = Template(assets(["inspection.html"]) + "\n")
    return page.substitute(
        policy=policy(script, style),
        title=_escape(f"{inspection['model']['name']}: {source or target}"),
        source=_escape(source or target),
        target=_escape(target if source else ""),
        style=style,
        script=script,
        data=_script_data(pack_arrays(inspection)),
    )


def _escape(text: str) -> str:
    """Escape a text for HTML; question marks replace lone surrogates."""
    return escape(text.encode("utf-8", "replace").decode("utf-8"))


def _script_data(value: dict[str, Any]) -> str:
    """Return JSON for a script element, with "<" and lone surrogates escaped."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    text = "".join(f"\\u{ord(char):04x}" if "\ud800" <= char <= "\udfff" else char for char in text)
    return text.replace("<", "\\u003c")


def pack_arrays(inspection: dict[str, Any]) -> dict[str, Any]:
    """Return the dictionary of an inspection with its large arrays packed.

    A packed array has the keys "shape", "min" (omitted if 0), "max" and "u16". "u16" is base64 of
    little-endian 16-bit integers x, which stand for min + x / 65535 * (max - min).
    """
    found = dict(inspection)
    found["attention"] = [one | {"heads": _pack(one["heads"])} for one in found["attention"]]
    found["gates"] = [one | {"units": _pack(one["units"])} for one in found["gates"]]
    if found["saliency"] is not None:
        found["saliency"] = _saliency(found["saliency"])
    if picture := found.get("picture"):
        found["picture"] = _picture(picture)
    return found


def _picture(picture: dict[str, Any]) -> dict[str, Any]:
    found = picture | {"saliency": _pack(picture["saliency"])}
    for name in ("class_map", "filters"):
        if one := picture[name]:
            found[name] = one | {"values": _pack(one["values"])}
    return found | {"maps": [one | {"values": _pack(one["values"])} for one in picture["maps"]]}


def _saliency(saliency: dict[str, Any]) -> dict[str, Any]:
    found = saliency | {"values": _pack(saliency["values"], MIN_PACKED_SALIENCY)}
    if "decoder_inputs" in found:
        found["decoder_inputs"] = _saliency(found["decoder_inputs"])
    return found


def _pack(numbers: list[Any], min_size: int = MIN_PACKED) -> Any:
    """Return a packed array; arrays that are small or not finite are returned unchanged."""
    array = np.asarray(numbers, np.float64)
    if array.size < min_size or not np.isfinite(array).all():
        return numbers
    low, high = min(0.0, float(array.min())), float(array.max())
    span = high - low
    scaled = np.rint((array - low) / span * MAX_UINT16) if span > 0 else np.zeros_like(array)
    text = base64.b64encode(scaled.astype("<u2").tobytes()).decode("ascii")
    found = {"shape": list(array.shape), "max": high, "u16": text}
    return found | {"min": low} if low else found
