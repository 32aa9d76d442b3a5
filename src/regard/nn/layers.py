"""Transformer layers: attention and a feed-forward network, each in a residual branch.

B sentences, k beams, R = k * B rows, S source length, T target length, D width.
"""

from torch import Tensor, nn

from regard.data.tensors.padded import Padded
from regard.data.tensors.tree import Tree
from regard.nn.attention import CrossAttention, SelfAttention
from regard.nn.capture_hooks import record_hidden
from regard.nn.feedforward import FeedForward
from regard.nn.fused import FusedLayer, fused_layer
from regard.nn.kernels.kernel import AttentionMask
from regard.nn.residual import Residual


class SelfLayer(nn.Module):
    """Self-attention, then a feed-forward network, each in a residual branch."""

    def __init__(
        self, attention: SelfAttention, feedforward: FeedForward, residuals: list[Residual]
    ) -> None:
        super().__init__()
        self.attention = attention
        self.feedforward = feedforward
        self.attend, self.feed = residuals
        self.attend.begin(attention)
        self.feed.begin(feedforward)

    def mix(
        self, x: Tensor, mask: AttentionMask, past: Tree, real: Tensor | None
    ) -> tuple[Tensor, Tree]:
        """(R, T, D) to (R, T, D), and what later steps need."""
        mixed, past = self.attention(self.attend.enter(x, real), mask, past)
        x = self.attend.leave(x, mixed, real)
        x = self.feed.leave(x, self.feedforward(self.feed.enter(x, real)), real)
        record_hidden(self, x)
        return x, past


class EncoderLayer(SelfLayer):
    """A layer that attends both ways."""

    def forward(self, x: Tensor, mask: AttentionMask) -> Tensor:
        """(B, S, D) to (B, S, D)."""
        return self.mix(x, mask, None, mask.real)[0]

    def fused(self) -> FusedLayer | None:
        """Its weights, if the fused step computes what it computes."""
        return fused_layer([(self.attend, self.attention), (self.feed, self.feedforward)])


class CausalLayer(SelfLayer):
    """A decoder layer without a source: it attends to what is before it, and keeps that."""

    def forward(
        self, x: Tensor, memory: None, mask: AttentionMask, keys: Tree, past: Tree, real: Tree
    ) -> tuple[Tensor, Tree, Tree]:
        """(B, T, D) to the same, nothing of a memory, and the past of this layer."""
        x, past = self.mix(x, mask, past, real)
        return x, None, past


class DecoderLayer(nn.Module):
    """Masked self-attention, cross-attention and a feed-forward network, each residual."""

    def __init__(
        self,
        attention: SelfAttention,
        cross: CrossAttention,
        feedforward: FeedForward,
        residuals: list[Residual],
    ) -> None:
        super().__init__()
        self.attention = attention
        self.cross = cross
        self.feedforward = feedforward
        self.attend, self.look, self.feed = residuals
        for residual, branch in zip(residuals, (attention, cross, feedforward), strict=True):
            residual.begin(branch)

    def forward(
        self,
        x: Tensor,
        memory: Padded,
        mask: AttentionMask,
        keys: Tree,
        past: Tree,
        real: Tensor | None,
    ) -> tuple[Tensor, Tree, Tree]:
        """(R, T, D) to the same, with what is kept of the memory and of the past of this layer."""
        mixed, past = self.attention(self.attend.enter(x, real), mask, past)
        x = self.attend.leave(x, mixed, real)
        found, keys = self.cross(self.look.enter(x, real), memory, keys)
        x = self.look.leave(x, found, real)
        x = self.feed.leave(x, self.feedforward(self.feed.enter(x, real)), real)
        record_hidden(self, x)
        return x, keys, past

    def fused(self) -> FusedLayer | None:
        """Its weights, if the fused step computes what it computes."""
        branches = (self.attention, self.cross, self.feedforward)
        residuals = (self.attend, self.look, self.feed)
        return fused_layer(list(zip(residuals, branches, strict=True)))
