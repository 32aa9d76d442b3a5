"""Causal language models: decoders without a source.

A state (`State`) is what a decoder keeps between calls, such as hidden vectors.
B rows, T length, D width, V vocabulary, N tokens without padding, R = `window`.
"""

import math
from typing import Annotated, Any, ClassVar, Literal

import torch
from pydantic import Field
from torch import Tensor, nn

from regard.data.tensors.padded import Batch, Outputs, shifted
from regard.data.tensors.special import BOS, EOS
from regard.data.tensors.state import State
from regard.data.tensors.tree import tree_map
from regard.inputs.frontend import Embedding
from regard.inputs.input import InputShape
from regard.models.encoders import AutoOptions
from regard.models.fast_decoder import FastDecoder, is_plain_step, with_memory
from regard.models.fast_recurrent import FastRecurrentLM
from regard.models.model_options import TextModelOptions
from regard.models.output_layer import OutputLayer
from regard.models.recurrent import RecurrentOptions
from regard.models.transformer_options import CausalTransformerOptions
from regard.models.window import MlpEncoder, MlpEncoderOptions
from regard.nn.capture_hooks import padding_mask
from regard.nn.dropout import Dropout
from regard.nn.fast import claim, fast
from regard.nn.fast_cells import fast_cells
from regard.nn.recurrent import Recurrence


class RecurrentLM(nn.Module):
    """A recurrent language model. Its state is carried over from batch to batch."""

    def __init__(self, body: Recurrence, dropout: float) -> None:
        super().__init__()
        self.body = body
        self.dropout = Dropout(dropout)

    def start(self, memory: None) -> State:
        """Return the state before the first token."""
        return State({}, {"hidden": None})

    def forward(self, x: Tensor, state: State, real: Tensor | None = None) -> tuple[Tensor, State]:
        """Return the output (B, T, D) for x (B, T, D), and the new state."""
        h, hidden = self.body(self.dropout(x), state.past["hidden"])
        return self.dropout(h), State({}, {"hidden": hidden})

    def fast(self, embed: nn.Module) -> FastDecoder | None:
        """Return the fast path, if all modules support it. embed: embedding of the tokens."""
        plain = claim(self.body, "sides")
        cells = fast_cells(plain[0]) if plain else None
        return None if cells is None else FastRecurrentLM(embed, cells)


class WindowLM(nn.Module):
    """An MLP over the last token and the R tokens before it (Bengio et al. 2003)."""

    def __init__(self, window: int, mlp: MlpEncoder) -> None:
        super().__init__()
        self.window = window
        self.mlp = mlp

    def start(self, memory: None) -> State:
        """Return the state before the first token, without previous tokens."""
        return State({}, {"window": None})

    def forward(self, x: Tensor, state: State, real: Tensor | None = None) -> tuple[Tensor, State]:
        """Return the output (B, T, D) for x (B, T, D), and the new state."""
        past = state.past["window"]
        past = x.new_zeros(len(x), self.window, x.shape[-1]) if past is None else past
        joined = torch.cat([past, x], 1)  # (B, R + T, D)
        windows = joined.unfold(1, self.window + 1, 1).transpose(2, 3).flatten(2)
        after = joined[:, joined.shape[1] - self.window :]
        return self.mlp.apply_layers(windows), State({}, {"window": after})


class CausalModel(nn.Module):
    """An embedding, a decoder and an output layer. Training calls `forward`, sampling `step`."""

    only_counts: ClassVar[bool] = False  # whether the model has no layers to inspect

    def __init__(self, target: Embedding, decoder: Any, head: OutputLayer, carries: bool) -> None:
        super().__init__()
        self.target = target
        self.decoder = decoder
        self.head = head
        self.carries = carries
        self.unbounded = carries  # whether the context length is unbounded

    def forward(self, batch: Batch, inputs: Tensor | None = None) -> Outputs:
        """Return the logits (N, V) of all tokens but padding, and the state to carry over.

        inputs: decoder inputs (B, T), by default the shifted target.
        """
        assert batch.target is not None
        tokens, mask = batch.target.data, batch.target.mask
        inputs = shifted(tokens, batch.before) if inputs is None else inputs
        state = self.start(len(tokens))
        if batch.carry is not None:
            state = State({}, batch.carry)
        with padding_mask(mask):
            h, state = self.decoder(self.target(eos_to_bos(inputs)), state, mask)
        real = h.flatten(0, 1) if bool(mask.all()) else h[mask]
        carry = tree_map(Tensor.detach, state.past) if self.carries else None
        return Outputs(self.head(real), carry)

    def start(self, rows: int) -> State:
        """Return the state before the first token."""
        return self.decoder.start(None)

    def step(self, tokens: Tensor, state: State) -> tuple[Tensor, State]:
        """Return the logits (B, T, V) after each of the tokens (B, T), and the new state."""
        tokens = eos_to_bos(tokens).to(next(self.parameters()).device)
        h, state = self.decoder(self.target(tokens), state)
        return self.head(h), state

    def fast(self) -> "FastCausalModel":
        """Return the fast path of this model, for sampling."""
        return FastCausalModel(self)


class FastCausalModel:
    """A CausalModel in eval mode that uses the fast path of its decoder and output layer.

    The weights must not change. The model itself runs while activations are recorded or heads are
    ablated, for steps of several tokens, and for whole batches.
    """

    def __init__(self, model: CausalModel) -> None:
        self.model = model.eval()
        self.decoder: FastDecoder | None = claim(model.decoder, "fast", model.target)
        self.head = fast(model.head)
        self.carries, self.unbounded = model.carries, model.unbounded
        self.parameters, self.buffers = model.parameters, model.buffers
        self._device = next(model.parameters()).device

    def __call__(self, batch: Batch, inputs: Tensor | None = None) -> Outputs:
        """Return the logits (N, V) of all tokens but padding, and the state to carry over."""
        outputs: Outputs = self.model(batch, inputs)
        return outputs

    def start(self, rows: int) -> State:
        """Return the state before the first token."""
        state = self.model.start(rows)
        return state if self.decoder is None else self.decoder.start(None, state.past)

    def step(self, tokens: Tensor, state: State) -> tuple[Tensor, State]:
        """Return the logits (B, T, V) after each of the tokens (B, T), and the new state."""
        if self.decoder is None or not is_plain_step(tokens, state):
            return with_memory(state, *self.model.step(tokens, state))
        x, state = self.decoder.step(eos_to_bos(tokens).to(self._device), state)
        return self.head(x).unsqueeze(1), state


def eos_to_bos(tokens: Tensor) -> Tensor:
    """Return the tokens with EOS replaced by BOS, which starts the next document."""
    return torch.where(tokens == EOS, BOS, tokens)


class CausalRecurrentOptions(RecurrentOptions):
    """Options of the decoder of a recurrent language model."""

    carries: ClassVar[bool] = True  # whether the state is carried over to the next batch

    def build(self) -> RecurrentLM:
        """Return the decoder. Sizes must be set."""
        assert self.width and self.layers and self.dropout is not None
        body = Recurrence(self.cell, self.width, self.width, self.layers, self.dropout)
        return RecurrentLM(body, self.dropout)


class CausalWindowOptions(MlpEncoderOptions):
    """Options of a language model that is an MLP over the last tokens."""

    carries: ClassVar[bool] = True
    kind: Literal["window"] = "window"  # type: ignore[assignment]
    window: int = Field(7, ge=0, description="context size: number of tokens before the last one")

    @property
    def scale(self) -> float:
        """Return the factor of the embeddings, which are initialized with variance 1 / width."""
        return math.sqrt(self.width or 1)

    def build(self) -> WindowLM:  # type: ignore[override]
        """Return the decoder. Sizes must be set."""
        assert self.width and self.layers and self.dropout is not None
        sizes = [(self.window + 1) * self.width] + [self.width] * self.layers
        return WindowLM(self.window, MlpEncoder(sizes, self.activation, self.dropout))


Causal = Annotated[
    AutoOptions | CausalTransformerOptions | CausalRecurrentOptions | CausalWindowOptions,
    Field(discriminator="kind"),
]


class CausalOptions(TextModelOptions):
    """Options of a causal language model, which predicts each token from the previous tokens."""

    gives: ClassVar[str] = "steps"
    kind: Literal["causal"] = "causal"
    decoder: Causal = AutoOptions()
    tie_embeddings: bool = Field(
        True, description="share the weights of the embedding and the output layer"
    )

    def build(self, shape: InputShape) -> CausalModel:
        """Return the model for inputs of this shape."""
        decoder: Any = self.decoder  # sizes must be set
        target = Embedding(shape.size, decoder.width, decoder.scale)
        weight = target.weight
        if not self.tie_embeddings:
            weight = nn.Parameter(torch.randn(shape.size, decoder.width) * decoder.width**-0.5)
        return CausalModel(target, decoder.build(), OutputLayer(weight), decoder.carries)
