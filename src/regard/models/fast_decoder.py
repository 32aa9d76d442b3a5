"""The interface of fast decoders, which read one token per row with fixed weights.

A model steps by its fast decoder if it can, and otherwise by its modules.

B sentences, k beams per sentence, R = k * B rows, D width.
"""

from abc import ABC, abstractmethod

from torch import Tensor

from regard.data.tensors.padded import Padded
from regard.data.tensors.state import State
from regard.data.tensors.tree import Tree
from regard.nn.ablation import is_ablating
from regard.nn.capture_hooks import active_recorder


class FastDecoder(ABC):
    """A decoder and its embedding, for one token per row.

    Its states are states of the original decoder with more entries in `memory`, such as "bias".
    """

    @abstractmethod
    def start(self, memory: Padded | None, past: Tree) -> State:
        """Return the state before the first token.

        memory: encoder output, None without a source. past: `past` of the initial state of the
        original decoder.
        """

    @abstractmethod
    def step(self, tokens: Tensor, state: State) -> tuple[Tensor, State]:
        """Return the output vectors (R, D) for one token per row (R, 1), and the new state."""


def is_plain_step(tokens: Tensor, state: State) -> bool:
    """Return whether a fast decoder can run this step.

    It needs one token per row, a state of the fast path, and no recording or ablation.
    """
    unobserved = active_recorder() is None and not is_ablating()
    return tokens.shape[1] == 1 and "bias" in state.memory and unobserved


def with_memory(before: State, x: Tensor, after: State) -> tuple[Tensor, State]:
    """Return x and the state `after`. Keep `memory` of `before` if it is from the fast path."""
    return x, State(before.memory if "bias" in before.memory else after.memory, after.past)
