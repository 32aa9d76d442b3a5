"""Attention kernels, one file each; the union of their options is the registry."""

from regard.nn.kernels.softmax import Softmax

Attention = Softmax  # of several kinds: Annotated[Softmax | Local, Field(discriminator="kind")]
