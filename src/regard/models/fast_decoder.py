"""The interface of fast decoders, which read one token per row with fixed weights.

B sentences, k beams per sentence, R = k * B rows, D width.
"""

from abc import ABC, abstractmethod

from torch import Tensor

from regard.data.tensors.padded import Padded
from regard.data.tensors.state import State
from regard.data.tensors.tree import Tree


class FastDecoder(ABC):
    """A decoder and its embedding, for one token per row.

    Its states are states of the original decoder with more entries in `memory`, such as "bias".
    """

    @abstractmethod
    def start(self, memory: Padded, past: Tree) -> State:
        """Return the state before the first token.

        memory: encoder output. past: `past` of the initial state of the original decoder.
        """

    @abstractmethod
    def step(self, tokens: Tensor, state: State) -> tuple[Tensor, State]:
        """Return the output vectors (R, D) for one token per row (R, 1), and the new state."""
