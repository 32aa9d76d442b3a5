"""Description of a run, a configuration or a recipe, without memory for its weights.

B rows, H height, W width, C channels, S positions, D width.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.flop_counter import FlopCounterMode

from regard.config.defaults import fill_defaults
from regard.config.load import Config, load_config
from regard.core.data_stats import DataStats
from regard.core.errors import UserError
from regard.data.tensors.padded import Batch, Padded
from regard.inputs.input import InputShape
from regard.storage.run_files import read_config, run_metadata
from regard.views.description.parts import Part, find_parts, matrix_products

EXAMPLES = 10_000  # assumed for the defaults of a model without data
IMAGE, VOCABULARY, OUTPUTS = (28, 28, 1), 8_000, 10  # assumed without a run
CHARACTERS = 100


@dataclass(frozen=True)
class Description:
    """A described model. per: unit of the operations (`image` or `token`). notes: assumptions."""

    name: str
    task: str
    input: str
    parts: list[Part]
    per: str
    notes: list[str]


def describe(place: str, input: list[int] | None, outputs: int | None) -> Description:
    """Return the description of a run folder, a configuration file or a recipe.

    input: height, width and channels of images, or the size of the source vocabulary. outputs:
    number of labels or size of the target vocabulary. A run knows both.
    """
    folder = Path(place)
    if folder.is_dir():
        if input or outputs:
            raise UserError("--input, --outputs: only supported for recipes; a run has its sizes")
        config = read_config(folder)
        task = config.task.load(folder)
        model = on_meta(lambda: task.build(config.model))
        name = run_metadata(folder).get("name") or folder.name
        return _description(name, config, model, task.source.shape, [])
    config = load_config(place)
    shape, count, notes = _assumed(config, input, outputs)
    config, _ = fill_defaults(config, _stats(config, shape, count))
    model = on_meta(lambda: _build(config, shape, count))
    return _description(Path(place).stem, config, model, shape, notes)


def on_meta(build: Any) -> nn.Module:
    """Return a model on the meta device, which has shapes but no values."""
    with torch.device("meta"):
        model: nn.Module = build()
    return model.eval()


def _assumed(
    config: Config, input: list[int] | None, outputs: int | None
) -> tuple[InputShape, int, list[str]]:
    """Return the input shape, the number of outputs, and notes on what was assumed."""
    notes = []
    source = getattr(config.task, "source", None)
    kind = "text" if source is None else source.kind
    encoder, frontend = (getattr(config.model, name, None) for name in ("encoder", "frontend"))
    if "grid" in getattr(encoder, "needs", ()) or getattr(frontend, "reads", "") == "image":
        kind = "image"
    if kind == "image":
        size, channels = getattr(source, "size", None), getattr(source, "channels", None)
        known = [*size, channels] if size and channels else None
        image = input or known or list(IMAGE)
        if len(image) != 3 or min(image) < 1:
            raise UserError(
                f"--input {','.join(map(str, image))}: expected height, width and channels",
                help="--input 224,224,3",
            )
        if not (input or known):
            notes.append(f"images of {IMAGE[0]} x {IMAGE[1]} x {IMAGE[2]} (--input)")
        published, shape = bool(known), InputShape(kind, image[2], grid=(image[0], image[1]))
    else:
        size = input or [VOCABULARY]
        if len(size) != 1 or size[0] < 1:
            raise UserError(
                "--input: expected the size of the source vocabulary", help="--input 8000"
            )
        if not input:
            notes.append(f"{VOCABULARY:,} source tokens (--input)")
        published, shape = False, InputShape(kind, size[0], characters=CHARACTERS)
    labels = config.task.kind in ("classify", "tag", "regress")
    count = outputs or (1_000 if published else OUTPUTS if labels else VOCABULARY)
    if not outputs:
        notes.append(f"{count:,} {'labels' if labels else 'target tokens'} (--outputs)")
    return shape, count, notes


def _stats(config: Config, shape: InputShape, outputs: int) -> DataStats:
    """Return statistics of imagined data of this shape."""
    is_image = any(shape.grid)
    return DataStats(
        *(EXAMPLES, EXAMPLES if is_image else 20 * EXAMPLES, outputs, not is_image),
        labels=config.task.kind != "transduce",
        vectors=shape.values if is_image else 0,
        grid=shape.grid,
        source=shape.kind,
        target_tokens=10 * EXAMPLES if config.task.kind == "transduce" else 0,
    )


def _build(config: Config, shape: InputShape, outputs: int) -> nn.Module:
    """Return the model for these sizes."""
    sizes: dict[str, Any] = {"shape": shape, "outputs": outputs}
    if config.task.kind == "transduce":
        sizes = {"shape": shape, "target": outputs, "shared": False}
    if config.task.kind == "language-model":
        raise UserError("language models without data: not supported", help="describe a run")
    if config.task.writes_sounds:
        raise UserError("models of sounds without data: not supported", help="describe a run")
    model: nn.Module = config.model.build(**sizes)
    return model


def _description(
    name: str, config: Config, model: nn.Module, shape: InputShape, notes: list[str]
) -> Description:
    """Return the description of a model on the meta device."""
    parts, is_image = find_parts(model), any(shape.grid)
    modules = dict(model.named_modules())
    if is_image:
        sizes, operations = traced(model, shape)
        operations |= recurrent_products(modules, sizes)
        parts = [_with_sizes(part, sizes, operations) for part in parts]
        text = f"images of {shape.grid[0]} x {shape.grid[1]} x {shape.size}"
    else:
        parts = [
            replace(part, operations=matrix_products(modules[part.name]))
            if part.name in modules
            else part
            for part in parts
        ]
        text = f"{shape.kind}, {shape.size:,} {'numbers' if shape.kind == 'vectors' else 'tokens'}"
    return Description(name, config.task.kind, text, parts, "image" if is_image else "token", notes)


def _with_sizes(part: Part, sizes: dict[str, str], operations: dict[str, int]) -> Part:
    """Return the part with its output size and operations, unless it knows them."""
    if part.output:
        return part
    count = operations.get(part.name, 0)
    return replace(part, output=sizes.get(part.name, ""), operations=count)


def traced(model: nn.Module, shape: InputShape) -> tuple[dict[str, str], dict[str, int]]:
    """Return the output size and the multiply-adds of each module for one image, by name.

    A decoder is called for one token.
    """
    sizes: dict[str, str] = {}
    counter = FlopCounterMode(display=False)
    with torch.device("meta"), torch.no_grad(), _output_sizes(model, sizes), counter:
        image = torch.empty(1, *shape.grid, shape.size)
        source = Padded(image, torch.ones(1, 1, dtype=torch.bool))
        OnePass(model)(source)
    prefix = f"{OnePass.__name__}.model."
    operations = {
        name.removeprefix(prefix): sum(counts.values()) // 2
        for name, counts in counter.get_flop_counts().items()
    }
    return sizes, operations


def recurrent_products(modules: dict[str, nn.Module], sizes: dict[str, str]) -> dict[str, int]:
    """Return the multiply-adds of recurrent layers by name, which torch does not count.

    sizes: output sizes by name, such as "49 x 128"; one position if unknown.
    """
    found = {}
    for name, part in modules.items():
        if isinstance(part, nn.RNNBase):
            *positions, _ = sizes.get(name, "").split(" x ")
            found[name] = matrix_products(part) * int((positions or ["1"])[0])
    return found


class OnePass(nn.Module):
    """A model called for one image, and for one output token if it has a decoder."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model: Any = model

    def forward(self, source: Padded) -> Any:
        """Return the output of the model."""
        if not hasattr(self.model, "decoder"):
            return self.model(Batch(source))
        return self.model.step(torch.zeros(1, 1, dtype=torch.long), self.model.start(source))


@contextlib.contextmanager
def _output_sizes(model: nn.Module, sizes: dict[str, str]) -> Iterator[None]:
    """Record the size of the first output of each module inside the block."""

    def record(name: str) -> Any:
        def hook(module: nn.Module, given: Any, found: Any) -> None:
            while isinstance(found, tuple):  # the vectors of `Padded`, the logits of `Outputs`
                found = found[0]
            if isinstance(found, Tensor):
                sizes[name] = " x ".join(map(str, found.shape[1:]))

        return hook

    hooks = [part.register_forward_hook(record(name)) for name, part in model.named_modules()]
    try:
        yield
    finally:
        for hook in hooks:
            hook.remove()
