"""The EncoderDecoder: a source in, a sequence of its own length out.

B rows, S source length, T target length, D width, V vocabulary, N real target tokens.
"""

import math
from collections.abc import Iterator
from typing import Any

import torch
from pydantic import Field, model_validator
from torch import Tensor, nn

from regard.core.data_stats import DataStats
from regard.core.options import AutoSetting
from regard.data.tensors.padded import Batch, Outputs, Padded, shifted
from regard.data.tensors.state import State
from regard.inputs.frontend import Embedding, Frontend
from regard.inputs.input import InputShape
from regard.models.contracts import build_frontend
from regard.models.decoders import Decoder
from regard.models.encoders import Auto, SourceModelOptions
from regard.models.fast_decoder import FastDecoder
from regard.models.heads import Head
from regard.models.recurrent import RecurrentDecoder
from regard.models.transformer import TransformerDecoder
from regard.nn.ablation import is_ablating
from regard.nn.capture_hooks import active_recorder, is_recording, padding_mask
from regard.nn.fast import claim, fast


class EncoderDecoder(nn.Module):
    """Encoder, decoder and head. Training calls it; decoding calls `start` and `step`."""

    def __init__(
        self,
        frontend: Frontend,
        encoder: nn.Module,
        target: Embedding,
        decoder: TransformerDecoder | RecurrentDecoder,
        head: Head,
    ) -> None:
        super().__init__()
        self.frontend = frontend
        self.encoder = encoder
        self.target = target
        self.decoder: TransformerDecoder | RecurrentDecoder = decoder
        self.head = head

    def forward(self, batch: Batch, inputs: Tensor | None = None) -> Outputs:
        """Logits (N, V) of every real target token, row by row; padding is excluded.

        inputs: (B, T), what the decoder reads; None: the target, shifted.
        """
        assert batch.source is not None and batch.target is not None
        inputs, mask = shifted(batch.target.data) if inputs is None else inputs, batch.target.mask
        state = self.start(batch.source)
        with padding_mask(mask):
            h, _ = self.decoder(self.target(inputs), state, mask)
        return Outputs(self.head(h[mask]))

    def start(self, source: Padded) -> State:
        """The decoder's state before its first token."""
        return self.decoder.start(self.encoder(self.frontend(source)))

    def step(self, tokens: Tensor, state: State) -> tuple[Tensor, State]:
        """Tokens (k*B, T) to the logits (k*B, T, V) of what follows each, and the new state."""
        h, state = self.vectors(tokens, state)
        return self.head(h), state

    def vectors(self, tokens: Tensor, state: State) -> tuple[Tensor, State]:
        """A step without the output layer: tokens (k*B, T) to (k*B, T, D), and the new state."""
        return self.decoder(self.target(tokens), state)

    def fast(self) -> "FastEncoderDecoder":
        """The same for decoding, each part by its fast path."""
        return FastEncoderDecoder(self)


class FastEncoderDecoder:
    """A generator in eval mode, each part by its fast path; its weights must not change.

    Under a recorder or an ablation, and for a step of several tokens, the model itself runs. A
    state of the fast path is a state of the model, with more in its memory.
    """

    def __init__(self, model: EncoderDecoder) -> None:
        self.model = model.eval()
        self.encode = claim(model.encoder, "fast", model.frontend)
        self.decoder: FastDecoder | None = claim(model.decoder, "fast", model.target)
        self.head = fast(model.head)

    def start(self, source: Padded) -> State:
        """The decoder's state before its first token; seen, it is the model's."""
        if is_recording() or is_ablating():
            return self.model.start(source)
        encode = self.encode or (lambda rows: self.model.encoder(self.model.frontend(rows)))
        memory = encode(source)
        state = self.model.decoder.start(memory)
        return state if self.decoder is None else self.decoder.begin(memory, state.past)

    def step(self, tokens: Tensor, state: State) -> tuple[Tensor, State]:
        """Tokens (k*B, T) to the logits (k*B, T, V) of what follows each, and the new state."""
        if self.decoder is None or not _plain(tokens, state):
            return _back(state, *self.model.step(tokens, state))
        x, state = self.decoder.row(tokens, state)
        return self.head(x).unsqueeze(1), state

    def vectors(self, tokens: Tensor, state: State) -> tuple[Tensor, State]:
        """A step without the output layer: tokens (k*B, T) to (k*B, T, D), and the new state."""
        if self.decoder is None or not _plain(tokens, state):
            return _back(state, *self.model.vectors(tokens, state))
        x, state = self.decoder.row(tokens, state)
        return x.unsqueeze(1), state


def _plain(tokens: Tensor, state: State) -> bool:
    """Whether a step is one token for each row, from a state of the fast path, unobserved."""
    undisturbed = active_recorder() is None and not is_ablating()
    return tokens.shape[1] == 1 and "bias" in state.memory and undisturbed


def _back(before: State, x: Tensor, after: State) -> tuple[Tensor, State]:
    """What the model gave, with the memory of the fast path, which stays as it is."""
    return x, State(before.memory if "bias" in before.memory else after.memory, after.past)


class EncoderDecoderOptions(SourceModelOptions):
    """Any encoder with any decoder."""

    decoder: Decoder = Auto()
    tie_embeddings: bool = Field(
        True, description="share the weights of the target embedding and the output layer"
    )
    output_bias: bool = Field(False, description="add a bias to the output logits")
    embedding_width: int | None = Field(
        None, ge=0, description="width of the embeddings of recurrent sides; 0: same as width"
    )

    @property
    def gives(self) -> str:
        """What the model gives: what its decoder does."""
        return self.decoder.gives

    @model_validator(mode="after")
    def _widths_fit(self) -> "EncoderDecoderOptions":
        widths = (self.encoder.width, self.decoder.width)
        cross = getattr(self.decoder, "cross", None)
        alike = getattr(cross, "equal_widths", False)
        if cross is not None and alike and None not in widths and widths[0] != widths[1]:
            raise ValueError(
                f"cross {cross.kind} multiplies encoder and decoder vectors, but their widths are "
                f"{widths[0]} and {widths[1]}; make them equal or choose cross bilinear"
            )
        return self

    def propose(self, stats: DataStats, config: Any) -> Iterator[AutoSetting]:
        yield from super().propose(stats, config)
        if self.is_sized:
            widths = [part.width for part in self.sides.values() if part.any_inputs]
            size = min([64, *widths]) if stats.has_few_tokens else 0
            yield from self.auto_settings(stats.reason, embedding_width=size)

    def build(self, shape: InputShape, target: int, shared: bool) -> nn.Module:
        """The model of such sources and of a target vocabulary of this size; `shared`: the source
        has the same vocabulary."""
        parts: tuple[Any, Any] = self.encoder, self.decoder  # sizes must be filled
        encoder, decoder = parts
        sizes = self._inputs(encoder), self._inputs(decoder)
        scale = _scale(encoder, sizes[0])
        frontend = build_frontend(self.frontend, encoder, shape, sizes[0], scale)
        embedding = Embedding(target, sizes[1], _scale(decoder, sizes[1]))
        if shared and frontend.table is not None and sizes[0] == sizes[1]:
            embedding.weight = frontend.table.weight
        weight = embedding.weight
        if not self.tie_embeddings or sizes[1] != decoder.width:
            weight = nn.Parameter(torch.randn(target, decoder.width) * decoder.width**-0.5)
        model: nn.Module = (decoder.joins or EncoderDecoder)(
            frontend,
            encoder.build(frontend.width),
            embedding,
            decoder.build(encoder.output(frontend.width), sizes[1]),
            Head(weight, self.output_bias),
        )
        return model

    def _inputs(self, part: Any) -> int:
        """The size of the vectors that a side reads."""
        return (self.embedding_width if part.any_inputs else None) or part.width


def _scale(part: Any, inputs: int) -> float:
    """What the embeddings of a side are multiplied by: they begin with variance 1 / inputs."""
    return part.scale if inputs == part.width else math.sqrt(inputs)
