"""Style sheets and scripts that all pages share, in the order in which a page needs them."""

from collections.abc import Iterable
from importlib.resources import files

STYLES = ("base.css", "inspection.css")

# dom.js comes first: the others use it. words.js comes before theme.js, which sets the language.
SCRIPTS = (
    "dom.js",
    "words.js",
    "notes.js",
    "theme.js",
    "heat.js",
    "map.js",
    "lines.js",
    "tokens.js",
    "passes.js",
    "picture.js",
    "sound.js",
    "graph.js",
    "head.js",
    "attention.js",
    "tree_layout.js",
    "tree.js",
    "saliency.js",
    "gates.js",
    "inspection.js",
)


def assets(names: Iterable[str]) -> str:
    """Return the concatenated text of these files."""
    folder = files("regard.views.pages")
    return "\n".join(folder.joinpath(name).read_text("utf-8").strip() for name in names)
