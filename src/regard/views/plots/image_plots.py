"""Figures of images: a tensor of channels, feature maps of filters, pooling before and after."""

from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from regard.data.reading.image_files import read_image
from regard.nn.convolution.conv import Conv
from regard.nn.convolution.pool import MapPool
from regard.nn.convolution.sizes import MapShape
from regard.views.figures.pixels import show_pixels
from regard.views.figures.style import FAINT, INK, PAPER, hide_frame, new_figure, panels
from regard.views.plots.plot_args import PlotArgs

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

SIDE = 16  # pixels of the drawn image
CHANNELS = ("red", "green", "blue")
LINE_ROWS = 12  # in which the flattened image is drawn
FILTERS = {
    "vertical edges": [[-1, 0, 1], [-2, 0, 2], [-1, 0, 1]],  # Sobel
    "horizontal edges": [[-1, -2, -1], [0, 0, 0], [1, 2, 1]],
    "diagonal": [[-2, -1, 0], [-1, 0, 1], [0, 1, 2]],
}
NUMBERS = [[1, 3, 2, 0], [4, 8, 1, 5], [0, 2, 6, 6], [1, 1, 3, 7]]


def drawn_image() -> np.ndarray:
    """Return an image (H, W, 3): a red disk left of a blue square on a light background."""
    pixels = np.full((SIDE, SIDE, 3), 235, np.uint8)
    rows, columns = np.mgrid[:SIDE, :SIDE]
    disk = (rows - 5.5) ** 2 + (columns - 4.5) ** 2 < 12
    pixels[disk] = (214, 48, 40)
    pixels[7:13, 9:15] = (40, 84, 200)
    return pixels


def _pixels(args: PlotArgs) -> np.ndarray:
    """Return the image of the file in `text`, by default a drawn one."""
    return drawn_image() if args.text is None else read_image(args.text).pixels


def plot_tensor(args: PlotArgs) -> "Figure":
    """Plot an image, its channels, and all its values as one vector."""
    pixels = _pixels(args)
    height, width, channels = pixels.shape
    text = f"An image as a tensor: {height} x {width} x {channels}"
    figure = new_figure(8.6, 4.4, f"{text}, and as a vector of {pixels.size:,} values")
    parts: Any = figure.subfigures(2, 1, height_ratios=(2.1, 1))
    upper, lower = parts
    axes = panels(upper, 1, 1 + channels)
    show_pixels(axes[0], pixels)
    axes[0].set_title("image")
    for index in range(channels):
        one = pixels[..., index : index + 1]
        if channels == 3:  # in its own color
            one = np.zeros_like(pixels)
            one[..., index] = pixels[..., index]
        show_pixels(axes[1 + index], one)
        name = CHANNELS[index] if channels == 3 else "values"
        axes[1 + index].set_title(f"{name}: {height} x {width}")
    (line,) = panels(lower, 1, 1)
    values = pixels.reshape(-1).astype(float)
    padded = np.full(-(-len(values) // LINE_ROWS) * LINE_ROWS, np.nan)
    padded[: len(values)] = values
    line.imshow(padded.reshape(LINE_ROWS, -1), cmap="gray", vmin=0, vmax=255, aspect="auto")
    _bare(line)
    line.set_title("the vector, in rows one below the other", color=FAINT, fontweight="normal")
    return figure


def plot_feature_maps(args: PlotArgs) -> "Figure":
    """Plot three known filters and their feature maps of an image."""
    pixels = _pixels(args)
    gray = torch.from_numpy(pixels.mean(2)).float()[None, None] / 255
    conv: Any = Conv(width=len(FILTERS), size=3, padding=0, activation="relu")
    layer = conv.build(MapShape(1, *pixels.shape[:2]))
    with torch.no_grad():
        layer.conv.weight.copy_(torch.tensor(list(FILTERS.values())).float()[:, None])
        maps = layer(gray)[0].numpy()
    figure = new_figure(7.6, 4.6, "Three filters and their feature maps: one set of weights each")
    axes = panels(figure, 2, 1 + len(FILTERS), height_ratios=(1, 2.2))
    axes[0].remove()
    show_pixels(axes[1 + len(FILTERS)], pixels)
    axes[1 + len(FILTERS)].set_title(f"image, {pixels.shape[0]} x {pixels.shape[1]}")
    for index, (name, rows) in enumerate(FILTERS.items()):
        _numbers(axes[1 + index], np.array(rows), -4, name)
        panel = axes[2 + len(FILTERS) + index]
        panel.imshow(maps[index], cmap="gray", vmin=0, interpolation="nearest")
        _bare(panel)
        panel.set_title(f"map, {maps.shape[1]} x {maps.shape[2]}")
    return figure


def plot_pooling(args: PlotArgs) -> "Figure":
    """Plot a map before and after max and mean pooling, in numbers and on an image."""
    figure = new_figure(7.6, 5.2, "Pooling: one value for each window of 2 x 2")
    axes = panels(figure, 2, 3)
    numbers = np.array(NUMBERS, np.float32)
    gray = _pixels(args).mean(2).astype(np.float32)
    edges = np.hypot(*(np.diff(gray, axis=axis, append=gray.max()) for axis in (0, 1)))
    for row, (values, as_numbers) in enumerate(((numbers, True), (edges, False))):
        kinds = [("before", values)]
        for mode in ("max", "mean"):
            layer = MapPool(mode=mode).build(MapShape(1, *values.shape))
            pooled = layer(torch.from_numpy(values)[None, None])[0, 0].numpy()
            kinds.append((f"{mode} pooling", pooled))
        for column, (name, found) in enumerate(kinds):
            panel = axes[3 * row + column]
            title = f"{name}, {found.shape[0]} x {found.shape[1]}"
            if as_numbers:
                _numbers(panel, found, 0, title, float(numbers.max()))
            else:
                top = float(values.max())
                panel.imshow(found, cmap="gray", vmin=0, vmax=top, interpolation="nearest")
                _bare(panel)
                panel.set_title(title)
    return figure


def _bare(axes: "Axes") -> None:
    """Remove frame and ticks."""
    hide_frame(axes)
    axes.set_xticks([])
    axes.set_yticks([])


def _numbers(
    axes: "Axes", values: np.ndarray, low: float, title: str, high: float | None = None
) -> None:
    """Plot a small matrix with its numbers. low, high: limits of the gray levels."""
    top = -low if high is None else high
    axes.imshow(values, cmap="gray_r", vmin=low, vmax=top, interpolation="nearest")
    _bare(axes)
    for (y, x), value in np.ndenumerate(values):
        ink = PAPER if (value - low) / (top - low) > 0.55 else INK
        axes.text(x, y, f"{value:g}", ha="center", va="center", fontsize=9, color=ink)
    axes.set_title(title)
