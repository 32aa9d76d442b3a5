"""The interface of fast decoders.

B sentences, k beams of each, R = k * B rows, D width.
"""

from abc import ABC, abstractmethod

from torch import Tensor

from regard.data.tensors.padded import Padded
from regard.data.tensors.state import State
from regard.data.tensors.tree import Tree


class FastDecoder(ABC):
    """A decoder with its embedding, for one token per row.

    Its states are those of the decoder with additional memory, including a "bias".
    """

    @abstractmethod
    def start(self, memory: Padded, past: Tree) -> State:
        """Return the state before the first token; past: the initial past of the decoder."""

    @abstractmethod
    def step(self, tokens: Tensor, state: State) -> tuple[Tensor, State]:
        """Return the vectors (R, D) of one token per row (R, 1), and the new state."""
