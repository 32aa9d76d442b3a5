"""Top-k attention: softmax over the largest scores of each query only."""

from typing import ClassVar, Literal

from pydantic import Field
from torch import Tensor

from regard.nn.kernels.dense import DenseAttention
from regard.nn.kernels.kernel import Kernel, KernelOptions, Shape, masked_softmax

TIE = 1e-5  # difference of scores that count as equal, relative to the largest: their rounding


class TopKAttention(DenseAttention):
    """Softmax over the `count` largest scores of each query (Zhao et al. 2019; Gupta et al. 2021).

    Scores that equal the smallest of them are kept as well, for example those of equal tokens. All
    scores are computed, so the cost stays quadratic.
    """

    def __init__(self, count: int, causal: bool) -> None:
        super().__init__(causal)
        self.count = count

    def normalize(self, scores: Tensor, visible: Tensor | None) -> Tensor:
        if visible is not None:
            scores = scores.masked_fill(~visible, float("-inf"))
        smallest = scores.detach().topk(min(self.count, scores.shape[-1])).values[..., -1:]
        finite = scores.detach().masked_fill(scores == float("-inf"), 0.0)
        smallest = smallest - TIE * finite.abs().amax(-1, keepdim=True)
        return masked_softmax(scores, (scores >= smallest) & (scores > float("-inf")))


class TopK(KernelOptions):
    """Softmax over the largest scores of each query. Quadratic."""

    aligns: ClassVar[bool] = True
    kind: Literal["topk"] = "topk"
    count: int = Field(8, gt=0, description="scores per query that are kept")

    def build(self, shape: Shape) -> Kernel:
        return TopKAttention(self.count, shape.causal)
