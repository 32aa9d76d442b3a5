"""The registry of attention to the source of recurrent decoders: the union of its options."""

from typing import Annotated

from pydantic import Field

from regard.nn.attention_scores import Additive, Bilinear, Dot, NoAttention, ScaledDot
from regard.nn.location_score import Location
from regard.nn.monotonic_score import Monotonic

RecurrentCross = Annotated[
    NoAttention | Additive | Dot | ScaledDot | Bilinear | Location | Monotonic,
    Field(discriminator="kind"),
]
