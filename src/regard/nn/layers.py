"""Transformer layers: attention and a feed-forward network, each in a residual branch.

Shapes: B sentences, k beams per sentence, R = k * B rows, S source length, T target length,
D width.
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


class TransformerLayer(nn.Module):
    """Self-attention, optional cross-attention, and a feed-forward network."""

    def __init__(
        self,
        attention: SelfAttention,
        cross: CrossAttention | None,
        feedforward: FeedForward,
        residuals: list[Residual],
    ) -> None:
        super().__init__()
        self.attention = attention
        self.cross = cross
        self.feedforward = feedforward
        self.attend = residuals[0]
        self.look = residuals[1] if cross is not None else None
        self.feed = residuals[-1]
        self.init_branches()

    def init_branches(self) -> None:
        """Scale the initial weights of the branches, after each initialization."""
        for residual, part in self.branches():
            residual.init_branch(part)

    def branches(self) -> list[tuple[Residual, nn.Module]]:
        """Return the residual branches, each with its module, first to last."""
        found: list[tuple[Residual, nn.Module]] = [(self.attend, self.attention)]
        if self.look is not None and self.cross is not None:
            found.append((self.look, self.cross))
        return [*found, (self.feed, self.feedforward)]

    def forward(
        self,
        x: Tensor,
        memory: Padded | None,
        mask: AttentionMask,
        keys: Tree,
        past: Tree,
        real: Tensor | None,
    ) -> tuple[Tensor, Tree, Tree]:
        """Return the output (R, T, D), the projected memory, and the new past.

        memory: the encoder output, for cross-attention. keys: its projection by an earlier call,
        or None. past: what the attention kernel keeps between steps, such as a key-value cache.
        real: (R, T), True unless padding; None: no padding.
        """
        mixed, past = self.attention(self.attend.enter(x, real), mask, past)
        x = self.attend.leave(x, mixed, real)
        if self.cross is not None and self.look is not None:
            found, keys = self.cross(self.look.enter(x, real), memory, keys)
            x = self.look.leave(x, found, real)
        x = self.feed.leave(x, self.feedforward(self.feed.enter(x, real)), real)
        record_hidden(self, x)
        return x, keys, past

    def fused(self) -> FusedLayer | None:
        """Return the weights for the fused step (`nn.fused`); None if it is not supported."""
        return fused_layer(self.branches())
