"""The state of a decoder: what it remembers between steps.

Every tensor in a state has the batch first, whatever the decoder.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from regard.nn.kernels.cache import Cache

Tree = Any  # tensors in dicts, lists and tuples; other leaves (None, int) are left alone


@dataclass
class State:
    """memory: fixed for a sentence (encoder output, its mask, projected keys).
    past: changes each step (hidden vectors, key/value cache, position).

    Memory may have fewer rows than past: with k times as many past rows, each row of memory
    serves k rows in a row (the beams of one sentence), so memory is never repeated per beam.
    A `Cache` in the past has a row for each sentence as well.
    """

    memory: Tree
    past: Tree

    def select(self, rows: Tensor, sentences: Tensor | None = None) -> "State":
        """The state of these rows of the past, and of these sentences; None: all stay.

        The beams of a sentence stay together: so many rows in a row for each sentence.
        """
        if sentences is None:
            return State(self.memory, select(self.past, rows))
        memory = select(self.memory, sentences)
        return State(memory, select(self.past, rows, sentences))


def tree_map(function: Callable[[Any], Any], tree: Tree) -> Tree:
    """The same tree with `function` applied to each tensor and cache."""
    if isinstance(tree, Tensor | Cache):
        return function(tree)
    if isinstance(tree, dict):
        return {key: tree_map(function, value) for key, value in tree.items()}
    if isinstance(tree, tuple) and hasattr(tree, "_fields"):
        return type(tree)(*(tree_map(function, value) for value in tree))
    if isinstance(tree, list | tuple):
        return type(tree)(tree_map(function, value) for value in tree)
    return tree


def tree_cat(trees: list[Tree]) -> Tree:
    """Trees of the same shape as one, their rows below each other."""
    first = trees[0]
    if isinstance(first, Tensor):
        return torch.cat(trees)
    if isinstance(first, dict):
        return {key: tree_cat([tree[key] for tree in trees]) for key in first}
    if isinstance(first, list | tuple):
        return type(first)(tree_cat(list(below)) for below in zip(*trees, strict=True))
    return first


def leaves(tree: Tree, path: str = "") -> dict[str, Tensor]:
    """The tensors of a tree of dicts and tuples, by their path."""
    if isinstance(tree, Tensor):
        return {path: tree}
    below = tree.items() if isinstance(tree, dict) else enumerate(tree or ())
    found: dict[str, Tensor] = {}
    for key, value in below:
        found |= leaves(value, f"{path}/{key}" if path else str(key))
    return found


def tree_of(tensors: dict[str, Tensor]) -> Tree:
    """The way back from `leaves`; None where there is no tensor."""
    if "" in tensors:
        return tensors[""]
    below: dict[str, dict[str, Tensor]] = {}
    for path, tensor in tensors.items():
        key, _, rest = path.partition("/")
        below.setdefault(key, {})[rest] = tensor
    built = {key: tree_of(part) for key, part in below.items()}
    if not built:
        return None
    if all(key.isdecimal() for key in built):
        return tuple(built[key] for key in sorted(built, key=int))
    return built


def select(tree: Tree, rows: Tensor, sentences: Tensor | None = None) -> Tree:
    """These rows of every tensor, and these sentences of every cache; None: all of them."""

    def chosen(leaf: Tensor | Cache) -> Tensor | Cache:
        if isinstance(leaf, Cache):
            return leaf if sentences is None else leaf.select(sentences)
        return leaf.index_select(0, rows)

    return tree_map(chosen, tree)


def fold(x: Tensor, rows: int) -> Tensor:
    """(k*B, T, D) as (B, k*T, D), for B = rows: the beams of a sentence become positions."""
    if x.shape[0] == rows:
        return x
    return x.unflatten(0, (rows, -1)).flatten(1, 2)


def unfold(x: Tensor, like: Tensor) -> Tensor:
    """The way back from `fold`: (B, k*T, D) as (k*B, T, D), for `like` (k*B, T, ...)."""
    if x.shape[0] == like.shape[0]:
        return x
    return x.unflatten(1, (-1, like.shape[1])).flatten(0, 1)
