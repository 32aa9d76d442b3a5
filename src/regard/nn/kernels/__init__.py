"""Attention kernels, one file each. `Attention` is the union of their options."""

from regard.nn.kernels.softmax import Softmax

Attention = Softmax  # with several kinds: Annotated[Softmax | Local, Field(discriminator="kind")]
