"""Positional encodings, one file per family. `Positions` is the union of their options."""

from typing import Annotated

from pydantic import Field

from regard.nn.positions.alibi import Alibi
from regard.nn.positions.floater import Floater
from regard.nn.positions.learned import Learned
from regard.nn.positions.position import NoPositions, Position, PositionOptions
from regard.nn.positions.relative import Relative
from regard.nn.positions.rotary import Rotary
from regard.nn.positions.sinusoidal import Sinusoidal
from regard.nn.positions.t5 import T5

__all__ = ["NoPositions", "Position", "PositionOptions", "Positions", "Sinusoidal"]

Positions = Annotated[
    Sinusoidal | Learned | NoPositions | Relative | T5 | Rotary | Alibi | Floater,
    Field(discriminator="kind"),
]
