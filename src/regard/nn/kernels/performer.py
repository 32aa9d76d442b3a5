"""Performer attention: random features whose products approximate softmax attention.

Shapes: m features, K head width.
"""

from typing import ClassVar, Literal

import torch
from pydantic import Field
from torch import Tensor

from regard.nn.kernels.features import FeatureAttention
from regard.nn.kernels.kernel import Kernel, KernelOptions, Shape, Supports


class PerformerAttention(FeatureAttention):
    """Positive orthogonal random features, FAVOR+ (Choromanski et al. 2021).

    The mean of phi(q) . phi(k) over directions w is exp(q . k / sqrt(K)). Costs n * features. The
    directions are resampled every `redraw` updates (0: never) and saved with the weights.
    """

    directions: Tensor

    def __init__(self, features: int, head_width: int, redraw: int, causal: bool) -> None:
        super().__init__(causal)
        self.redraw = redraw
        self.register_buffer("directions", orthogonal_directions(features, head_width))

    def query_features(self, q: Tensor) -> Tensor:
        """Return exp(w . q + |w|^2 / 2), divided by its largest value per query."""
        exponents = self._products(q) + self._half_norms()
        return (exponents - exponents.detach().amax(-1, keepdim=True)).exp()

    def key_features(self, k: Tensor) -> Tensor:
        """Return exp(-|w - k|^2 / 2 + K / 2), which cannot overflow."""
        return self._key_exponents(k).exp()

    def relative_key_features(self, k: Tensor, real: Tensor | None) -> Tensor:
        """Return the features, divided by the largest one, so that not all of them underflow."""
        exponents = self._key_exponents(k)
        if real is not None:
            exponents = exponents.masked_fill(~real[:, None, :, None], float("-inf"))
        largest = exponents.detach().amax((-2, -1), keepdim=True)
        return (exponents - largest.clamp(min=torch.finfo(k.dtype).min)).exp()

    def _key_exponents(self, k: Tensor) -> Tensor:
        """Return -|w - k|^2 / 2 + K / 2 for keys k (..., K), divided by K^0.25."""
        half = k.square().sum(-1, keepdim=True) / (2 * k.shape[-1] ** 0.5)
        return self._products(k) - half - self._half_norms() + k.shape[-1] / 2

    def _products(self, x: Tensor) -> Tensor:
        """Return w . x / K^0.25 (..., m), so that q . k is divided by sqrt(K)."""
        return x @ self.directions.t() / x.shape[-1] ** 0.25

    def _half_norms(self) -> Tensor:
        return self.directions.square().sum(-1) / 2

    def advance(self, step: int, generator: torch.Generator) -> None:
        if self.redraw and step % self.redraw == 0:
            features, width = self.directions.shape
            self.directions.copy_(orthogonal_directions(features, width, generator))


def orthogonal_directions(
    features: int, width: int, generator: torch.Generator | None = None
) -> Tensor:
    """Return random vectors (m, K), normally distributed and orthogonal in groups of K."""
    groups = -(-features // width)
    square = torch.randn(groups, width, width, generator=generator)
    orthogonal, upper = torch.linalg.qr(square)
    signs = upper.diagonal(dim1=-2, dim2=-1).sign().unsqueeze(-2)  # makes all directions as likely
    orthogonal = (orthogonal * signs).transpose(-2, -1).flatten(0, 1)[:features]
    norms = torch.randn(features, width, generator=generator).norm(dim=-1, keepdim=True)
    return orthogonal * norms


class Performer(KernelOptions):
    """Softmax approximated by random features. Linear; decoding needs constant memory."""

    supports: ClassVar[Supports] = Supports(bias=False, input_bias=False)
    kind: Literal["performer"] = "performer"
    features: int = Field(64, gt=0, description="number of random features")
    redraw: int = Field(1000, ge=0, description="updates between two samples of features; 0: never")

    def build(self, shape: Shape) -> Kernel:
        width = shape.width // shape.heads
        return PerformerAttention(self.features, width, self.redraw, shape.causal)
