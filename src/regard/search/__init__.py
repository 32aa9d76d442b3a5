"""Search: from a step function and a State to outputs."""

from typing import Annotated

from pydantic import Field

from regard.search.decide import Decide
from regard.search.hypothesis import Hypothesis, Wish
from regard.search.options import Beam
from regard.search.sample import Sample

__all__ = ["Beam", "Decide", "Hypothesis", "Sample", "Search", "Wish"]

Search = Annotated[Beam | Sample, Field(discriminator="kind")]
