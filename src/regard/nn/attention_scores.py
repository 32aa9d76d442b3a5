"""Attention of a recurrent decoder over the encoded source.

B rows, S source length, T target length, D width of the decoder, M width of the memory.
"""

from typing import Literal

import torch
from torch import Tensor, nn

from regard.data.tensors.padded import Padded
from regard.data.tensors.state import fold, unfold
from regard.nn.ablation import zero_ablated
from regard.nn.capture_hooks import record_attention

ScoreKind = Literal["none", "additive", "dot", "scaled_dot", "bilinear"]


class FixedContext(nn.Module):
    """No attention: the source as one vector (Sutskever et al. 2014; Cho et al. 2014)."""

    def forward(self, h: Tensor, memory: Padded, keys: None) -> tuple[Tensor, None]:
        """h (k*B, T, D) to contexts (k*B, T, M)."""
        context = memory.pooled()  # (B, M)
        context = context.repeat_interleave(len(h) // len(context), 0)
        return context.unsqueeze(1).expand(-1, h.shape[1], -1), None


class ScoredContext(nn.Module):
    """A weighted mean of the memory, weighted by softmax over a score of each place."""

    heads = 1

    def project(self, memory: Padded) -> Tensor:
        """What the score needs of the memory, computed once a sentence: (B, S, any)."""
        return memory.data

    def score(self, h: Tensor, keys: Tensor) -> Tensor:
        """(B, T, D) and (B, S, any) to scores (B, T, S)."""
        raise NotImplementedError

    def forward(self, h: Tensor, memory: Padded, keys: Tensor | None) -> tuple[Tensor, Tensor]:
        """h (k*B, T, D) to contexts (k*B, T, M), and the keys."""
        if keys is None:
            keys = self.project(memory)
        weights = self.weights(fold(h, len(memory.data)), memory, keys)
        record_attention(self, lambda: unfold(weights, h).unsqueeze(1), at="source")
        found = zero_ablated(self, (weights @ memory.data).unsqueeze(1)).squeeze(1)
        return unfold(found, h), keys

    def weights(self, h: Tensor, memory: Padded, keys: Tensor) -> Tensor:
        """The attention (B, T, S); each row sums to one."""
        scores = self.score(h, keys)
        return scores.masked_fill(~memory.mask.unsqueeze(1), float("-inf")).softmax(-1)


class Additive(ScoredContext):
    """v . tanh(W h + U m) (Bahdanau et al. 2015, A.1.2)."""

    def __init__(self, width: int, memory_width: int) -> None:
        super().__init__()
        self.query = nn.Linear(width, width)
        self.key = nn.Linear(memory_width, width, bias=False)
        self.weigh = nn.Linear(width, 1, bias=False)

    def project(self, memory: Padded) -> Tensor:
        return self.key(memory.data)  # (B, S, D)

    def score(self, h: Tensor, keys: Tensor) -> Tensor:
        mixed = torch.tanh(self.query(h).unsqueeze(2) + keys.unsqueeze(1))  # (B, T, S, D)
        return self.weigh(mixed).squeeze(-1)


class Dot(ScoredContext):
    """h . m (Luong et al. 2015, 3.1), divided by sqrt(D) if scaled (Vaswani et al. 2017)."""

    def __init__(self, width: int, scaled: bool) -> None:
        super().__init__()
        self.factor = width**-0.5 if scaled else 1.0

    def score(self, h: Tensor, keys: Tensor) -> Tensor:
        return h @ keys.transpose(1, 2) * self.factor


class Bilinear(ScoredContext):
    """h . W m (Luong et al. 2015, 3.1, "general")."""

    def __init__(self, width: int, memory_width: int) -> None:
        super().__init__()
        self.key = nn.Linear(memory_width, width, bias=False)

    def project(self, memory: Padded) -> Tensor:
        return self.key(memory.data)  # (B, S, D)

    def score(self, h: Tensor, keys: Tensor) -> Tensor:
        return h @ keys.transpose(1, 2)


def build_score(kind: ScoreKind, width: int, memory_width: int) -> nn.Module:
    """The attention of this kind."""
    if kind == "none":
        return FixedContext()
    if kind == "additive":
        return Additive(width, memory_width)
    if kind == "bilinear":
        return Bilinear(width, memory_width)
    return Dot(width, scaled=kind == "scaled_dot")
