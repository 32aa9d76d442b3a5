"""Style of all figures: colors, fonts and lines; and functions that create and save figures."""

import io
import textwrap
import unicodedata
from collections.abc import Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from regard.core.errors import UserError
from regard.core.files import write_bytes

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Paul Tol's muted scheme, safe for color blindness; the lightest color is darkened.
COLORS = ("#332288", "#cc6677", "#117733", "#3d9ec7", "#882255", "#b8962e", "#44aa99", "#aa4499")
PAPER, INK, FAINT, GRID = "#fcfcfa", "#22262b", "#666c74", "#e2e3de"
DPI = 160
TITLE_CHAR = 0.115  # inches per character of a title
SUFFIXES = (".png", ".svg")

STYLE: dict[str, Any] = {
    "figure.facecolor": PAPER,
    "axes.facecolor": PAPER,
    "savefig.facecolor": PAPER,
    "font.size": 9.5,
    "text.color": INK,
    "axes.labelcolor": FAINT,
    "axes.titlesize": 10.5,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.edgecolor": "#b9bbb4",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": GRID,
    "grid.linewidth": 0.8,
    "xtick.color": FAINT,
    "ytick.color": FAINT,
    "lines.linewidth": 1.8,
    "lines.solid_capstyle": "round",
    "legend.frameon": False,
    "svg.fonttype": "path",  # text as paths, so the font need not be installed
    "svg.hashsalt": "regard",  # reproducible files
}


def styled() -> AbstractContextManager[None]:
    """Use `STYLE` inside the block; raise UserError if matplotlib is not installed."""
    try:
        import matplotlib
    except ImportError:
        raise UserError("figures require matplotlib", help="pip install 'regard[plots]'") from None
    return matplotlib.rc_context(STYLE)  # type: ignore[arg-type]


def new_figure(width: float, height: float, title: str) -> "Figure":
    """Return an empty figure of this size in inches; further title lines add to its height."""
    from matplotlib.figure import Figure

    max_chars = width / TITLE_CHAR * len(title) / max(1, _columns(title))
    lines = textwrap.wrap(title, max(8, int(max_chars)))
    figure = Figure((width, height + 0.21 * (len(lines) - 1)), layout="constrained")
    figure.suptitle("\n".join(lines), x=0.012, ha="left", fontsize=12.5, fontweight="bold")
    return figure


def _columns(text: str) -> int:
    """Return the width of a text in columns; wide characters, such as Chinese, take two."""
    return sum(1 + (unicodedata.east_asian_width(sign) in "WF") for sign in text)


def panels(figure: "Figure", rows: int, columns: int, **shared: Any) -> list["Axes"]:
    """Add a grid of panels to a figure and return the panels, row by row.

    shared: further arguments of `Figure.subplots`.
    """
    return list(figure.subplots(rows, columns, squeeze=False, **shared).flat)


def hide_frame(axes: "Axes") -> None:
    """Remove grid, frame and tick marks, as for heat maps."""
    axes.grid(False)
    axes.spines[:].set_visible(False)
    axes.tick_params(length=0)


def add_subtitle(axes: "Axes", text: str) -> None:
    """Write a small line under the title of a panel."""
    axes.text(0, 1.0, text, transform=axes.transAxes, va="bottom", fontsize=8, color=FAINT)


def check_suffix(path: Path) -> None:
    """Raise UserError unless the file name ends in .png or .svg."""
    if path.suffix.lower() not in SUFFIXES:
        raise UserError(f"--out {path}: expected a file name that ends in .png or .svg")


def save(figure: "Figure", path: Path) -> None:
    """Save a figure as PNG or SVG, by the suffix of the file name."""
    content = io.BytesIO()
    if path.suffix.lower() == ".svg":
        figure.savefig(content, format="svg", metadata={"Date": None})
    else:
        from PIL import Image  # a dependency of matplotlib

        image = io.BytesIO()
        figure.savefig(image, format="png", dpi=DPI)
        # 256 colors: a third of the size without a visible difference
        reduced = Image.open(image).convert("RGB").quantize(256, Image.Quantize.MAXCOVERAGE)
        reduced.save(content, format="png", optimize=True)
    write_bytes(path, content.getvalue())


def select_kinds(kinds: Sequence[str], known: Sequence[str]) -> list[str]:
    """Return the kinds to plot, by default all known ones; raise UserError for unknown kinds."""
    unknown = [kind for kind in kinds if kind not in known]
    if unknown:
        raise UserError(f"--kind {unknown[0]}: expected one of {', '.join(known)}")
    return list(dict.fromkeys(kinds)) or list(known)
