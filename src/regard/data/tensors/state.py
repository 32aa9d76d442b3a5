"""The state of a decoder between steps of decoding.

A row is one hypothesis. Every tensor of a state has the rows as first dimension. Other leaves of
the state trees implement `Selects`, the selection of rows. B sentences, k hypotheses (beams) per
sentence, T positions.
"""

from dataclasses import dataclass

from torch import Tensor

from regard.data.tensors.tree import Selects, Tree, tree_map


@dataclass
class State:
    """The state of a decoder.

    memory: tensors that are fixed per sentence (encoder output and mask, projected keys).
    past: tensors that change at each step (hidden vectors, key/value cache, position).
    If past has k times the rows of memory, k consecutive rows of past are the beams of one
    sentence. So memory is never repeated per beam.
    """

    memory: Tree
    past: Tree

    def select(self, rows: Tensor, sentences: Tensor | None = None) -> "State":
        """Return the state with these rows of past and these sentences of memory (None: all).

        In `rows`, the beams of a sentence must be consecutive.
        """
        past = select(self.past, rows, sentences)
        return State(self.memory if sentences is None else select(self.memory, sentences), past)


def select(tree: Tree, rows: Tensor, sentences: Tensor | None = None) -> Tree:
    """Return these rows of every leaf. sentences: the sentences of the rows (None: all)."""

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
