"""Figures of an inspection for papers and slides: one view, or the output with its attention."""

import textwrap
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from regard.core.errors import UserError
from regard.views.figures.fonts import FontSet, fonts_for
from regard.views.figures.style import FAINT, new_figure, styled
from regard.views.inspection.figure_gates import plot_gates
from regard.views.inspection.figure_graph import plot_graph
from regard.views.inspection.figure_maps import grid_size, plot_grid, plot_large
from regard.views.inspection.figure_passes import plot_search_steps
from regard.views.inspection.figure_picture import plot_filters, plot_maps, plot_picture
from regard.views.inspection.figure_sound import plot_sound
from regard.views.inspection.figure_steps import plot_steps, steps_per_row, steps_size
from regard.views.inspection.figure_tree import plot_search_tree
from regard.views.inspection.figure_views import (
    PARTS,
    alignment_map,
    attention_maps,
    saliency_maps,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from regard.views.inspection.figure_maps import Canvas

VIEWS: tuple[str, ...] = (
    *("steps", "alignment", *PARTS, "saliency", "gates", "tree", "passes"),
    *("picture", "filters", "maps", "sound", "graph"),
)
LAYERED = (*PARTS, "gates", "picture", "maps", "graph")  # views of which one layer can be plotted
MAX_TITLE = 200  # characters of source and of target


def plot_view(
    inspection: dict[str, Any],
    view: str | None = None,
    layer: int | None = None,
    head: int | None = None,
) -> "Figure":
    """Return the figure of one view; by default, the output tokens and their attention.

    layer, head: plot only this layer or attention head (0-based).
    """
    _check(inspection, view, layer, head)
    fonts = fonts_for(_texts(inspection))
    with styled(), fonts.style():
        figure = _plot(inspection, view, layer, head, fonts)
        _add_remarks(figure, inspection, fonts)
    return figure


def available_views(inspection: dict[str, Any]) -> list[str]:
    """Return the views for which an inspection has values."""
    parts = {one["part"] for one in inspection["attention"]}
    picture = inspection.get("picture") or {}
    has = {
        "picture": bool(picture),
        "sound": "sound" in inspection,
        "filters": bool(picture.get("filters")),
        "maps": bool(picture.get("maps")),
        "steps": any("probability" in step for step in inspection["steps"]),
        "alignment": "cross" in parts,
        **{part: part in parts for part in PARTS},
        "saliency": bool(inspection["saliency"]),
        "gates": bool(inspection["gates"]),
        "tree": bool(inspection["tree"]),
        "graph": bool(inspection.get("graph")),
        "passes": bool(inspection.get("search")),
    }
    return [view for view in VIEWS if has[view]]


def _check(
    inspection: dict[str, Any], view: str | None, layer: int | None, head: int | None
) -> None:
    """Raise UserError if the view, layer or head is not available."""
    if view is not None and view not in VIEWS:
        raise UserError(f"--view {view}: expected one of {', '.join(VIEWS)}")
    views_of_heads = (*PARTS, "graph")
    for name, value, views in (("head", head, views_of_heads), ("layer", layer, LAYERED)):
        if value is not None and view not in (None, *views):
            raise UserError(
                f"--{name} {value}: not supported for --view {view}", help=f"drop --{name}"
            )
    available = available_views(inspection)
    is_available = view is None or view in available
    if view is None and (layer, head) != (None, None):
        is_available = any(part in available for part in PARTS)
    if not available or not is_available:
        name = f"--view {view}" if view else "attention"
        raise UserError(
            f"{name}: not available for this model; available: {', '.join(available) or 'none'}",
            note=" ".join(inspection["notes"]),
        )


def _plot(
    inspection: dict[str, Any],
    view: str | None,
    layer: int | None,
    head: int | None,
    fonts: FontSet,
) -> "Figure":
    """Return the figure without the remarks below it."""
    title = _title(inspection, fonts)
    if view == "picture" or (view is None and head is None and "picture" in inspection):
        return plot_picture(title, inspection, layer, fonts)
    if view == "sound" or (view is None and head is None and "sound" in inspection):
        return plot_sound(title, inspection, fonts)
    if view == "filters":
        return plot_filters(title, inspection["picture"])
    if view == "maps":
        return plot_maps(title, inspection["picture"], layer)
    if view == "tree":
        return plot_search_tree(title, inspection["tree"], fonts)
    if view == "graph" or (view is None and inspection.get("graph")):
        return plot_graph(title, inspection, layer, head, fonts)
    if view == "passes":
        return plot_search_steps(title, inspection, fonts)
    if view == "gates":
        return plot_gates(title, inspection, layer, fonts)
    if view == "alignment":
        return plot_large(title, [alignment_map(inspection, fonts)])
    if view == "saliency":
        return plot_large(title, saliency_maps(inspection, fonts))
    if view == "steps" or (view is None and (layer, head) == (None, None)):
        return _plot_overview(title, inspection, view is None, fonts)
    maps = attention_maps(inspection, view, layer, head, fonts)
    if sum(map(len, maps)) == 1:
        return plot_large(title, maps[0])
    figure = new_figure(*grid_size(maps), title)
    plot_grid(figure, maps)
    return figure


def _plot_overview(
    title: str, inspection: dict[str, Any], with_attention: bool, fonts: FontSet
) -> "Figure":
    """Return a figure of the output tokens; below them, the attention or otherwise the saliency."""
    maps = attention_maps(inspection, None, None, None, fonts) if with_attention else []
    if with_attention and not maps and inspection["saliency"]:
        maps = [saliency_maps(inspection, fonts)]
    blocks: list[tuple[tuple[float, float], Callable[[Canvas], None]]] = []
    steps, per_row = inspection["steps"], steps_per_row(grid_size(maps)[0] if maps else 0)
    if any("probability" in step for step in steps):
        size = steps_size(steps, per_row)
        blocks.append((size, lambda canvas: plot_steps(canvas, steps, per_row, fonts)))
    if maps:
        blocks.append((grid_size(maps), lambda canvas: plot_grid(canvas, maps)))
    if not blocks:
        return plot_gates(title, inspection, None, fonts)
    width, heights = max(size[0] for size, _ in blocks), [size[1] for size, _ in blocks]
    figure = new_figure(width, sum(heights), title)
    subfigures = figure.subfigures(len(blocks), 1, squeeze=False, height_ratios=heights)
    for subfigure, (_, plot) in zip(subfigures[:, 0], blocks, strict=True):
        plot(subfigure)
    return figure


def _texts(inspection: dict[str, Any]) -> Iterator[str]:
    """Yield every text that the figure may contain."""
    yield from (inspection["model"]["name"], *inspection["inputs"], *inspection["unknown_tokens"])
    for side in ("source", "target"):
        yield from (inspection[side]["text"], *inspection[side]["tokens"])
    for step in inspection["steps"]:
        yield from (step["token"], *(name for name, _ in step.get("alternatives", [])))
    if inspection.get("graph"):
        yield from (*inspection["graph"]["nodes"], *inspection["graph"]["labels"])
    search = inspection.get("search") or {}
    yield from (one["token"] or "" for one in search.get("frames", []))
    yield from (one["token"] for tokens in search.get("passes", []) for one in tokens)
    yield from (one["text"] for one in search.get("lengths", []))
    if inspection["tree"]:
        yield from (node["token"] for node in inspection["tree"]["nodes"])


def _title(inspection: dict[str, Any], fonts: FontSet) -> str:
    """Return the title `source → target`; without texts, the name of the model."""
    texts = [inspection[side]["text"] for side in ("source", "target")]
    title = " → ".join(fonts.label(text, MAX_TITLE) for text in texts if text)
    return title or fonts.label(inspection["model"]["name"])


def _add_remarks(figure: "Figure", inspection: dict[str, Any], fonts: FontSet) -> None:
    """Add warnings below the figure."""
    remarks = [*fonts.warnings]
    if inspection["truncated"]:
        remarks.append("output truncated at the length limit")
    if inspection["unknown_tokens"]:
        remarks.append(
            f"unknown tokens: {' '.join(map(fonts.label, inspection['unknown_tokens']))}"
        )
    chars_per_line = int(14 * figure.get_figwidth())
    lines = [line for remark in remarks for line in textwrap.wrap(remark, chars_per_line)]
    if lines:
        figure.supxlabel("\n".join(lines), x=0.012, ha="left", fontsize=8, color=FAINT)
