"""One HTML file of an inspection: style, scripts and data inside, nothing from the network."""

import base64
import json
from html import escape
from string import Template
from typing import Any

import numpy as np

from regard.views.pages import SCRIPTS, STYLES, assets
from regard.views.pages.policy import policy

LARGEST = 65535  # of two bytes
FEW = 16  # numbers below which a list is as short
FINE = 4096  # numbers of a saliency that stays whole: its rows are of very different sizes


def inspection_page(inspection: dict[str, Any]) -> str:
    """The page of an inspection (`Inspection.as_dict()`), complete in one text."""
    style = f"\n{assets(STYLES)}\n"
    script = f"\n{assets((*SCRIPTS, 'standalone.js'))}\n"
    source, target = inspection["source"]["text"], inspection["target"]["text"]
    page = Template(assets(["inspection.html"]) + "\n")
    return page.substitute(
        policy=policy(script, style),
        title=_shown(f"{inspection['model']['name']}: {source or target}"),
        source=_shown(source or target),
        target=_shown(target if source else ""),
        style=style,
        script=script,
        data=_data(packed(inspection)),
    )


def _shown(text: str) -> str:
    """Text as HTML; lone surrogates, which UTF-8 has not, are question marks."""
    return escape(text.encode("utf-8", "replace").decode("utf-8"))


def _data(value: dict[str, Any]) -> str:
    """JSON that no text can end: with "<" escaped, neither </script> nor <!-- can occur.

    Lone surrogates are escaped too, so that the page can be written as UTF-8.
    """
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    text = "".join(f"\\u{ord(one):04x}" if "\ud800" <= one <= "\udfff" else one for one in text)
    return text.replace("<", "\\u003c")


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


def _saliency(saliency: dict[str, Any]) -> dict[str, Any]:
    found = saliency | {"values": _pack(saliency["values"], FINE)}
    if "decoder_inputs" in found:
        found["decoder_inputs"] = _saliency(found["decoder_inputs"])
    return found


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
