"""Trees: nested dicts, lists and tuples of tensors."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

Tree = Any  # nested dicts, lists and tuples; None and numbers are left unchanged


class Selects(ABC):
    """A tree leaf that is not a tensor and implements the selection of rows."""

    @abstractmethod
    def select(self, rows: Tensor, sentences: Tensor | None) -> "Selects":
        """Return the leaf with these rows. sentences: the sentences of the rows (None: all)."""


def tree_map(function: Callable[[Any], Any], tree: Tree) -> Tree:
    """Return the tree with `function` applied to each tensor and each `Selects` leaf."""
    if isinstance(tree, Tensor | Selects):
        return function(tree)
    if isinstance(tree, dict):
        return {key: tree_map(function, value) for key, value in tree.items()}
    if isinstance(tree, tuple) and hasattr(tree, "_fields"):
        return type(tree)(*(tree_map(function, value) for value in tree))
    if isinstance(tree, list | tuple):
        return type(tree)(tree_map(function, value) for value in tree)
    return tree


def tree_cat(trees: list[Tree]) -> Tree:
    """Concatenate the rows of trees with the same structure."""
    first = trees[0]
    if isinstance(first, Tensor):
        return torch.cat(trees)
    if isinstance(first, dict):
        return {key: tree_cat([tree[key] for tree in trees]) for key in first}
    if isinstance(first, list | tuple):
        return type(first)(tree_cat(list(below)) for below in zip(*trees, strict=True))
    return first


def leaves(tree: Tree, path: str = "") -> dict[str, Tensor]:
    """Return the tensors of a tree of dicts and tuples by path, such as `layers/0/key`."""
    if isinstance(tree, Tensor):
        return {path: tree}
    below = tree.items() if isinstance(tree, dict) else enumerate(tree or ())
    found: dict[str, Tensor] = {}
    for key, value in below:
        found |= leaves(value, f"{path}/{key}" if path else str(key))
    return found


def tree_of(tensors: dict[str, Tensor]) -> Tree:
    """Return the tree of tensors by path, the inverse of `leaves`; None without tensors."""
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
