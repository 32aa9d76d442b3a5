"""Search algorithms that find the outputs of a model: beam search, sampling, argmax."""

from typing import Annotated

from pydantic import Field

from regard.search.argmax import Argmax
from regard.search.beam_options import Beam
from regard.search.ctc_options import Collapse
from regard.search.frame_search import Expand, Unroll
from regard.search.hypothesis import Hypothesis, TokenConstraints
from regard.search.refine_options import Refine
from regard.search.sample_options import Sample
from regard.search.search import Search, SearchRequest

__all__ = [
    "Argmax",
    "Beam",
    "Collapse",
    "Expand",
    "Hypothesis",
    "LabelSearch",
    "Refine",
    "Sample",
    "Search",
    "SearchRequest",
    "SequenceSearch",
    "SoundSearch",
    "TextSearch",
    "TokenConstraints",
    "Unroll",
]

# The searches for each kind of output: sequences, continuations of a prompt, labels, sounds.
SequenceSearch = Annotated[Beam | Sample | Refine | Collapse, Field(discriminator="kind")]
TextSearch = Sample
LabelSearch = Argmax
SoundSearch = Annotated[Unroll | Expand, Field(discriminator="kind")]
