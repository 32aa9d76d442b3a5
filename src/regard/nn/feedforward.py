"""The position-wise feed-forward network."""

from collections.abc import Callable
from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from regard.nn.dropout import Dropout
from regard.nn.fused import FusedBranch, fused_branch

Activation = Literal["relu", "gelu", "silu", "tanh", "sigmoid"]
FeedForwardActivation = Literal[Activation, "glu", "reglu", "geglu", "swiglu"]
ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "relu": F.relu,
    "gelu": F.gelu,
    "silu": F.silu,  # x sigmoid(x), also called swish
    "tanh": torch.tanh,
    "sigmoid": torch.sigmoid,
}
GATED = {  # the function of the gate
    "glu": "sigmoid",
    "reglu": "relu",
    "geglu": "gelu",
    "swiglu": "silu",
}


class FeedForward(nn.Module):
    """The network W2 f(W1 x + b1) + b2 at each position (Vaswani et al. 2017, eq. 2).

    With a gated activation: W2 (f(W1 x + b1) * (W3 x + b3)) + b2 (Shazeer 2020, eq. 6).
    """

    def __init__(
        self, width: int, inner: int, activation: FeedForwardActivation, dropout: float
    ) -> None:
        super().__init__()
        self.widen = nn.Linear(width, inner)
        self.narrow = nn.Linear(inner, width)
        self.gate = nn.Linear(width, inner) if activation in GATED else None
        self.activation = ACTIVATIONS[GATED.get(activation, activation)]
        self.kind = activation
        self.dropout = Dropout(dropout)

    def forward(self, x: Tensor) -> Tensor:
        """Apply the network to each vector of x (..., D)."""
        inner = self.activation(self.widen(x))
        if self.gate is not None:
            inner = inner * self.gate(x)
        return self.narrow(self.dropout(inner))

    def rectified(self, x: Tensor, output: Tensor) -> Tensor:
        """Return the input (..., inner) of the activation function. output: ignored."""
        return self.widen(x)

    def fused(self) -> FusedBranch | None:
        """Return the weights for the fused step (`nn.fused`); None if it is not supported."""
        if self.gate is not None:
            return None
        return fused_branch(self.widen, self.narrow, activation=self.kind)
