"""The parts of a model with their parameters, found in its module tree.

Convolutional networks know their layers (`nn.convolution.sizes`). Other sizes and the operations
come from a forward pass on torch's meta device, which computes shapes only.
B rows, S positions, D width.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import nn

from regard.inputs.graph_frontends import BagProjection
from regard.nn.convolution import BlockStack


@dataclass(frozen=True)
class Part:
    """A part of a model.

    output: its size, such as "28 x 28 x 6" or "50 x 64" ("": unknown). field: receptive field in
    pixels, as (height, width). operations: multiply-adds per example, or per token if
    that is `Description.per`. repeat: equal parts that follow one another, in one line.
    """

    name: str
    what: str
    output: str = ""
    field: tuple[int, int] | None = None
    parameters: int = 0
    operations: int = 0
    repeat: int = 1

    @property
    def section(self) -> str:
        """Return the part of the model that contains this one: frontend, encoder, ..."""
        return self.name.partition(".")[0].partition(" ")[0]


def find_parts(model: nn.Module) -> list[Part]:
    """Return the parts of a model that have parameters, and all layers of its networks."""
    seen: set[int] = set()
    return [part for name, child in model.named_children() for part in _parts(child, name, seen)]


def _parts(module: nn.Module, name: str, seen: set[int]) -> Iterator[Part]:
    """Yield the parts of a module. seen: ids of parameters that were counted."""
    if isinstance(module, BlockStack):
        seen |= {id(weight) for weight in module.parameters()}
        stem = name.removesuffix(".stack")
        for layer in module.layers:
            yield Part(
                *(f"{stem} {layer.name}", layer.what, str(layer.after.shape), layer.after.field),
                *(layer.parameters, layer.operations),
            )
        return
    children = [(key, child) for key, child in module.named_children() if _has_weights(child)]
    is_element = name.rpartition(".")[2].isdigit()
    if is_element or not children:
        count = _count(module.parameters(), seen)
        if count:
            yield Part(name, describe_module(module), parameters=count)
        return
    for key, weight in module.named_parameters(recurse=False):
        if count := _count([weight], seen):
            shape = " x ".join(f"{size:,}" for size in weight.shape)
            yield Part(f"{name}.{key}", f"{shape} learned", parameters=count)
    for key, child in children:
        yield from _parts(child, f"{name}.{key}", seen)


def _has_weights(module: nn.Module) -> bool:
    return any(True for _ in module.parameters())


def _count(weights: Any, seen: set[int]) -> int:
    """Return the number of values in parameters that were not counted before."""
    new = {id(weight): weight.numel() for weight in weights if id(weight) not in seen}
    seen |= set(new)
    return sum(new.values())


def describe_module(module: nn.Module) -> str:
    """Return the class of a module in words, with its sizes."""
    words = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", type(module).__name__).lower()
    if isinstance(module, nn.Linear):
        return f"linear, {module.in_features:,} to {module.out_features:,}"
    heads = [count for part in module.modules() if (count := getattr(part, "heads", 0)) > 1]
    weight = getattr(module, "weight", None)
    if isinstance(weight, torch.Tensor) and weight.dim() == 2:
        words += f", {weight.shape[0]:,} x {weight.shape[1]:,}"
    return words + (f", {heads[0]} heads" if heads else "")


def matrix_products(module: nn.Module) -> int:
    """Return the multiply-adds of a module per token: one for each value of a matrix.

    Embeddings are read, not multiplied. Attention scores, which grow with the length, are omitted.
    """
    return sum(
        weight.numel()
        for part in module.modules()
        if not hasattr(part, "scale") or isinstance(part, nn.Linear)
        if not isinstance(part, BagProjection)
        for weight in part.parameters(recurse=False)
        if weight.dim() == 2
    )


def merge_equal(parts: list[Part]) -> list[Part]:
    """Return the parts with numbered ones that follow one another and are equal as one."""
    found: list[Part] = []
    first: list[int] = []
    for part in parts:
        stem, _, number = part.name.rpartition(".")
        last = found[-1] if found else None
        if (
            last is not None
            and number.isdigit()
            and last.name.rpartition(".")[0] == stem
            and replace(last, name="", repeat=1) == replace(part, name="", repeat=1)
        ):
            count = last.repeat + 1
            found[-1] = replace(last, name=f"{stem}.{first[-1]}-{number}", repeat=count)
            continue
        found.append(part)
        first.append(int(number) if number.isdigit() else 0)
    return found


def total(parts: list[Part], field: str) -> int:
    """Return the sum of a field of all parts."""
    return sum(getattr(part, field) * part.repeat for part in parts)
