"""Attention of a recurrent decoder to the source: the interface, and the kinds without a past.

The memory is the encoder output. Shapes: B sentences, k beams per sentence, R = k * B rows,
S source length, T target length, D width of the decoder, M width of the memory.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import ClassVar, Literal, NamedTuple

import torch
from torch import Tensor, nn

from regard.core.options import Options
from regard.data.tensors.padded import Padded
from regard.data.tensors.state import fold, unfold
from regard.data.tensors.tree import Tree
from regard.nn.ablation import zero_ablated
from regard.nn.additive_network import AdditiveNetwork
from regard.nn.capture_hooks import record_attention


class Score(nn.Module, ABC):
    """Base class of the attention of a recurrent decoder."""

    @abstractmethod
    def forward(
        self, h: Tensor, memory: Padded, keys: Tree, past: Tree
    ) -> tuple[Tensor, Tree, Tree]:
        """Return the contexts (R, T, M) of decoder states h (R, T, D), the keys, and the new past.

        keys: the projected memory (B rows); None in the first step. past: what the attention keeps
        from step to step (R rows), such as the previous weights; None in the first step.
        """

    def fast(self) -> "FastScore | None":
        """Return the fast path of one step, or None. Not inherited (see `claim`).

        The context must be one vector, or a mean of the memory with softmax weights.
        """
        return None


class FastScore(NamedTuple):
    """The fast path of one step of attention: the same result with less overhead.

    start: returns the keys (B, S, any) and values (B, S, M) of a memory. Without scores, the keys
    are None. scores: returns the scores (B, k, S) for states (R, D) and keys, up to a constant per
    state.
    """

    start: Callable[[Padded], tuple[Tensor | None, Tensor]]
    scores: Callable[[Tensor, Tensor], Tensor]


class FixedContext(Score):
    """No attention: the source is one vector (Sutskever et al. 2014; Cho et al. 2014)."""

    def forward(
        self, h: Tensor, memory: Padded, keys: Tree, past: Tree
    ) -> tuple[Tensor, Tree, Tree]:
        context = memory.pooled()  # (B, M)
        context = context.repeat_interleave(len(h) // len(context), 0)
        return context.unsqueeze(1).expand(-1, h.shape[1], -1), None, None

    def fast(self) -> FastScore | None:
        def start(memory: Padded) -> tuple[None, Tensor]:
            return None, memory.pooled().unsqueeze(1)

        return FastScore(start, _product)


class ScoredContext(Score):
    """A weighted mean of the memory. The weights are a softmax over a score per position."""

    heads = 1

    def project(self, memory: Padded) -> Tensor:
        """Return the keys (B, S, any) of the memory. Called once per sentence."""
        return memory.data

    @abstractmethod
    def score(self, h: Tensor, keys: Tensor) -> Tensor:
        """Return the scores (B, T, S) of states h (B, T, D) and keys (B, S, any)."""

    def forward(
        self, h: Tensor, memory: Padded, keys: Tree, past: Tree
    ) -> tuple[Tensor, Tree, Tree]:
        if keys is None:
            keys = self.project(memory)
        weights, past = self.attend(h, memory, keys, past)
        record_attention(self, lambda: unfold(weights, h).unsqueeze(1), at="source")
        found = zero_ablated(self, (weights @ memory.data).unsqueeze(1)).squeeze(1)
        return unfold(found, h), keys, past

    def attend(self, h: Tensor, memory: Padded, keys: Tensor, past: Tree) -> tuple[Tensor, Tree]:
        """Return the weights (B, k*T, S) of states h (R, T, D), and the new past."""
        return self.weights(fold(h, len(memory.data)), memory, keys), None

    def weights(self, h: Tensor, memory: Padded, keys: Tensor) -> Tensor:
        """Return the attention weights (B, T, S), which sum to one over S."""
        scores = self.score(h, keys)
        return scores.masked_fill(~memory.mask.unsqueeze(1), float("-inf")).softmax(-1)

    def _start(self, memory: Padded) -> tuple[Tensor, Tensor]:
        """Return the keys and values of the memory for the fast path."""
        return self.project(memory), memory.data


def _product(x: Tensor, keys: Tensor) -> Tensor:
    """Return the dot products (B, k, S) of states x (R, D) and keys (B, S, D)."""
    return torch.bmm(x.view(len(keys), -1, x.shape[1]), keys.transpose(1, 2))


class AdditiveScore(AdditiveNetwork, ScoredContext):
    """Score of each position by a small network, from its vector and the decoder state."""

    def fast(self) -> FastScore | None:
        plain = all(type(one) is nn.Linear for one in (self.query, self.key, self.weigh))
        if not plain:
            return None
        weight, bias = 2.0 * self.query.weight.detach().t(), 2.0 * self.query.bias.detach()
        weigh = 2.0 * self.weigh.weight.detach()[0]

        def scores(x: Tensor, keys: Tensor) -> Tensor:
            """Return the scores up to a constant, by sigmoid instead of tanh."""
            query = torch.addmm(bias, x, weight).view(len(keys), -1, 1, len(weigh))
            return torch.add(query, keys.unsqueeze(1), alpha=2.0).sigmoid_() @ weigh

        return FastScore(self._start, scores)


class DotScore(ScoredContext):
    """Dot product h . m (Luong et al. 2015, 3.1).

    scaled: whether it is divided by sqrt(D) (Vaswani et al. 2017).
    """

    def __init__(self, width: int, scaled: bool) -> None:
        super().__init__()
        self.factor = width**-0.5 if scaled else 1.0

    def score(self, h: Tensor, keys: Tensor) -> Tensor:
        return h @ keys.transpose(1, 2) * self.factor

    def fast(self) -> FastScore | None:
        scores = lambda x, keys: _product(x * self.factor, keys)  # noqa: E731
        return FastScore(self._start, scores)


class BilinearScore(ScoredContext):
    """Bilinear score h . W m (Luong et al. 2015, 3.1, "general")."""

    def __init__(self, width: int, memory_width: int) -> None:
        super().__init__()
        self.key = nn.Linear(memory_width, width, bias=False)

    def project(self, memory: Padded) -> Tensor:
        return self.key(memory.data)  # (B, S, D)

    def score(self, h: Tensor, keys: Tensor) -> Tensor:
        return h @ keys.transpose(1, 2)

    def fast(self) -> FastScore | None:
        return FastScore(self._start, _product)


class ScoreOptions(Options):
    """Base class of score options.

    equal_widths: whether encoder and decoder need the same width. aligns: whether it has weights
    that training can read.
    """

    exports: ClassVar[frozenset[str]] = frozenset()
    equal_widths: ClassVar[bool] = False
    aligns: ClassVar[bool] = True
    kind: str

    def build(self, width: int, memory_width: int) -> Score:
        """Return the attention of a decoder of this width to a memory of width `memory_width`."""
        raise NotImplementedError


class NoAttention(ScoreOptions):
    """No attention: the source is one vector."""

    exports: ClassVar[frozenset[str]] = frozenset({"onnx"})
    aligns: ClassVar[bool] = False
    kind: Literal["none"] = "none"

    def build(self, width: int, memory_width: int) -> Score:
        return FixedContext()


class Additive(ScoreOptions):
    """Score of each position by a small feed-forward network."""

    exports: ClassVar[frozenset[str]] = frozenset({"onnx"})
    kind: Literal["additive"] = "additive"

    def build(self, width: int, memory_width: int) -> Score:
        return AdditiveScore(width, memory_width)


class Dot(ScoreOptions):
    """Dot product of decoder state and encoder state."""

    exports: ClassVar[frozenset[str]] = frozenset({"onnx"})
    equal_widths: ClassVar[bool] = True
    kind: Literal["dot"] = "dot"

    def build(self, width: int, memory_width: int) -> Score:
        return DotScore(width, scaled=False)


class ScaledDot(ScoreOptions):
    """Dot product of decoder and encoder state, divided by the square root of the width."""

    exports: ClassVar[frozenset[str]] = frozenset({"onnx"})
    equal_widths: ClassVar[bool] = True
    kind: Literal["scaled_dot"] = "scaled_dot"

    def build(self, width: int, memory_width: int) -> Score:
        return DotScore(width, scaled=True)


class Bilinear(ScoreOptions):
    """Dot product with a learned matrix in between."""

    exports: ClassVar[frozenset[str]] = frozenset({"onnx"})
    kind: Literal["bilinear"] = "bilinear"

    def build(self, width: int, memory_width: int) -> Score:
        return BilinearScore(width, memory_width)
