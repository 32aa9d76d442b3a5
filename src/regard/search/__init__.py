"""Search: from a step function and a State to outputs."""

from typing import Annotated

from pydantic import Field

from regard.search.beam_options import Beam
from regard.search.decide import Decide
from regard.search.hypothesis import Hypothesis, TokenConstraints
from regard.search.sample import Sample

__all__ = ["Beam", "Decide", "Hypothesis", "Sample", "Search", "TokenConstraints"]

Search = Annotated[Beam | Sample, Field(discriminator="kind")]
