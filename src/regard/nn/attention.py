"""Multi-head attention: project, split into heads, attend, join.

B rows, S memory length, T length, D width, H heads, K head width.
"""

from torch import Tensor, nn

from regard.data.batch import Padded
from regard.nn.state import fold, unfold
from regard.nn.watch import watched


class SelfAttention(nn.Module):
    """Multi-head self-attention (Vaswani et al. 2017, 3.2.2)."""

    def __init__(self, width: int, heads: int, kernel: nn.Module) -> None:
        super().__init__()
        self.heads = heads
        self.project = nn.Linear(width, 3 * width)
        self.join = nn.Linear(width, width)
        self.kernel = kernel
        nn.init.xavier_uniform_(self.project.weight)
        nn.init.zeros_(self.project.bias)

    def forward(
        self, x: Tensor, mask: Tensor | None, past: object, causal: bool
    ) -> tuple[Tensor, object]:
        """x (k*B, T, D) to (k*B, T, D) and what later steps need.

        mask: with B rows and k*T queries where k beams share the past of their sentence.
        """
        folded = x if mask is None else fold(x, len(mask))
        q, k, v = (
            self.project(folded).unflatten(-1, (3, self.heads, -1)).permute(2, 0, 3, 1, 4).unbind(0)
        )  # each (B, H, k*T, K)
        out, past = self.kernel(q, k, v, mask, past, causal)
        return unfold(self.join(out.transpose(1, 2).flatten(2)), x), past


class CrossAttention(nn.Module):
    """Multi-head attention from the target to the source; keys are projected once a sentence."""

    def __init__(self, width: int, memory_width: int, heads: int, kernel: nn.Module) -> None:
        super().__init__()
        self.heads = heads
        self.query = nn.Linear(width, width)
        self.project = nn.Linear(memory_width, 2 * width)
        self.join = nn.Linear(width, width)
        self.kernel = kernel
        nn.init.xavier_uniform_(self.query.weight)
        nn.init.xavier_uniform_(self.project.weight)
        nn.init.zeros_(self.query.bias)
        nn.init.zeros_(self.project.bias)

    def forward(
        self, x: Tensor, memory: Padded, keys: tuple[Tensor, Tensor] | None
    ) -> tuple[Tensor, tuple[Tensor, Tensor]]:
        """x (k*B, T, D) to the same shape, and the projected keys and values of memory."""
        if keys is None:
            keys = (
                self.project(memory.data)
                .unflatten(-1, (2, self.heads, -1))
                .permute(2, 0, 3, 1, 4)
                .unbind(0)
            )  # each (B, H, S, K)
        q = self.query(fold(x, len(memory.data))).unflatten(-1, (self.heads, -1))
        mask = memory.mask[:, None, None, :]  # (B, 1, 1, S)
        seen = watched()
        if seen is not None:
            weights: Tensor = self.kernel.weights(q.transpose(1, 2), keys[0], mask, False)  # type: ignore[operator]
            seen.cross.append(unfold(weights.transpose(1, 2), x).transpose(1, 2))
        out, _ = self.kernel(q.transpose(1, 2), *keys, mask, None, False)
        return unfold(self.join(out.transpose(1, 2).flatten(2)), x), keys
