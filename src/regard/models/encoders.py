"""Encoders: Padded vectors in, Padded vectors out, the same length.

The union of their options is the registry.
"""

from typing import Annotated, Literal

from pydantic import Field

from regard.core.options import Options
from regard.models.recurrent import RecurrentEncoderOptions
from regard.models.transformer_options import TransformerEncoderOptions
from regard.models.window import Linear, Mlp, Window


class Auto(Options):
    """The kind is chosen from the data, or is that of the other side where that is given."""

    kind: Literal["auto"] = "auto"
    layers: int | None = Field(None, gt=0, description="layers")
    width: int | None = Field(None, gt=0, description="size of the vectors")
    dropout: float | None = Field(None, ge=0, lt=1, description="share of activations zeroed")


Encoder = Annotated[
    Auto | TransformerEncoderOptions | RecurrentEncoderOptions | Linear | Mlp | Window,
    Field(discriminator="kind"),
]
