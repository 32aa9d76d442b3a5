"""What lean steppers have in common: where somebody looks on, the model itself is asked.

B sentences, k beams of each, R = k * B rows, T symbols at once, D width, V vocabulary.
"""

from abc import ABC, abstractmethod

from torch import Tensor

from regard.data.tensors.padded import Padded
from regard.data.tensors.state import State
from regard.models.generator import Generator
from regard.models.lean.bare import bare_head
from regard.models.lean.lean_encoder import lean_encoder
from regard.nn.ablation import is_ablating
from regard.nn.capture_hooks import active_recorder, is_recording


class LeanStepper(ABC):
    """A generator in eval mode; its weights must not change.

    A state that is begun here has what the model's own has, and more in its memory.
    """

    def __init__(self, model: Generator) -> None:
        self.model = model.eval()
        self.encode = lean_encoder(model)
        self.head = bare_head(model.head)

    def start(self, source: Padded) -> State:
        """The decoder's state before its first symbol; seen, it is the model's."""
        if is_recording() or is_ablating():
            return self.model.start(source)
        return self.begin(self.encode(source))

    def step(self, symbols: Tensor, state: State) -> tuple[Tensor, State]:
        """Symbols (R, T) to the logits (R, T, V) of what follows each, and the new state."""
        if not _plain(symbols, state):
            return self._back(state, *self.model.step(symbols, state))
        x, state = self.row(symbols, state)
        return self.head(x).unsqueeze(1), state

    def vectors(self, symbols: Tensor, state: State) -> tuple[Tensor, State]:
        """A step without the output layer: symbols (R, T) to (R, T, D), and the new state."""
        if not _plain(symbols, state):
            return self._back(state, *self.model.vectors(symbols, state))
        x, state = self.row(symbols, state)
        return x.unsqueeze(1), state

    @abstractmethod
    def begin(self, memory: Padded) -> State:
        """The state before the first symbol; there is a "bias" in its memory."""

    @abstractmethod
    def row(self, symbols: Tensor, state: State) -> tuple[Tensor, State]:
        """One symbol for each row (R, 1) to vectors (R, D), and the new state."""

    def _back(self, before: State, x: Tensor, after: State) -> tuple[Tensor, State]:
        """What the model gave, with the memory of our own, which stays as it is."""
        return x, State(before.memory if "bias" in before.memory else after.memory, after.past)


def _plain(symbols: Tensor, state: State) -> bool:
    """Whether a step is one symbol for each row, from a state of our own, and nobody watches."""
    undisturbed = active_recorder() is None and not is_ablating()
    return symbols.shape[1] == 1 and "bias" in state.memory and undisturbed
