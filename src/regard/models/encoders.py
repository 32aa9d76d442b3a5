"""The registry of encoders: the union of their options.

An encoder maps `Padded` vectors to `Padded` vectors of the same length.
"""

from collections.abc import Iterator
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from pydantic import Field, model_validator

from regard.core.data_stats import DataStats
from regard.core.errors import UserError
from regard.core.options import AutoSetting, DerivedSetting, Options
from regard.data.corpus.corpora import Corpus
from regard.inputs import Frontends, default_frontend
from regard.models.cnn import CnnEncoderOptions
from regard.models.contracts import incompatibility
from regard.models.graph_attention import GatEncoderOptions
from regard.models.graph_convolution import GcnEncoderOptions
from regard.models.model_options import ModelOptions
from regard.models.recurrent import RecurrentEncoderOptions
from regard.models.transformer_options import TransformerEncoderOptions
from regard.models.window import LinearEncoderOptions, MlpEncoderOptions, WindowEncoderOptions


class AutoOptions(Options):
    """Placeholder options of an encoder or decoder whose kind is chosen automatically.

    The kind is that of the other side (decoder or encoder) if it is set, or depends on the data.
    """

    is_auto: ClassVar[bool] = True
    gives: ClassVar[str] = "steps"
    aligns: ClassVar[bool] = True
    kind: Literal["auto"] = "auto"
    layers: int | None = Field(None, gt=0, description="number of layers")
    width: int | None = Field(None, gt=0, description="hidden size")
    dropout: float | None = Field(None, ge=0, lt=1, description="dropout rate")

    @classmethod
    def ways(cls, given: dict[str, Any]) -> Iterator[tuple[dict[str, Any], str]]:
        """Yield settings that complete the given ones, and the output of a model with them."""
        yield {}, cls.gives

    def unfit(self, corpus: Corpus, positions: np.ndarray, source: str) -> None:
        """Return None: the kind that replaces this one can learn all examples."""


Encoder = Annotated[
    AutoOptions
    | TransformerEncoderOptions
    | RecurrentEncoderOptions
    | LinearEncoderOptions
    | MlpEncoderOptions
    | WindowEncoderOptions
    | CnnEncoderOptions
    | GcnEncoderOptions
    | GatEncoderOptions,
    Field(discriminator="kind"),
]


class SourceModelOptions(ModelOptions):
    """Base class of options of models with an encoder."""

    frontend: Frontends | None = Field(None, description="how sources are embedded")
    encoder: Encoder = AutoOptions()

    @model_validator(mode="after")
    def _check_frontend(self) -> "SourceModelOptions":
        encoder: Any = self.encoder
        if self.frontend is None or encoder.is_auto:
            return self
        if problem := incompatibility(self.frontend, encoder):
            raise ValueError(problem)
        return self

    def products(self, stats: DataStats) -> int:
        """Return the approximate number of multiply-adds of a forward pass over the data."""
        encoder: Any = self.encoder
        read = self.frontend or default_frontend(stats.source, encoder)
        more = (read.positions(stats) - 1) * encoder.weights_for(stats)
        return super().products(stats) + more * stats.examples if more else super().products(stats)

    def propose(self, stats: DataStats, config: Any) -> Iterator[AutoSetting]:
        yield from super().propose(stats, config)
        if self.is_sized and self.frontend is None:
            encoder: Any = self.encoder
            options = default_frontend(stats.source, encoder)
            if problem := incompatibility(options, encoder):
                if encoder.needs:
                    needs = " and ".join(sorted(encoder.needs)).replace("grid", "images")
                    problem = (
                        f"model.encoder.kind={encoder.kind}: reads {needs}, found {stats.source}"
                    )
                help = f"use --set model.encoder.kind={self.default_kind(stats)[0]}"
                raise UserError(problem, help=help)
            usual = options.model_dump()
            yield DerivedSetting("frontend", usual, "default for this kind of source")
