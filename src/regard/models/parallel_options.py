"""The options of parallel decoders, and of models without a decoder."""

from collections.abc import Iterator
from typing import Any, ClassVar, Literal

import numpy as np
from pydantic import Field, model_validator

from regard.core.data_stats import DataStats
from regard.core.options import AutoSetting, DerivedSetting
from regard.data.corpus.corpora import Corpus, PairCorpus
from regard.data.corpus.ragged import CHUNK_ROWS, Ragged
from regard.models.contracts import NetworkOptions
from regard.models.parallel import (
    FillModel,
    FramesModel,
    LengthClassifier,
    ParallelDecoder,
    Parts,
    SoftCopy,
    Split,
)
from regard.models.transformer_options import TransformerOptions
from regard.nn.kernels import Attention, Softmax

MIN_CHANGE = 8  # difference of lengths, or number of positions, that any data allows


class FrameOptions(NetworkOptions):
    """Base class of options of decoders with frames, for CTC.

    upsample: frames per source position; None: as `frames_of` for the kind of input.
    """

    upsample: int | None

    def unfit(
        self, corpus: Corpus, positions: np.ndarray, source: str
    ) -> tuple[np.ndarray, str] | None:
        """Return which targets have more tokens than frames, and the reason.

        CTC also needs a blank between two equal tokens.
        """
        if self.gives != "frames":
            return None
        upsample = self.upsample or frames_of(source == "sound")
        found = exceeds_frames(corpus, upsample * positions)
        why = f"longer than their frames for CTC (model.decoder.upsample={upsample})"
        return None if found is None else (found, why)


class NoDecoderOptions(FrameOptions):
    """Options of models without a decoder: an output layer on the encoder, for CTC."""

    exports: ClassVar[frozenset[str]] = frozenset()
    gives: ClassVar[str] = "frames"
    model_class: ClassVar[Any] = FramesModel
    kind: Literal["none"] = "none"
    upsample: int | None = Field(
        None,
        gt=0,
        description="frames per source position; outputs cannot be longer. None: 1 for sounds, "
        "which have many positions, otherwise 2",
    )
    width: int | None = Field(None, gt=0, description="width of the frames")
    dropout: float | None = Field(None, ge=0, lt=1, description="dropout rate")

    def default_sizes(self, stats: DataStats, width: int) -> dict[str, Any]:
        return {"width": width}

    @property
    def scale(self) -> float:
        """Return the factor of embeddings, of which this model has none."""
        return 1.0

    def propose(self, stats: DataStats, config: Any) -> Iterator[AutoSetting]:
        yield from super().propose(stats, config)
        reason = "sounds have many positions" if stats.frames else "outputs longer than sources"
        yield from self.auto_settings(reason, upsample=frames_of(stats.frames))

    def weights_for(self, stats: DataStats) -> int:
        assert self.width
        return (self.upsample or frames_of(stats.frames)) * self.width**2

    def build(self, memory_width: int, inputs: int | None = None) -> Parts:
        """Return the parts between encoder and output layer. inputs: unused."""
        assert self.width and self.upsample and self.dropout is not None
        return Parts(split=Split(memory_width, self.width, self.upsample, self.dropout))


class ParallelDecoderOptions(TransformerOptions, FrameOptions):
    """Options of a parallel decoder: a Transformer that computes all positions in one call."""

    exports: ClassVar[frozenset[str]] = frozenset()
    default_layers: ClassVar[int] = 2
    kind: Literal["parallel"] = "parallel"  # type: ignore[assignment]
    cross: Attention = Field(Softmax(), description="kind of attention to the source")
    length: Literal["classifier", "joint", "eos", "ctc"] = Field(
        "classifier",
        description="how the output length is determined. classifier: predicted from the source, "
        "without changing the encoder; joint: predicted, and its loss also trains the encoder; "
        "eos: `max` positions, truncated at the first EOS; ctc: `upsample` frames per source "
        "position, whose blanks are removed (with objective.kind=ctc)",
    )
    inputs: Literal["copy", "mask"] = Field(
        "copy",
        description="what masked positions read. copy: MASK plus a copy of the source, scaled to "
        "the output length; mask: only MASK",
    )
    max: int | None = Field(
        None,
        ge=0,
        description="classifier and joint: largest difference between target and source length; "
        "eos: number of positions. None: the largest value in the data",
    )
    upsample: int = Field(
        2, gt=0, description="frames per source position, with length=ctc; outputs cannot be longer"
    )

    @classmethod
    def ways(cls, given: dict[str, Any]) -> Iterator[tuple[dict[str, Any], str]]:
        chosen = given.get("length")
        if chosen is None and "upsample" not in given:
            yield {}, "fill"
        if chosen in (None, "ctc"):
            yield {"length": "ctc"}, "frames"
        else:
            yield {}, "fill"

    @property
    def gives(self) -> str:  # type: ignore[override]
        """Return the kind of output, which depends on `length`."""
        return "frames" if self.length == "ctc" else "fill"

    @property
    def model_class(self) -> Any:
        """Return the class of a model with this decoder."""
        return FramesModel if self.gives == "frames" else FillModel

    @property
    def features(self) -> dict[str, Any]:
        return super().features | {"length": self.length}

    @model_validator(mode="after")
    def _check_attention(self) -> "ParallelDecoderOptions":
        if not self.attention.supports.bidirectional:
            raise ValueError(
                f"attention {self.attention.kind} is causal only, but a parallel decoder sees all "
                "positions; use attention softmax"
            )
        if not self.cross.supports.cross:
            raise ValueError(
                f"cross {self.cross.kind} supports self-attention only; use cross softmax"
            )
        return self

    def propose(self, stats: DataStats, config: Any) -> Iterator[AutoSetting]:
        yield from super().propose(stats, config)
        if self.max is None:
            yield LENGTH_LIMITS[self.length](stats)

    def unfit(
        self, corpus: Corpus, positions: np.ndarray, source: str
    ) -> tuple[np.ndarray, str] | None:
        """Return which targets are longer than the decoder can write, and the reason."""
        if self.length != "eos" or self.max is None:
            return super().unfit(corpus, positions, source)
        return corpus.lengths[:, -1] > self.max, (
            f"longer than the positions of the decoder (model.decoder.max={self.max})"
        )

    def build(self, memory_width: int, inputs: int | None = None) -> Parts:
        """Return the parts of the model. memory_width: width of the encoder output."""
        assert self.width and self.dropout is not None and self.max is not None
        layers = self.build_layers(False, self.cross, memory_width)
        decoder = ParallelDecoder(layers, self.build_positions(), self.final_norm(), self.dropout)
        if self.gives == "frames":
            return Parts(decoder, Split(memory_width, self.width, self.upsample, self.dropout))
        copy = SoftCopy(memory_width, self.width) if self.inputs == "copy" else None
        if self.length == "eos":
            return Parts(decoder, copy=copy, positions=max(1, self.max))
        lengths = LengthClassifier(memory_width, self.max, self.length == "joint")
        return Parts(decoder, copy=copy, lengths=lengths)


def frames_of(sounds: bool) -> int:
    """Return the default of frames per source position."""
    return 1 if sounds else 2


def _longest(stats: DataStats) -> AutoSetting:
    value = max(stats.longest_target, MIN_CHANGE)
    return AutoSetting("max", value, "longest target in the data")


def _change(stats: DataStats) -> AutoSetting:
    value = max(stats.length_change, MIN_CHANGE)
    return AutoSetting("max", value, "largest difference between target and source length")


def _unused(stats: DataStats) -> AutoSetting:
    return DerivedSetting("max", 0, "not used by this kind of length")


LENGTH_LIMITS = {"classifier": _change, "joint": _change, "eos": _longest, "ctc": _unused}


def exceeds_frames(corpus: Corpus, frames: np.ndarray) -> np.ndarray | None:
    """Return which targets (N,) need more than these frames (N,) for CTC; None without pairs."""
    if (pairs := pairs_of(corpus)) is None:
        return None
    targets = pairs.lengths[:, 1].astype(np.int64)
    found: np.ndarray = targets - 1 + repeats(pairs.target) > frames  # without EOS
    return found


def pairs_of(corpus: Corpus) -> PairCorpus | None:
    """Return the pairs of a corpus, in memory or memory-mapped."""
    found = getattr(corpus, "pairs", corpus)
    return found if isinstance(found, PairCorpus) else None


def repeats(rows: Ragged) -> np.ndarray:
    """Return how often a token of each row (N,) equals the previous token."""
    counts, at = np.zeros(len(rows), np.int64), 0
    for flat in rows.chunks():
        lengths = rows.lengths[at : at + CHUNK_ROWS].astype(np.int64)
        row = np.repeat(np.arange(len(lengths)), lengths)
        same = (flat[1:] == flat[:-1]) & (row[1:] == row[:-1])
        counts[at : at + len(lengths)] = np.bincount(row[1:][same], minlength=len(lengths))
        at += len(lengths)
    return counts
