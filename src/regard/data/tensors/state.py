"""The state of a decoder: what it remembers between steps.

Every tensor in a state has the batch first, whatever the decoder. Other leaves say themselves what
selecting rows means for them (`Selects`).
"""

from dataclasses import dataclass

from torch import Tensor

from regard.data.tensors.tree import Selects, Tree, tree_map


@dataclass
class State:
    """memory: fixed for a sentence (encoder output, its mask, projected keys).
    past: changes each step (hidden vectors, key/value cache, position).

    Memory may have fewer rows than past: with k times as many past rows, each row of memory
    serves k rows in a row (the beams of one sentence), so memory is never repeated per beam.
    """

    memory: Tree
    past: Tree

    def select(self, rows: Tensor, sentences: Tensor | None = None) -> "State":
        """The state of these rows of the past, and of these sentences; None: all stay.

        The beams of a sentence stay together: so many rows in a row for each sentence.
        """
        past = select(self.past, rows, sentences)
        return State(self.memory if sentences is None else select(self.memory, sentences), past)


def select(tree: Tree, rows: Tensor, sentences: Tensor | None = None) -> Tree:
    """These rows of every leaf; sentences: those they belong to, None where all stay."""

    def selected(leaf: Tensor | Selects) -> Tensor | Selects:
        if isinstance(leaf, Tensor):
            return leaf.index_select(0, rows)
        return leaf.select(rows, sentences)

    return tree_map(selected, tree)


def fold(x: Tensor, sentences: int) -> Tensor:
    """(k*B, T, ...) as (B, k*T, ...), for B sentences: the beams of each become positions."""
    if x.shape[0] == sentences:
        return x
    return x.unflatten(0, (sentences, -1)).flatten(1, 2)


def unfold(x: Tensor, like: Tensor) -> Tensor:
    """The way back from `fold`: (B, k*T, ...) as (k*B, T, ...), for `like` (k*B, T, ...)."""
    if x.shape[0] == like.shape[0]:
        return x
    return x.unflatten(1, (-1, like.shape[1])).flatten(0, 1)
