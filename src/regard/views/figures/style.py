"""How pictures look: one palette, one background, thin lines; drawn without a screen."""

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

# Paul Tol's muted scheme, made to be told apart by color-blind eyes; the lightest darkened.
COLORS = ("#332288", "#cc6677", "#117733", "#3d9ec7", "#882255", "#b8962e", "#44aa99", "#aa4499")
PAPER, INK, FAINT, GRID = "#fcfcfa", "#22262b", "#666c74", "#e2e3de"
DOTS = 160  # an inch
LETTER = 0.115  # inches of a letter of a title
ENDINGS = (".png", ".svg")

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
    "svg.fonttype": "path",  # the same on a machine without the font
    "svg.hashsalt": "regard",  # the same picture is the same file
}


def styled() -> AbstractContextManager[None]:
    """Within it, pictures are drawn in this style; refused where there is nothing to draw with."""
    try:
        import matplotlib
    except ImportError:
        raise UserError("plots are drawn by matplotlib; pip install 'regard[plots]'") from None
    return matplotlib.rc_context(STYLE)  # type: ignore[arg-type]


def new_figure(width: float, height: float, title: str) -> "Figure":
    """An empty figure of so many inches; a title that takes several lines adds to its height."""
    from matplotlib.figure import Figure

    room = width / LETTER * len(title) / max(1, _columns(title))
    lines = textwrap.wrap(title, max(8, int(room)))
    figure = Figure((width, height + 0.21 * (len(lines) - 1)), layout="constrained")
    figure.suptitle("\n".join(lines), x=0.012, ha="left", fontsize=12.5, fontweight="bold")
    return figure


def _columns(text: str) -> int:
    """How wide a text is, in letters: those of Chinese, Japanese and Korean take two."""
    return sum(1 + (unicodedata.east_asian_width(sign) in "WF") for sign in text)


def panels(figure: "Figure", rows: int, columns: int, **shared: Any) -> list["Axes"]:
    """The panels of a figure, row by row."""
    return list(figure.subplots(rows, columns, squeeze=False, **shared).flat)


def bare(axes: "Axes") -> None:
    """Takes grid and frame away, for maps."""
    axes.grid(False)
    axes.spines[:].set_visible(False)
    axes.tick_params(length=0)


def note(axes: "Axes", text: str) -> None:
    """A remark in small letters under the title of a panel."""
    axes.text(0, 1.0, text, transform=axes.transAxes, va="bottom", fontsize=8, color=FAINT)


def check_ending(path: Path) -> None:
    """Refuses a file whose ending says nothing of how it is to be written."""
    if path.suffix.lower() not in ENDINGS:
        raise UserError(f"--out {path}: a name that ends in .png or .svg expected")


def save(figure: "Figure", path: Path) -> None:
    """Writes a picture, as its ending says."""
    picture = io.BytesIO()
    if path.suffix.lower() == ".svg":
        figure.savefig(picture, format="svg", metadata={"Date": None})
    else:
        from PIL import Image  # comes with matplotlib

        drawn = io.BytesIO()
        figure.savefig(drawn, format="png", dpi=DOTS)
        # few colors: a third of the size, and to the eye the same
        few = Image.open(drawn).convert("RGB").quantize(256, Image.Quantize.MAXCOVERAGE)
        few.save(picture, format="png", optimize=True)
    write_bytes(path, picture.getvalue())


def chosen(kinds: Sequence[str], known: Sequence[str]) -> list[str]:
    """The kinds to draw: those named, in the order named, or all."""
    unknown = [kind for kind in kinds if kind not in known]
    if unknown:
        raise UserError(f"--kind {unknown[0]}: none of {', '.join(known)}")
    return list(dict.fromkeys(kinds)) or list(known)
