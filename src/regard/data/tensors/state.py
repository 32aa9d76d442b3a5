"""The state of a decoder between steps.

Every tensor of a state has the batch dimension first. Other leaves implement the selection of rows
themselves (`Selects`).
"""

from dataclasses import dataclass

from torch import Tensor

from regard.data.tensors.tree import Selects, Tree, tree_map


@dataclass
class State:
    """The state of a decoder.

    memory: fixed per sentence (encoder output, its mask, projected keys).
    past: changes each step (hidden vectors, key/value cache, position).
    If past has k times the rows of memory, each row of memory belongs to k consecutive rows (the
    beams of one sentence), so memory is never repeated per beam.
    """

    memory: Tree
    past: Tree

    def select(self, rows: Tensor, sentences: Tensor | None = None) -> "State":
        """Return the state of these rows of the past, and of these sentences (None: all).

        The beams of a sentence stay consecutive.
        """
        past = select(self.past, rows, sentences)
        return State(self.memory if sentences is None else select(self.memory, sentences), past)


def select(tree: Tree, rows: Tensor, sentences: Tensor | None = None) -> Tree:
    """Return these rows of every leaf; sentences: those they belong to (None: all)."""

    def selected(leaf: Tensor | Selects) -> Tensor | Selects:
        if isinstance(leaf, Tensor):
            return leaf.index_select(0, rows)
        return leaf.select(rows, sentences)

    return tree_map(selected, tree)


def fold(x: Tensor, sentences: int) -> Tensor:
    """Return (k*B, T, ...) as (B, k*T, ...): the beams of a sentence become positions."""
    if x.shape[0] == sentences:
        return x
    return x.unflatten(0, (sentences, -1)).flatten(1, 2)


def unfold(x: Tensor, like: Tensor) -> Tensor:
    """Undo `fold`: return (B, k*T, ...) as (k*B, T, ...), for `like` (k*B, T, ...)."""
    if x.shape[0] == like.shape[0]:
        return x
    return x.unflatten(1, (-1, like.shape[1])).flatten(0, 1)
