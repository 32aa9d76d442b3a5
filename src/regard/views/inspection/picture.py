"""What a model sees in an image: filters, feature maps, saliency and class activation.

R parts of the output, H height, W width, C channels of an image or map, F filters.
"""

import base64
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from regard.inference.model_capture import capture
from regard.nn.capture import Capture, Grid
from regard.nn.convolution import BlockStack
from regard.nn.convolution.sizes import Trace
from regard.tasks.inspection.forced_pass import ForcedPass
from regard.tasks.inspection.notes import Note

MAX_CHANNELS = 16  # feature maps per layer that are kept
MAX_FILTERS = 64
MAX_MAP_VALUES = 150_000  # of all kept feature maps; more layers keep fewer channels each
DIGITS = 4  # significant digits of numbers in JSON


@dataclass(frozen=True)
class FeatureMaps:
    """The output of a layer. channels: indices of the kept maps (k, H, W), of `total`.

    field: where the receptive fields of its cells are in the image, if known.
    """

    name: str
    total: int
    channels: tuple[int, ...]
    values: Tensor
    field: Trace | None = None

    def as_dict(self) -> dict[str, Any]:
        """Return the maps for JSON.

        field: size, first pixel of the first cell (negative in the padding), pixels between cells.
        """
        field = self.field and {
            "size": list(self.field.field),
            "start": list(self.field.start),
            "jump": list(self.field.jump),
        }
        values = {"values": numbers(self.values), "channels": list(self.channels)}
        return vars(self) | values | {"field": field}


@dataclass(frozen=True)
class Filters:
    """The first of `total` filters (F, H, W, C) of the layer that reads the image."""

    name: str
    total: int
    values: Tensor

    def as_dict(self) -> dict[str, Any]:
        """Return the filters for JSON."""
        return vars(self) | {"values": numbers(self.values)}


@dataclass(frozen=True)
class ClassMap:
    """Class activation (R, H, W): how much each cell of the last feature maps adds to a score."""

    name: str
    values: Tensor

    def as_dict(self) -> dict[str, Any]:
        """Return the map for JSON."""
        return vars(self) | {"values": numbers(self.values)}


@dataclass(frozen=True, kw_only=True)
class Picture:
    """An image as the model reads it, and what the model sees in it.

    pixels: (H, W, C), uint8. grid: which positions of the model are cells of the image.
    saliency: (R, H, W), gradient x input, summed over channels. class_map, filters: None if the
    model has none.
    """

    pixels: np.ndarray
    saliency: Tensor
    grid: Grid | None = None
    class_map: ClassMap | None = None
    filters: Filters | None = None
    maps: tuple[FeatureMaps, ...] = ()
    notes: tuple[Note, ...] = field(default=(), repr=False)

    def as_dict(self) -> dict[str, Any]:
        """Return the picture for JSON. Pixels are base64 of bytes, row by row."""
        data = base64.b64encode(np.ascontiguousarray(self.pixels).tobytes()).decode("ascii")
        return {
            "pixels": {"shape": list(self.pixels.shape), "u8": data},
            "grid": None if self.grid is None else self.grid._asdict(),
            "saliency": numbers(self.saliency),
            "class_map": self.class_map and self.class_map.as_dict(),
            "filters": self.filters and self.filters.as_dict(),
            "maps": [one.as_dict() for one in self.maps],
        }


def inspect_picture(forced_pass: ForcedPass, captured: Capture) -> Picture:
    """Return what the model sees in the image of a forced pass. captured: of one pass."""
    request = forced_pass.request
    saliency, class_map = image_gradients(forced_pass)
    maps = feature_maps(captured, request.model)
    filters = first_filters(captured, request.task.source.shape.size)
    notes = [Note("picture.gradients")]
    if class_map is None:
        notes.append(Note("picture.maps"))
    if filters is None:
        notes.append(Note("picture.filters"))
    if any(len(one.channels) < one.total for one in maps):
        notes.append(Note("picture.channels"))
    return Picture(
        pixels=request.task.source.picture(request.source),
        saliency=saliency,
        grid=image_grid(captured),
        class_map=class_map,
        filters=filters,
        maps=maps,
        notes=tuple(notes),
    )


def image_gradients(forced_pass: ForcedPass) -> tuple[Tensor, ClassMap | None]:
    """Return the saliency (R, H, W) of each part of the output, and its class activation, if any.

    Saliency is gradient x input (Shrikumar et al. 2017, 2.2). Class activation is the sum of the
    last feature maps, each weighted by the mean of its gradient (Grad-CAM, Selvaraju et al. 2017,
    eq. 1-2, without the rectifier); after global mean pooling and a linear layer, it is that of
    Zhou et al. 2016.
    """
    parts = list(range(forced_pass.lengths()[0]))
    saliency, activation, name = list[Tensor](), list[Tensor](), None
    with torch.enable_grad(), torch.backends.cudnn.flags(enabled=False):
        for start in range(0, len(parts), forced_pass.max_copies()):
            forced_pass.request.on_step()
            chunk = parts[start : start + forced_pass.max_copies()]
            with capture(forced_pass.request.model) as captured:
                score = forced_pass.output_scores(chunk).sum()
            name = last_maps(captured)
            values = {"": captured.inputs["frontend"]}
            values |= {name: captured.maps[name]} if name else {}
            gradients = captured.gradients_of(score, values)
            saliency.append((gradients[""] * values[""]).sum(-1).detach().float().cpu())
            if name:
                weights = gradients[name].mean((1, 2), keepdim=True)
                activation.append((weights * values[name]).sum(-1).detach().float().cpu())
    found = ClassMap(name, torch.cat(activation)) if name else None
    return torch.cat(saliency), found


def last_maps(captured: Capture) -> str | None:
    """Return the name of the last layer whose feature maps have several cells."""
    names = [name for name, x in captured.maps.items() if math.prod(x.shape[1:3]) > 1]
    return names[-1] if names else None


def feature_maps(captured: Capture, model: nn.Module) -> tuple[FeatureMaps, ...]:
    """Return the feature maps of each layer, those with the largest means first in each."""
    layers = {name: x[0].float().cpu() for name, x in captured.maps.items()}
    layers = {name: x for name, x in layers.items() if math.prod(x.shape[:2]) > 1}
    cells = sum(math.prod(x.shape[:2]) for x in layers.values())
    limit = max(1, min(MAX_CHANNELS, MAX_MAP_VALUES // max(1, cells)))
    found = []
    for name, x in layers.items():
        order = x.mean((0, 1)).argsort(descending=True, stable=True)[:limit]
        kept = x[..., order].permute(2, 0, 1)
        field = field_of(model, name)
        found.append(FeatureMaps(name, x.shape[2], tuple(order.tolist()), kept, field))
    return tuple(found)


def field_of(model: nn.Module, name: str) -> Trace | None:
    """Return the receptive fields of a block of a convolutional network."""
    stack, _, index = name.rpartition(".blocks.")
    found = model.get_submodule(stack) if stack and index.isdecimal() else None
    return found.traces[int(index)] if isinstance(found, BlockStack) else None


def first_filters(captured: Capture, channels: int) -> Filters | None:
    """Return the filters of the first layer if they read the channels of the image."""
    for name, filters in captured.filters.items():
        if filters.shape[-1] == channels and math.prod(filters.shape[1:3]) > 1:
            kept = filters[:MAX_FILTERS].detach().float().cpu()
            return Filters(name, len(filters), kept)
        return None
    return None


def image_grid(captured: Capture) -> Grid | None:
    """Return the grid of the positions that the last module with one recorded."""
    return list(captured.grids.values())[-1] if captured.grids else None


def position_names(grid: Grid) -> tuple[str, ...]:
    """Return the name of each position: `class`, or row and column of its cell, from 1."""
    before = ["class"] if grid.before == 1 else [f"token {n}" for n in range(grid.before)]
    cells = [f"{y},{x}" for y in range(1, grid.rows + 1) for x in range(1, grid.columns + 1)]
    return (*before, *cells)


def numbers(values: Tensor) -> Any:
    """Return a tensor as nested lists of numbers with a few significant digits."""
    array = values.double().numpy()
    scale = np.where(array == 0, 1.0, np.abs(array))
    power = 10.0 ** (DIGITS - 1 - np.floor(np.log10(scale)))
    rounded: Any = (np.round(array * power) / power).tolist()
    return rounded


def cells_of(grid: dict[str, int], row: Sequence[float]) -> np.ndarray:
    """Return the weights of a row of attention as the cells of a grid."""
    cells = np.asarray(row, np.float64)[grid["before"] :]
    return cells.reshape(grid["rows"], grid["columns"])
