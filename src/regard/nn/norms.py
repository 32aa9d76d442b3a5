"""Normalisation, and where it stands around a residual branch."""

from typing import Literal

from torch import Tensor, nn

from regard.nn.dropout import Dropout

NormKind = Literal["layer", "rms"]
NormPlace = Literal["pre", "post"]


def build_norm(kind: NormKind, width: int) -> nn.Module:
    """Layer norm (Ba et al. 2016) or root-mean-square norm (Zhang and Sennrich 2019)."""
    return nn.LayerNorm(width) if kind == "layer" else nn.RMSNorm(width, eps=1e-6)


class Residual(nn.Module):
    """A residual branch: the only code that knows where the norm stands.

    pre:  x + f(norm(x))  (Xiong et al. 2020)      post: norm(x + f(x))  (Vaswani et al. 2017)
    Use: `x = residual.leave(x, f(residual.enter(x)))`.
    """

    def __init__(self, width: int, norm: NormKind, place: NormPlace, dropout: float) -> None:
        super().__init__()
        self.norm = build_norm(norm, width)
        self.place = place
        self.dropout = Dropout(dropout)

    def enter(self, x: Tensor) -> Tensor:
        """What the branch sees."""
        return self.norm(x) if self.place == "pre" else x

    def leave(self, x: Tensor, branch: Tensor) -> Tensor:
        """The sum of the stream and the branch."""
        x = x + self.dropout(branch)
        return x if self.place == "pre" else self.norm(x)
