"""The registry of decoders: the union of their options.

`start(memory)` of a decoder returns the `State` before the first token. memory: encoder output.
`forward(x, state)` reads one or more tokens. Parallel decoders have no `start` (see
`models/parallel.py`).
"""

from typing import Annotated

from pydantic import Field

from regard.models.encoders import AutoOptions
from regard.models.parallel_options import NoDecoderOptions, ParallelDecoderOptions
from regard.models.recurrent import RecurrentDecoderOptions
from regard.models.transformer_options import TransformerDecoderOptions

Decoder = Annotated[
    AutoOptions
    | TransformerDecoderOptions
    | RecurrentDecoderOptions
    | ParallelDecoderOptions
    | NoDecoderOptions,
    Field(discriminator="kind"),
]
