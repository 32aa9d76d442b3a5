"""Fast paths of models with parallel decoders. See `models/parallel.py`.

Shapes: B sentences, k candidates per sentence, R = k * B rows, S source length, T target length,
u frames per source position, V vocabulary.
"""

from typing import Any

from torch import Tensor

from regard.data.tensors.padded import Padded
from regard.data.tensors.state import State
from regard.nn.ablation import is_ablating
from regard.nn.capture_hooks import is_recording
from regard.nn.fast import claim, fast


class FastFillModel:
    """A FillModel in eval mode that uses the fast path of each module.

    The weights must not change. The model itself runs while activations are recorded or heads are
    ablated.
    """

    def __init__(self, model: Any) -> None:
        self.model = model.eval()
        self.encode = claim(model.encoder, "fast", model.frontend)
        self.decoder, self.head = claim(model.decoder, "fast"), fast(model.head)
        self.positions, self.lengths = model.positions, model.lengths

    def start(self, source: Padded) -> State:
        """Return the encoded source, for `lengths` and `fill`."""
        if is_recording() or is_ablating() or self.decoder is None:
            return self.model.start(source)
        memory = encoded(self.model, self.encode, source)
        keys = self.decoder.memory_keys(memory)
        return State({"encoded": memory, "keys": None, "fast": keys}, {})

    def fill(self, tokens: Tensor, real: Tensor, state: State) -> Tensor:
        """Return the logits (R, T, V) at all positions of tokens (R, T)."""
        if "fast" not in state.memory:
            return self.model.fill(tokens, real, state)
        memory, x = state.memory["encoded"], self.model.target(tokens)
        if self.model.copy is not None:
            x = x + self.model.copy(memory, real)
        h = self.decoder(x, memory, state.memory["fast"], real)
        return self.head(h.flatten(0, 1)).view(*tokens.shape, -1)


class FastFramesModel:
    """A FramesModel in eval mode that uses the fast path of each module. As `FastFillModel`."""

    def __init__(self, model: Any) -> None:
        self.model = model.eval()
        self.encode = claim(model.encoder, "fast", model.frontend)
        self.decoder = None if model.decoder is None else claim(model.decoder, "fast")
        self.head = fast(model.head)

    def frames(self, source: Padded) -> Padded:
        """Return the logits (B, u*S, V) of all frames, with their mask."""
        if is_recording() or is_ablating():
            return self.model.frames(source)
        memory = encoded(self.model, self.encode, source)
        x, real = self.model.split(memory)[:2]
        decoder = self.decoder or self.model.decoder
        if decoder is not None:
            x = decoder(x, memory, decoder.memory_keys(memory), real)
        return Padded(self.head(x.flatten(0, 1)).view(*real.shape, -1), real)


def encoded(model: Any, encode: Any, source: Padded) -> Padded:
    """Return the output of the fast encoder `encode`, or of the modules if there is none."""
    if encode is not None:
        return encode(source)
    return model.encoder(model.frontend(source))
