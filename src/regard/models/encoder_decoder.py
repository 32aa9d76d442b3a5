"""Encoder-decoder models, which map a source to a sequence of any length.

A fast path computes the same outputs faster, with fixed weights. A side is encoder or decoder.
B sentences (rows of the batch), k beams per sentence, S source length, T target length, D width,
V vocabulary, N target tokens without padding.
"""

import math
from collections.abc import Iterator
from typing import Any, ClassVar

import numpy as np
import torch
from pydantic import Field, model_validator
from torch import Tensor, nn

from regard.core.data_stats import DataStats
from regard.core.options import AutoSetting
from regard.data.corpus.corpora import Corpus
from regard.data.tensors.padded import Batch, Outputs, Padded, shifted
from regard.data.tensors.state import State
from regard.inputs import default_frontend
from regard.inputs.frontend import Embedding, Frontend
from regard.inputs.input import InputShape
from regard.models.contracts import build_frontend
from regard.models.decoder_ways import decoder_ways
from regard.models.decoders import Decoder
from regard.models.encoders import AutoOptions, SourceModelOptions
from regard.models.fast_decoder import FastDecoder, is_plain_step, with_memory
from regard.models.output_layer import OutputLayer
from regard.models.parallel_options import exceeds_frames
from regard.models.recurrent import RecurrentDecoder
from regard.models.transformer import TransformerDecoder
from regard.nn.ablation import is_ablating
from regard.nn.capture_hooks import is_recording, padding_mask
from regard.nn.fast import claim, fast

IMAGE_WIDTH = 128  # of a decoder of image captions
MIN_TRANSFORMER_UPDATES = 1_500  # with fewer, an LSTM learns more from sentences


class EncoderDecoder(nn.Module):
    """An encoder, a decoder and an output layer.

    Training calls `forward`. Decoding calls `start` and `step`. ctc: a second output layer, on the
    encoder, which only training uses.
    """

    def __init__(
        self,
        frontend: Frontend,
        encoder: nn.Module,
        target: Embedding,
        decoder: TransformerDecoder | RecurrentDecoder,
        head: OutputLayer,
        ctc: OutputLayer | None = None,
    ) -> None:
        super().__init__()
        self.frontend = frontend
        self.encoder = encoder
        self.target = target
        self.decoder: TransformerDecoder | RecurrentDecoder = decoder
        self.head = head
        self.ctc = ctc

    def forward(self, batch: Batch, inputs: Tensor | None = None) -> Outputs:
        """Return the logits (N, V) of all target tokens but padding, and of the frames for CTC.

        inputs: decoder inputs (B, T), by default the shifted target.
        """
        assert batch.source is not None and batch.target is not None
        inputs, mask = shifted(batch.target.data) if inputs is None else inputs, batch.target.mask
        memory = self.encoder(self.frontend(batch.source))
        with padding_mask(mask):
            h, _ = self.decoder(self.target(inputs), self.decoder.start(memory), mask)
        frames = None if self.ctc is None else Padded(self.ctc(memory.data), memory.mask)
        return Outputs(self.head(h[mask]), frames=frames, encoded=memory.mask)

    def start(self, source: Padded) -> State:
        """Return the decoder state before the first token."""
        return self.decoder.start(self.encoder(self.frontend(source)))

    def step(self, tokens: Tensor, state: State) -> tuple[Tensor, State]:
        """Return the logits (k*B, T, V) after each of the tokens (k*B, T), and the new state."""
        h, state = self.vectors(tokens, state)
        return self.head(h), state

    def vectors(self, tokens: Tensor, state: State) -> tuple[Tensor, State]:
        """Return the vectors (k*B, T, D) before the output layer, and the new state."""
        return self.decoder(self.target(tokens), state)

    def fast(self) -> "FastEncoderDecoder":
        """Return the fast path of this model, for decoding."""
        return FastEncoderDecoder(self)


class FastEncoderDecoder:
    """An EncoderDecoder in eval mode that uses the fast path of each module.

    The weights must not change. The model itself runs while activations are recorded or heads are
    ablated, and for steps of several tokens. A state of the fast path is a state of the model with
    more entries in `memory`, such as "bias".
    """

    def __init__(self, model: EncoderDecoder) -> None:
        self.model = model.eval()
        self.encode = claim(model.encoder, "fast", model.frontend)
        self.decoder: FastDecoder | None = claim(model.decoder, "fast", model.target)
        self.head = fast(model.head)

    def start(self, source: Padded) -> State:
        """Return the decoder state before the first token.

        While recording or ablating, it is a state of the model without the fast path.
        """
        if is_recording() or is_ablating():
            return self.model.start(source)
        encode = self.encode or (lambda rows: self.model.encoder(self.model.frontend(rows)))
        memory = encode(source)
        state = self.model.decoder.start(memory)
        return state if self.decoder is None else self.decoder.start(memory, state.past)

    def step(self, tokens: Tensor, state: State) -> tuple[Tensor, State]:
        """Return the logits (k*B, T, V) after each of the tokens (k*B, T), and the new state."""
        if self.decoder is None or not is_plain_step(tokens, state):
            return with_memory(state, *self.model.step(tokens, state))
        x, state = self.decoder.step(tokens, state)
        return self.head(x).unsqueeze(1), state

    def vectors(self, tokens: Tensor, state: State) -> tuple[Tensor, State]:
        """Return the vectors (k*B, T, D) before the output layer, and the new state."""
        if self.decoder is None or not is_plain_step(tokens, state):
            return with_memory(state, *self.model.vectors(tokens, state))
        x, state = self.decoder.step(tokens, state)
        return x.unsqueeze(1), state


class EncoderDecoderOptions(SourceModelOptions):
    """Options of an encoder-decoder model: any encoder with any decoder."""

    derived: ClassVar[frozenset[str]] = frozenset({"ctc"})
    decoder: Decoder = AutoOptions()
    tie_embeddings: bool = Field(
        True, description="share the weights of the target embedding and the output layer"
    )
    output_bias: bool = Field(False, description="add a bias to the output logits")
    embedding_width: int | None = Field(
        None, ge=0, description="width of the embeddings of recurrent sides; 0: same as width"
    )
    ctc: bool = Field(
        False, description="output layer on the encoder for CTC; follows objective.ctc_weight"
    )

    @property
    def gives(self) -> str:  # type: ignore[override]
        """Return the kind of output, which the decoder determines."""
        return self.decoder.gives

    @classmethod
    def ways(cls, given: dict[str, Any]) -> Iterator[tuple[dict[str, Any], str]]:
        yield from decoder_ways(cls, given)

    def unfit(self, corpus: Corpus, source: str) -> tuple[np.ndarray, str] | None:
        encoder: Any = self.encoder
        frontend = self.frontend or default_frontend(source, None if encoder.is_auto else encoder)
        positions = frontend.reduced(corpus.lengths[:, 0].astype(np.int64))
        if self.ctc and (found := exceeds_frames(corpus, positions)) is not None:
            return found, "longer than their frames for CTC (objective.ctc_weight)"
        return self.decoder.unfit(corpus, positions, source)

    @model_validator(mode="after")
    def _widths_fit(self) -> "EncoderDecoderOptions":
        widths = (self.encoder.width, self.decoder.width)
        cross = getattr(self.decoder, "cross", None)
        alike = getattr(cross, "equal_widths", False)
        if cross is not None and alike and None not in widths and widths[0] != widths[1]:
            raise ValueError(
                f"cross {cross.kind} needs equal widths of encoder and decoder, found {widths[0]} "
                f"and {widths[1]}; make them equal or use cross bilinear"
            )
        return self

    @model_validator(mode="after")
    def _check_ctc(self) -> "EncoderDecoderOptions":
        if self.ctc and self.gives != "steps":
            raise ValueError(
                "ctc (objective.ctc_weight): expected a decoder that writes token by token, found "
                f"{self.decoder.kind}; omit both"
            )
        return self

    def default_kind(self, stats: DataStats) -> tuple[str, str]:
        """Return the default kind. For sentences, it depends on the number of updates."""
        kind, reason = super().default_kind(stats)
        if not stats.budget or kind != "transformer":
            return kind, reason
        kinds = {side: kind if part.is_auto else part.kind for side, part in self.sides.items()}
        model = type(self).model_validate({side: {"kind": one} for side, one in kinds.items()})
        updates = model.updates_at(model.default_width(stats), stats)
        if updates >= MIN_TRANSFORMER_UPDATES:
            return kind, reason
        return "recurrent", (
            f"time for about {float(f'{updates:.2g}'):,.0f} updates of a Transformer: an LSTM "
            "learns more from so few"
        )

    def default_image_kinds(self, stats: DataStats) -> dict[str, tuple[str, str]]:
        if not any(stats.grid):
            return {}
        return {
            "encoder": ("cnn", "images"),
            "decoder": (
                "recurrent",
                "short captions: an LSTM with attention learns from fewer updates",
            ),
        }

    def default_width(self, stats: DataStats) -> int:
        return IMAGE_WIDTH if any(stats.grid) else super().default_width(stats)

    def propose(self, stats: DataStats, config: Any) -> Iterator[AutoSetting]:
        yield from super().propose(stats, config)
        if self.is_sized:
            widths = [part.width for part in self.sides.values() if part.accepts_any_width]
            size = min([64, *widths]) if stats.has_few_tokens else 0
            yield from self.auto_settings(stats.reason, embedding_width=size)

    def build(self, shape: InputShape, target: int, shared: bool) -> nn.Module:
        """Return the model for inputs of this shape.

        target: size of the target vocabulary. shared: whether source and target share it.
        """
        parts: tuple[Any, Any] = self.encoder, self.decoder  # sizes must be set
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
        model: nn.Module = (decoder.model_class or EncoderDecoder)(
            frontend,
            encoder.build_for(frontend),
            embedding,
            decoder.build(encoder.output_for(frontend), sizes[1]),
            OutputLayer(weight, self.output_bias),
            **self._ctc_layer(target, encoder.output_for(frontend)),
        )
        return model

    def _ctc_layer(self, target: int, width: int) -> dict[str, OutputLayer]:
        """Return the output layer for CTC of an encoder of this width, if the model has one."""
        if not self.ctc:
            return {}
        weight = nn.Parameter(torch.randn(target, width) * width**-0.5)
        return {"ctc": OutputLayer(weight, bias=True)}

    def _inputs(self, part: Any) -> int:
        """Return the width of the input vectors of the encoder or decoder."""
        return (self.embedding_width if part.accepts_any_width else None) or part.width


def _scale(part: Any, inputs: int) -> float:
    """Return the factor that multiplies embeddings with initial variance 1 / `inputs`."""
    return part.scale if inputs == part.width else math.sqrt(inputs)
