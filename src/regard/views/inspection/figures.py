"""Figures of an inspection, for a paper or a slide: one part of it, or the answer and attention."""

import textwrap
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from regard.core.errors import UserError
from regard.views.figures.fonts import FontSet, letters
from regard.views.figures.style import FAINT, new_figure, styled
from regard.views.inspection.figure_gates import draw_gates
from regard.views.inspection.figure_maps import draw_grid, grid_size, large
from regard.views.inspection.figure_steps import draw_steps, steps_a_row, steps_size
from regard.views.inspection.figure_tree import draw_search
from regard.views.inspection.figure_views import PARTS, alignment, heads, saliency

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from regard.views.inspection.figure_maps import Place

SHOWS = ("steps", "alignment", *PARTS, "saliency", "gates", "tree")
LONGEST_TITLE = 200  # signs of the source and of the answer each


def draw(
    inspection: dict[str, Any],
    show: str | None = None,
    layer: int | None = None,
    head: int | None = None,
) -> "Figure":
    """The figure of one part, or where none is named, of the answer and the attention behind it.

    layer, head: counted from 0; of attention only this layer, this head, or this one map.
    """
    _check(inspection, show, layer, head)
    hand = letters(_texts(inspection))
    with styled(), hand.style():
        figure = _drawn(inspection, show, layer, head, hand)
        _remarks(figure, inspection, hand)
    return figure


def shows_of(inspection: dict[str, Any]) -> list[str]:
    """What of SHOWS this inspection has."""
    parts = {one["part"] for one in inspection["attention"]}
    has = {
        "steps": any("p" in step for step in inspection["steps"]),
        "alignment": "cross" in parts,
        **{part: part in parts for part in PARTS},
        "saliency": bool(inspection["saliency"]),
        "gates": bool(inspection["gates"]),
        "tree": bool(inspection["tree"]),
    }
    return [show for show in SHOWS if has[show]]


def _check(
    inspection: dict[str, Any], show: str | None, layer: int | None, head: int | None
) -> None:
    """Refuses what cannot be drawn, and says what can."""
    if show is not None and show not in SHOWS:
        raise UserError(f"--show {show}: none of {', '.join(SHOWS)}")
    for name, value, fitting in (("head", head, PARTS), ("layer", layer, (*PARTS, "gates"))):
        if value is not None and show not in (None, *fitting):
            raise UserError(f"--{name} {value}: means nothing for --show {show}; leave it out")
    there = shows_of(inspection)
    wanted = show is None or show in there
    if show is None and (layer, head) != (None, None):
        wanted = any(part in there for part in PARTS)
    if not there or not wanted:
        asked = f"--show {show}" if show else "attention"
        can = f"--show can draw: {', '.join(there)}" if there else "there is nothing to draw"
        raise UserError(" ".join([f"{asked}: this model has none; {can}.", *inspection["notes"]]))


def _drawn(
    inspection: dict[str, Any], show: str | None, layer: int | None, head: int | None, hand: FontSet
) -> "Figure":
    """The figure, without the remarks under it."""
    title = _title(inspection, hand)
    if show == "tree":
        return draw_search(title, inspection["tree"], hand)
    if show == "gates":
        return draw_gates(title, inspection, layer, hand)
    if show == "alignment":
        return large(title, [alignment(inspection, hand)])
    if show == "saliency":
        return large(title, saliency(inspection, hand))
    if show == "steps" or (show is None and (layer, head) == (None, None)):
        return _overview(title, inspection, show is None, hand)
    maps = heads(inspection, show, layer, head, hand)
    if sum(map(len, maps)) == 1:
        return large(title, maps[0])
    figure = new_figure(*grid_size(maps), title)
    draw_grid(figure, maps)
    return figure


def _overview(title: str, inspection: dict[str, Any], attended: bool, hand: FontSet) -> "Figure":
    """The answer token by token; under it the attention, or where there is none the saliency."""
    maps = heads(inspection, None, None, None, hand) if attended else []
    if attended and not maps and inspection["saliency"]:
        maps = [saliency(inspection, hand)]
    blocks: list[tuple[tuple[float, float], Callable[[Place], None]]] = []
    steps, a_row = inspection["steps"], steps_a_row(grid_size(maps)[0] if maps else 0)
    if any("p" in step for step in steps):
        blocks.append((steps_size(steps, a_row), lambda into: draw_steps(into, steps, a_row, hand)))
    if maps:
        blocks.append((grid_size(maps), lambda into: draw_grid(into, maps)))
    if not blocks:
        return draw_gates(title, inspection, None, hand)
    width, heights = max(size[0] for size, _ in blocks), [size[1] for size, _ in blocks]
    figure = new_figure(width, sum(heights), title)
    inner = figure.subfigures(len(blocks), 1, squeeze=False, height_ratios=heights)
    for place, (_, fill) in zip(inner[:, 0], blocks, strict=True):
        fill(place)
    return figure


def _texts(inspection: dict[str, Any]) -> Iterator[str]:
    """All that may be written."""
    yield from (inspection["model"]["name"], *inspection["inputs"], *inspection["unknown"])
    for side in ("source", "target"):
        yield from (inspection[side]["text"], *inspection[side]["tokens"])
    for step in inspection["steps"]:
        yield from (step["token"], *(name for name, _ in step.get("others", [])))
    if inspection["tree"]:
        yield from (node["token"] for node in inspection["tree"]["nodes"])


def _title(inspection: dict[str, Any], hand: FontSet) -> str:
    """What went in and what came out."""
    texts = [inspection[side]["text"] for side in ("source", "target")]
    title = " → ".join(hand.label(text, LONGEST_TITLE) for text in texts if text)
    return title or hand.label(inspection["model"]["name"])


def _remarks(figure: "Figure", inspection: dict[str, Any], hand: FontSet) -> None:
    """Under the picture, what one must know of it."""
    said = [*hand.warnings]
    if inspection["cut"]:
        said.append("the answer was cut: it came to the longest that was allowed")
    if inspection["unknown"]:
        said.append(f"unknown to the model: {' '.join(map(hand.label, inspection['unknown']))}")
    letters_a_line = int(14 * figure.get_figwidth())
    lines = [line for remark in said for line in textwrap.wrap(remark, letters_a_line)]
    if lines:
        figure.supxlabel("\n".join(lines), x=0.012, ha="left", fontsize=8, color=FAINT)
