"""What fast twins of decoders have in common.

B sentences, k beams of each, R = k * B rows, D width.
"""

from abc import ABC, abstractmethod

from torch import Tensor

from regard.data.tensors.padded import Padded
from regard.data.tensors.state import State
from regard.data.tensors.tree import Tree


class FastDecoder(ABC):
    """A decoder with its embedding, for one token of each row.

    Its states are those of the decoder, with more in their memory: among that a "bias".
    """

    @abstractmethod
    def start(self, memory: Padded, past: Tree) -> State:
        """The state before the first token; past: as the decoder begins."""

    @abstractmethod
    def step(self, tokens: Tensor, state: State) -> tuple[Tensor, State]:
        """One token for each row (R, 1) to vectors (R, D), and the new state."""
