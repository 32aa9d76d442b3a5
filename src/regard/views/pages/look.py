"""The files of the shared look, in the order in which a page must have them."""

from collections.abc import Iterable
from importlib.resources import files

STYLES = ("base.css", "inspection.css")

# dom.js first: the others build with it. Words before the theme, which chooses the language.
SCRIPTS = (
    "dom.js",
    "words.js",
    "notes.js",
    "theme.js",
    "heat.js",
    "map.js",
    "lines.js",
    "tokens.js",
    "head.js",
    "attention.js",
    "tree.js",
    "saliency.js",
    "gates.js",
    "inspection.js",
)


def assets(names: Iterable[str]) -> str:
    """The text of these files, one after the other."""
    room = files("regard.views.pages")
    return "\n".join(room.joinpath(name).read_text("utf-8").strip() for name in names)
