"""The position-wise feed-forward network."""

from collections.abc import Callable
from typing import Literal

import torch.nn.functional as F
from torch import Tensor, nn

from regard.nn.dropout import Dropout
from regard.nn.fused import FusedBranch, fused_branch

Activation = Literal["relu", "gelu", "silu"]
ACTIVATIONS: dict[Activation, Callable[[Tensor], Tensor]] = {
    "relu": F.relu,
    "gelu": F.gelu,
    "silu": F.silu,  # x sigmoid(x), also called swish
}


class FeedForward(nn.Module):
    """The network W2 f(W1 x + b1) + b2 at each position (Vaswani et al. 2017, eq. 2)."""

    def __init__(self, width: int, inner: int, activation: Activation, dropout: float) -> None:
        super().__init__()
        self.widen = nn.Linear(width, inner)
        self.narrow = nn.Linear(inner, width)
        self.activation = ACTIVATIONS[activation]
        self.kind = activation
        self.dropout = Dropout(dropout)

    def forward(self, x: Tensor) -> Tensor:
        """Apply the network to each vector of x (..., D)."""
        return self.narrow(self.dropout(self.activation(self.widen(x))))

    def rectified(self, x: Tensor, output: Tensor) -> Tensor:
        """Return the input (..., inner) of the activation function. output: ignored."""
        return self.widen(x)

    def fused(self) -> FusedBranch | None:
        """Return the weights for the fused step (`nn.fused`); None if it is not supported."""
        return fused_branch(self.widen, self.narrow, activation=self.kind)
