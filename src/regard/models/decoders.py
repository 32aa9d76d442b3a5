"""Decoders: `start(memory)` gives a State; `forward(x, State)` takes any number of tokens.

The union of their options is the registry.
"""

from typing import Annotated

from pydantic import Field

from regard.models.encoders import Auto
from regard.models.recurrent import RecurrentDecoderOptions
from regard.models.transformer_options import TransformerDecoderOptions

Decoder = Annotated[
    Auto | TransformerDecoderOptions | RecurrentDecoderOptions, Field(discriminator="kind")
]
