"""The options of models that write frames, and of their decoders."""

from collections.abc import Iterator
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from pydantic import Field, model_validator
from torch import nn

from regard.core.data_stats import DataStats
from regard.core.options import AutoSetting, Options
from regard.data.corpus.corpora import Corpus
from regard.inputs.frontend import Embedding, Frontend
from regard.inputs.input import InputShape
from regard.models.contracts import build_frontend
from regard.models.decoder_ways import decoder_ways
from regard.models.duration_model import Aligner, DurationModel, DurationParts, DurationPredictor
from regard.models.encoders import SourceModelOptions
from regard.models.frame_steps import FrameStepModel
from regard.models.recurrent import RecurrentDecoderOptions
from regard.models.transformer import TransformerEncoder
from regard.models.transformer_options import TransformerDecoderOptions, TransformerOptions

ALIGNER = 64  # width of the vectors that are compared
WIDTH, PARALLEL_WIDTH = 192, 128  # a parallel decoder computes more per frame
MIN_BATCH, MAX_BATCH, ROWS = 1024, 4096, 32  # frames, frames, and mean rows of a batch

Parts = tuple[Frontend, nn.Module, Embedding | None]


class StepOptions(Options):
    """Options of decoders that write frames step by step."""

    gives: ClassVar[str] = "frame_steps"
    exports: ClassVar[frozenset[str]] = frozenset()
    frames_per_step: int = Field(
        3, gt=0, le=32, description="frames that each step writes; it reads the last of them"
    )
    prenet_dropout: float = Field(
        0.5,
        ge=0,
        lt=1,
        description="dropout of the layers that read the previous frame, only in training",
    )

    def build_model(self, parts: Parts, memory: int, bands: int) -> FrameStepModel:
        """Return the model. memory: width of the encoder output. bands: numbers per frame."""
        own: Any = self
        sizes = bands, own.width, self.frames_per_step
        return FrameStepModel(parts, own.build(memory, own.width), sizes, self.prenet_dropout)


class RecurrentFrameOptions(StepOptions, RecurrentDecoderOptions):
    """Options of a recurrent decoder of frames (Shen et al. 2018)."""

    def default_sizes(self, stats: DataStats, width: int) -> dict[str, Any]:
        """Return the default sizes. Location-aware attention moves on along the text."""
        return super().default_sizes(stats, width) | {"cross": "location", "input_feeding": False}


class TransformerFrameOptions(StepOptions, TransformerDecoderOptions):
    """Options of a Transformer decoder of frames (Li et al. 2019)."""


class DurationOptions(TransformerOptions):
    """Options of a parallel decoder of frames: a Transformer in which every frame sees all others.

    The length of the sound follows from the durations of the tokens.
    """

    gives: ClassVar[str] = "spectrogram"
    exports: ClassVar[frozenset[str]] = frozenset()
    default_layers: ClassVar[int] = 2
    kind: Literal["parallel"] = "parallel"  # type: ignore[assignment]

    @model_validator(mode="after")
    def _check_bidirectional(self) -> "DurationOptions":
        if not self.attention.supports.bidirectional:
            raise ValueError(
                f"attention {self.attention.kind} is causal only, but a parallel decoder sees all "
                "frames; use attention softmax"
            )
        if self.attention.supports.edges:
            raise ValueError(
                f"attention {self.attention.kind} reads the edges of graphs, which frames do not "
                "have; use attention softmax"
            )
        return self

    def own_width(self, stats: DataStats) -> int | None:
        return PARALLEL_WIDTH

    def unfit(
        self, corpus: Corpus, positions: np.ndarray, source: str
    ) -> tuple[np.ndarray, str] | None:
        """Return which sounds have fewer frames than tokens, and the reason."""
        short: np.ndarray = corpus.lengths[:, 1].astype(np.int64) < positions
        return short, "shorter than their texts: each token needs a frame"

    def build(self, memory: int, bands: int) -> DurationParts:
        """Return the parts after the encoder. memory: width of its output."""
        assert self.width and self.dropout is not None
        layers = self.build_layers(causal=False)
        norm = self.final_norm()
        return DurationParts(
            Aligner(memory, bands, ALIGNER),
            DurationPredictor(memory, self.width, self.dropout),
            TransformerEncoder(layers, self.build_positions(), norm, self.dropout),
        )

    def build_model(self, parts: Parts, memory: int, bands: int) -> DurationModel:
        """Return the model. memory: width of the encoder output. bands: numbers per frame."""
        assert self.width
        return DurationModel(parts, self.build(memory, bands), (memory, self.width, bands))


FrameDecoder = Annotated[
    RecurrentFrameOptions | TransformerFrameOptions | DurationOptions, Field(discriminator="kind")
]


class SpeechModelOptions(SourceModelOptions):
    """Options of models that write frames: any encoder with a decoder of frames."""

    decoder: FrameDecoder = RecurrentFrameOptions()

    @property
    def gives(self) -> str:  # type: ignore[override]
        """Return the kind of output, which the decoder determines."""
        return self.decoder.gives

    @classmethod
    def ways(cls, given: dict[str, Any]) -> Iterator[tuple[dict[str, Any], str]]:
        yield from decoder_ways(cls, given)

    @model_validator(mode="after")
    def _widths_fit(self) -> "SpeechModelOptions":
        widths = (self.encoder.width, self.decoder.width)
        cross = getattr(self.decoder, "cross", None)
        alike = getattr(cross, "equal_widths", False)
        if cross is not None and alike and None not in widths and widths[0] != widths[1]:
            raise ValueError(
                f"cross {cross.kind} needs equal widths of encoder and decoder, found {widths[0]} "
                f"and {widths[1]}; make them equal or use cross location"
            )
        return self

    def unfit(self, corpus: Corpus, source: str) -> tuple[np.ndarray, str] | None:
        return self.decoder.unfit(corpus, corpus.lengths[:, 0].astype(np.int64), source)

    def default_kind(self, stats: DataStats) -> tuple[str, str]:
        return "recurrent", "short texts: an LSTM converges faster"

    def default_width(self, stats: DataStats) -> int:
        return WIDTH

    def default_lr(self, stats: DataStats) -> float:
        return 2e-3

    def default_dropout(self, stats: DataStats, passes: float) -> float:
        return 0.1

    def trains_in_bfloat16(self, stats: DataStats) -> bool:
        return False

    def default_batch_tokens(self, stats: DataStats) -> int:
        """Return the default batch size in frames."""
        frames = round(ROWS * stats.target_tokens / max(1, stats.examples))
        return max(MIN_BATCH, min(frames, MAX_BATCH))

    def propose(self, stats: DataStats, config: Any) -> Iterator[AutoSetting]:
        encoder: Any = self.encoder
        if encoder.is_auto:  # a parallel decoder has no encoder of its kind
            yield AutoSetting("encoder.kind", *self.default_kind(stats))
            return
        yield from super().propose(stats, config)

    def build(self, shape: InputShape, bands: int, speakers: int) -> nn.Module:
        """Return the model for inputs of this shape.

        bands: numbers per frame. speakers: number of them; 0: sources have no speaker.
        """
        encoder: Any = self.encoder  # sizes must be set
        frontend = build_frontend(self.frontend, encoder, shape)
        width = encoder.output_for(frontend)
        body = encoder.build_for(frontend)
        voices = Embedding(speakers, width, 1.0) if speakers else None
        return self.decoder.build_model((frontend, body, voices), width, bands)
