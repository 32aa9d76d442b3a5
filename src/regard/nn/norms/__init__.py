"""Normalization layers, one file per family. `Norms` is the union of their options."""

from typing import Annotated

from pydantic import Field

from regard.nn.norms.batch import Batch, Power
from regard.nn.norms.norm import FusedNorm, NoNorm, NoNormOptions, Norm, NormOptions
from regard.nn.norms.vector import Layer, Rms, Scale

__all__ = ["FusedNorm", "Layer", "NoNorm", "Norm", "NormOptions", "Norms"]

Norms = Annotated[Layer | Rms | Scale | Batch | Power | NoNormOptions, Field(discriminator="kind")]
