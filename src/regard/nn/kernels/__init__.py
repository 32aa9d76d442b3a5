"""Attention kernels, one file each. `Attention` is the union of their options.

SEQUENCE_KERNELS: those that are not for graphs, by name.
"""

from typing import Annotated

from pydantic import Field

from regard.core.options import kinds_of
from regard.nn.kernels.additive import AdditiveScores
from regard.nn.kernels.bigbird import BigBird
from regard.nn.kernels.block import Block
from regard.nn.kernels.convolution import Convolution
from regard.nn.kernels.distances import Distances
from regard.nn.kernels.edges import EdgeAttentionOptions
from regard.nn.kernels.kernel import KernelOptions
from regard.nn.kernels.linear import Linear
from regard.nn.kernels.linformer import Linformer
from regard.nn.kernels.local import Local
from regard.nn.kernels.longformer import Longformer
from regard.nn.kernels.nystrom import Nystrom
from regard.nn.kernels.performer import Performer
from regard.nn.kernels.reformer import Reformer
from regard.nn.kernels.relu import Relu
from regard.nn.kernels.softmax import Softmax
from regard.nn.kernels.strided import Strided
from regard.nn.kernels.synthesizer import Synthesizer
from regard.nn.kernels.topk import TopK

Attention = Annotated[
    Softmax
    | Local
    | Strided
    | Block
    | Longformer
    | BigBird
    | Linformer
    | Nystrom
    | Reformer
    | Linear
    | Performer
    | Synthesizer
    | TopK
    | Relu
    | AdditiveScores
    | Convolution
    | EdgeAttentionOptions
    | Distances,
    Field(discriminator="kind"),
]

ALL: dict[str, type[KernelOptions]] = kinds_of(Attention)  # type: ignore[assignment]
SEQUENCE_KERNELS = {name: kind for name, kind in ALL.items() if not kind.supports.edges}
