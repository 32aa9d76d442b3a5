"""Encoders: Padded vectors in, Padded vectors out, the same length.

The union of their options is the registry.
"""

from collections.abc import Iterator
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field, model_validator

from regard.core.data_stats import DataStats
from regard.core.options import AutoSetting, DerivedSetting, Options
from regard.inputs import Frontends, usual_frontend
from regard.models.contracts import what_is_lost
from regard.models.model_options import ModelOptions
from regard.models.recurrent import RecurrentEncoderOptions
from regard.models.transformer_options import TransformerEncoderOptions
from regard.models.window import Linear, Mlp, Window


class Auto(Options):
    """The kind is chosen from the data, or is that of the other side where that is given."""

    is_auto: ClassVar[bool] = True
    gives: ClassVar[str] = "steps"
    kind: Literal["auto"] = "auto"
    layers: int | None = Field(None, gt=0, description="number of layers")
    width: int | None = Field(None, gt=0, description="width of the vectors")
    dropout: float | None = Field(None, ge=0, lt=1, description="dropout rate")


Encoder = Annotated[
    Auto | TransformerEncoderOptions | RecurrentEncoderOptions | Linear | Mlp | Window,
    Field(discriminator="kind"),
]


class SourceModelOptions(ModelOptions):
    """What models that read sources have in common."""

    frontend: Frontends | None = Field(None, description="how sources become vectors")
    encoder: Encoder = Auto()

    @model_validator(mode="after")
    def _nothing_is_lost(self) -> "SourceModelOptions":
        encoder: Any = self.encoder
        if self.frontend is None or encoder.is_auto:
            return self
        if refusal := what_is_lost(self.frontend, encoder):
            raise ValueError(refusal)
        return self

    def propose(self, stats: DataStats, config: Any) -> Iterator[AutoSetting]:
        yield from super().propose(stats, config)
        if self.is_sized and self.frontend is None:
            usual = usual_frontend(stats.source).model_dump()
            yield DerivedSetting("frontend", usual, "the kind of the sources")
