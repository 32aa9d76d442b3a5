"""Decoders: `start(memory)` returns a State; `forward(x, State)` reads any number of tokens.

The union of their options is the registry.
"""

from typing import Annotated

from pydantic import Field

from regard.models.encoders import AutoOptions
from regard.models.recurrent import RecurrentDecoderOptions
from regard.models.transformer_options import TransformerDecoderOptions

Decoder = Annotated[
    AutoOptions | TransformerDecoderOptions | RecurrentDecoderOptions, Field(discriminator="kind")
]
