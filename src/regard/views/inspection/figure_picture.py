"""Figures of images: what counts in the image, filters, and feature maps layer by layer."""

import base64
import math
from typing import TYPE_CHECKING, Any

import numpy as np

from regard.core.errors import UserError
from regard.views.figures.fonts import FontSet
from regard.views.figures.pixels import show_pixels
from regard.views.figures.style import hide_frame, new_figure
from regard.views.inspection.picture import cells_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

PANEL, GAP, TITLE = 1.9, 0.15, 0.35  # inches
TILE = 0.62  # inches of a filter or a feature map
ADDS, LOWERS = (0.816, 0.396, 0.110), (0.169, 0.373, 0.788)  # colors of values above and below 0
COVER = 0.9  # opacity of the largest value
MAX_IN_ROW = 6
MAX_TILES = 16  # per row


def pixels_of(picture: dict[str, Any]) -> np.ndarray:
    """Return the pixels (H, W, C) of a picture in an inspection."""
    pixels = picture["pixels"]
    flat = np.frombuffer(base64.b64decode(pixels["u8"]), np.uint8)
    return flat.reshape(pixels["shape"])


def plot_picture(
    title: str, inspection: dict[str, Any], layer: int | None, fonts: FontSet
) -> "Figure":
    """Return a figure of the image with saliency, class activation and attention over it.

    layer: of the attention (0-based), by default the last one.
    """
    picture = inspection["picture"]
    labels = [fonts.label(step["token"]) for step in inspection["steps"]]
    panels: list[tuple[str, np.ndarray | None]] = [("image", None)]
    panels += [
        (f"saliency: {label}", np.asarray(one))
        for label, one in zip(labels, picture["saliency"], strict=True)
    ]
    if picture["class_map"]:
        panels += [
            (f"class activation: {label}", np.asarray(one))
            for label, one in zip(labels, picture["class_map"]["values"], strict=True)
        ]
    panels += attention_panels(inspection, layer, labels)
    return _plot_panels(title, pixels_of(picture), panels)


def attention_panels(
    inspection: dict[str, Any], layer: int | None, labels: list[str]
) -> list[tuple[str, np.ndarray | None]]:
    """Return the attention over the image, as the mean of the heads of a layer.

    Cross-attention: one panel per output token. Otherwise that of the class token, or the mean.
    """
    grid = inspection["picture"]["grid"]
    entries = [one for one in inspection["attention"] if one["columns"] == "source"]
    for part in ("cross", "pooling", "encoder"):
        found = [one for one in entries if one["part"] == part]
        if not grid or not found:
            continue
        known = [one["layer"] for one in found]
        if layer is not None and layer not in known:
            shown = ", ".join(map(str, known))
            raise UserError(f"--layer {layer}: expected a layer of {part} attention: {shown}")
        entry = found[-1 if layer is None else known.index(layer)]
        rows = np.mean(entry["heads"], 0)
        if part == "encoder":  # the other positions attend to the image for themselves
            rows = rows[:1] if grid["before"] else rows.mean(0, keepdims=True)
            who = "class token" if grid["before"] else "all cells"
            labels = [f"{who}, layer {entry['layer']}"]
            return [(f"attention of {labels[0]}", cells_of(grid, rows[0]))]
        names = labels if len(labels) == len(rows) else [""] * len(rows)
        return [(f"attention: {n}", cells_of(grid, r)) for n, r in zip(names, rows, strict=True)]
    return []


def _plot_panels(
    title: str, pixels: np.ndarray, panels: list[tuple[str, np.ndarray | None]]
) -> "Figure":
    """Return a figure with one panel per map, each over the image."""
    columns = min(MAX_IN_ROW, len(panels))
    rows = math.ceil(len(panels) / columns)
    ratio = pixels.shape[0] / pixels.shape[1]
    size = columns * (PANEL + GAP), rows * (PANEL * ratio + TITLE) + 0.4
    figure = new_figure(max(4.0, size[0]), size[1], title)
    axes = list(figure.subplots(rows, columns, squeeze=False).flat)
    for panel, (name, values) in zip(axes, panels, strict=False):
        show_pixels(panel, pixels)
        if values is not None:
            _cover(panel, values, pixels.shape)
        panel.set_title(name, fontsize=8)
    for panel in axes[len(panels) :]:
        panel.remove()
    return figure


def _cover(axes: "Axes", values: np.ndarray, shape: tuple[int, ...]) -> None:
    """Plot signed values over an image of this shape, opaque where they are large."""
    colors = np.empty((*values.shape, 4))
    colors[..., :3] = np.where((values < 0)[..., None], LOWERS, ADDS)
    colors[..., 3] = COVER * np.sqrt(np.abs(values) / (np.abs(values).max() or 1.0))
    extent = (-0.5, shape[1] - 0.5, shape[0] - 0.5, -0.5)
    axes.imshow(colors, interpolation="nearest", extent=extent)


def plot_filters(title: str, picture: dict[str, Any]) -> "Figure":
    """Return a figure of the filters of the first layer; gray is 0."""
    filters = picture["filters"]
    values = np.asarray(filters["values"])
    top = np.abs(values).max() or 1.0
    name = f"{len(values)} of {filters['total']} filters of {filters['name']}"
    tiles = 0.5 + 0.5 * values / top
    return plot_tiles(title, [(name, tiles[..., :3] if values.shape[3] > 2 else tiles[..., 0])])


def plot_maps(title: str, picture: dict[str, Any], layer: int | None) -> "Figure":
    """Return a figure of the feature maps of all layers, or of one (0-based)."""
    layers = list(enumerate(picture["maps"]))
    if layer is not None and not 0 <= layer < len(layers):
        known = ", ".join(str(index) for index, _ in layers)
        raise UserError(f"--layer {layer}: expected a layer with feature maps (0-based): {known}")
    rows = []
    for index, one in layers if layer is None else layers[layer : layer + 1]:
        values = np.asarray(one["values"])
        top = np.abs(values).max((1, 2), keepdims=True)
        size = f"{values.shape[1]} x {values.shape[2]} x {one['total']}"
        rows.append((f"{index}: {one['name']}, {size}", values / np.where(top == 0, 1.0, top)))
    return plot_tiles(title, rows)


def plot_tiles(title: str, rows: list[tuple[str, np.ndarray]]) -> "Figure":
    """Return a figure with a row of small images per name: values (N, H, W) or (N, H, W, 3)."""
    columns = min(MAX_TILES, max(len(tiles) for _, tiles in rows))
    heights = [math.ceil(len(tiles) / columns) for _, tiles in rows]
    width = max(4.5, columns * TILE + 0.3)
    height = sum(heights) * TILE + len(rows) * 0.3 + 0.4
    figure = new_figure(width, height, title)
    parts = figure.subfigures(len(rows), 1, squeeze=False, height_ratios=heights)
    for part, (name, tiles), count in zip(parts[:, 0], rows, heights, strict=True):
        part.suptitle(name, x=0.012, ha="left", fontsize=8.5)
        axes = list(part.subplots(count, columns, squeeze=False).flat)
        for panel, tile in zip(axes, tiles, strict=False):
            lowest = -1 if tile.min() < 0 else 0
            panel.imshow(tile, cmap="gray", vmin=lowest, vmax=1, interpolation="nearest")
            hide_frame(panel)
            panel.set_xticks([])
            panel.set_yticks([])
        for panel in axes[len(tiles) :]:
            panel.remove()
    return figure
