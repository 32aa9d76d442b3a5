"""The result of an inspection, for JSON, HTML pages, figures and the terminal.

Shapes: H heads, T tokens, D width of a layer.
"""

import json
import math
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from torch import Tensor

from regard.core.argument_names import names_arguments
from regard.core.errors import UserError
from regard.core.files import write_text
from regard.core.version import __version__
from regard.tasks.inspection.forced_pass import ForcedOutput, TokenAxis
from regard.views.figures.graph_plot import layout
from regard.views.figures.style import save, styled
from regard.views.inspection.figures import plot_view
from regard.views.inspection.inspection_page import inspection_page
from regard.views.inspection.picture import Picture
from regard.views.inspection.sound_view import SoundView

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FORMAT_VERSION = 1  # of the JSON
DIGITS = 6
SUFFIXES = (".html", ".json", ".png", ".svg")  # of the files that `Inspection.save` writes
FRAME_HEIGHT = 720  # of the page in a notebook, in pixels
ModulePart = Literal["encoder", "decoder", "cross", "pooling"]
Direction = Literal["forward", "backward"]


@dataclass(frozen=True)
class AttentionMap:
    """The attention of one layer.

    heads: (H, rows, columns); each row sums to 1 unless the kernel normalizes in another way.
    entropy: per head, in nats, averaged over rows. ablation_delta: per head, the change of the log
    probability of the output (or of the predicted number) when the head is ablated.
    implied: whether the model never computes this matrix, which shows what its result amounts to.
    hidden: per row, a string with "1" for each column that no head can attend to; () if all can.
    """

    name: str
    part: ModulePart
    layer: int
    rows: TokenAxis
    columns: TokenAxis
    heads: Tensor
    entropy: tuple[float, ...]
    ablation_delta: tuple[float, ...] = ()
    implied: bool = False
    hidden: tuple[str, ...] = ()


@dataclass(frozen=True)
class Gate:
    """One gate of a recurrent layer over time, or the output of the layer (`hidden`).

    mean: mean over units for each token. units: (T, D), or None if there are too many values.
    """

    name: str
    part: ModulePart
    layer: int
    direction: Direction
    gate: str
    rows: TokenAxis
    mean: tuple[float, ...]
    units: Tensor | None


@dataclass(frozen=True)
class Saliency:
    """Gradient norms (rows, columns). decoder_inputs: saliency of the tokens the decoder reads."""

    rows: TokenAxis
    columns: TokenAxis
    values: Tensor
    decoder_inputs: "Saliency | None" = None

    def as_dict(self) -> dict[str, Any]:
        """Return the saliency for JSON, with six significant digits.

        Fixed decimals would lose the small gradients of confident outputs.
        """
        values = [[significant(value) for value in row] for row in self.values.double().tolist()]
        found: dict[str, Any] = {"rows": self.rows, "columns": self.columns, "values": values}
        if self.decoder_inputs is not None:
            found["decoder_inputs"] = self.decoder_inputs.as_dict()
        return found


@dataclass(frozen=True, kw_only=True)
class Inspection(ForcedOutput):
    """The output of a model for one source, and the model's internals; see docs/inspect.md.

    model: the description from `describe_model`.
    """

    model: dict[str, Any]
    attention: tuple[AttentionMap, ...] = ()
    saliency: Saliency | None = None
    gates: tuple[Gate, ...] = ()
    picture: Picture | None = None
    sound: SoundView | None = None

    def as_dict(self) -> dict[str, Any]:
        """Return the inspection for JSON, with six decimals (saliency: six significant digits)."""
        found = {
            "format": FORMAT_VERSION,
            "version": __version__,
            "model": self.model,
            "source": vars(self.source),
            "target": {**vars(self.target), "forced": self.forced},
            "inputs": self.inputs,
            "score": self.score,
            "truncated": self.truncated,
            "unknown_tokens": self.unknown_tokens,
            "steps": [step.as_dict() for step in self.steps],
            "own": [vars(one) for one in self.own],
            "attention": [vars(one) for one in self.attention],
            "saliency": None,
            "gates": [
                vars(one) | {"units": () if one.units is None else one.units} for one in self.gates
            ],
            "tree": self.tree,
            "graph": self.graph and self.graph | {"positions": positions_of(self.graph)},
            "search": self.search,
            "notes": [str(note) for note in self.notes],
            "note_keys": [note.as_dict() for note in self.notes],
        }
        ready = {name: to_json(value) for name, value in found.items()}
        ready |= {"saliency": self.saliency and self.saliency.as_dict()}
        media = {"picture": self.picture, "sound": self.sound}
        return ready | {name: one.as_dict() for name, one in media.items() if one}

    @names_arguments
    def figure(
        self, view: str | None = None, layer: int | None = None, head: int | None = None
    ) -> "Figure":
        """Return a matplotlib figure of one view; by default, the output and its attention.

        view: steps, alignment, cross, decoder, encoder, pooling, saliency, gates, tree, passes,
        picture, filters, maps, sound or graph. layer, head: plot only this layer or attention head
        (0-based).
        """
        return plot_view(self.as_dict(), view, layer, head)

    @names_arguments
    def save(
        self,
        path: str | Path,
        view: str | None = None,
        layer: int | None = None,
        head: int | None = None,
    ) -> None:
        """Write an HTML page, JSON or a figure, by the suffix of the file name.

        path: a name that ends in .html, .json, .png or .svg. view, layer, head: what a figure
        shows, see `figure`.
        """
        path = Path(path)
        suffix = path.suffix.lower()
        if suffix not in SUFFIXES:
            expected = ", ".join(SUFFIXES)
            raise UserError(f"{path}: expected a file name that ends in one of {expected}")
        if suffix in (".png", ".svg"):
            figure = self.figure(view, layer, head)
            with styled():
                return save(figure, path)
        if (view, layer, head) != (None, None, None):
            raise UserError(
                f"{path}: view, layer and head select a figure",
                help="omit them, or choose a name that ends in .png or .svg",
            )
        if suffix == ".html":
            return write_text(path, inspection_page(self.as_dict()))
        return write_text(path, json.dumps(self.as_dict(), ensure_ascii=False) + "\n")

    def _repr_html_(self) -> str:
        """Return the HTML page in a frame, for notebooks."""
        page = escape(inspection_page(self.as_dict()))
        return (
            f'<iframe srcdoc="{page}" sandbox="allow-scripts" title="Inspection" '
            f'style="width: 100%; height: {FRAME_HEIGHT}px; border: 0"></iframe>'
        )

    def __repr__(self) -> str:
        """Return source and output. The default would print every number."""
        return f"Inspection(source={self.source.text!r}, target={self.target.text!r})"


def positions_of(graph: dict[str, Any]) -> list[list[float]]:
    """Return the position of each node in drawings of a graph."""
    positions: list[list[float]] = layout(len(graph["nodes"]), graph["edges"]).tolist()
    return positions


def significant(number: float) -> float | None:
    """Return a number with six significant digits; None if it is not finite."""
    return float(f"{number:.{DIGITS}g}") if math.isfinite(number) else None


def to_json(value: Any) -> Any:
    """Convert tensors and tuples to lists, round numbers to six decimals; None if not finite."""
    if isinstance(value, Tensor):
        numbers = value.double().numpy()
        is_finite = bool(np.isfinite(numbers).all())
        return numbers.round(DIGITS).tolist() if is_finite else to_json(numbers.tolist())
    if isinstance(value, float):
        return round(value, DIGITS) if math.isfinite(value) else None
    if isinstance(value, dict):
        return {name: to_json(one) for name, one in value.items()}
    return [to_json(one) for one in value] if isinstance(value, list | tuple) else value
