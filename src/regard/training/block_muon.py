"""Muon: momentum made orthogonal, for the matrices inside a network (Jordan et al. 2024).

An update moves all directions of a matrix by the same amount, where a gradient has most of its
length in a few. Torch's own works in bfloat16, which CPUs without instructions for it do at a
twentieth of the speed of float32, and takes one matrix at a time. Here matrices of one shape are
worked on together, in float32 on a CPU, by all threads.
"""

from collections import defaultdict
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from regard.nn.attention import CrossAttention, SelfAttention
from regard.threads import in_threads, threads_there

# a, b, c of x -> a x + b x^3 + c x^5, which sends all of (0, 1] to about 1 when repeated: steep
# at 0, so that small singular values grow fast (Jordan et al. 2024)
QUINTIC = (3.4445, -4.7750, 2.0315)


class Orthogonal(torch.optim.Optimizer):
    """Momentum, made orthogonal, times a rate that is comparable with that of Adam.

    An orthogonal matrix (m, n) has numbers of size max(m, n)^-0.5; times 0.2 max(m, n)^0.5 they
    are as large as those of an update of Adam usually are (Liu et al. 2025, eq. 4), so that the
    same learning rate and weight decay fit both.
    """

    def __init__(
        self,
        groups: list[dict[str, Any]],
        lr: float,
        momentum: float,
        nesterov: bool,
        iterations: int,
        blocks: dict[int, int],
    ) -> None:
        """blocks: by the id of a weight, the matrices that it holds one below the other."""
        super().__init__(groups, {"lr": lr, "weight_decay": 0.0})
        self.momentum = momentum
        self.nesterov = nesterov
        self.iterations = iterations
        self.blocks = blocks

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> None:  # type: ignore[override]
        """One step."""
        alike: dict[tuple[int, int], list[tuple[nn.Parameter, float, Tensor]]] = defaultdict(list)
        for group in self.param_groups:
            for weight in group["params"]:
                if weight.grad is None:
                    continue
                weight.mul_(1 - group["lr"] * group["weight_decay"])
                parts = self._direction(weight)  # (blocks, m, n)
                m, n = parts.shape[1:]
                alike[m, n].append((weight, group["lr"] * 0.2 * max(m, n) ** 0.5, parts))
        for members in alike.values():
            whole = torch.cat([parts for _, _, parts in members])
            found = orthogonal(whole, self.iterations)
            sizes = [len(parts) for _, _, parts in members]
            for (weight, rate, _), update in zip(members, found.split(sizes), strict=True):
                weight.sub_(update.reshape(weight.shape), alpha=rate)

    def _direction(self, weight: nn.Parameter) -> Tensor:
        """Where the momentum points after this gradient, as matrices (blocks, m, n)."""
        assert weight.grad is not None
        state = self.state[weight]
        if not state:
            state["momentum"] = torch.zeros_like(weight)
        past = state["momentum"].lerp_(weight.grad, 1 - self.momentum)
        ahead = weight.grad.lerp(past, self.momentum) if self.nesterov else past
        return ahead.flatten(1).unflatten(0, (self.blocks.get(id(weight), 1), -1))


def orthogonal(matrices: Tensor, iterations: int) -> Tensor:
    """Matrices (N, m, n) with all singular values brought to about 1, by all threads."""
    if matrices.device.type != "cpu":
        return _newton_schulz(matrices.bfloat16(), iterations).to(matrices.dtype)
    threads = min(threads_there(), len(matrices))
    found = in_threads(
        lambda part: _newton_schulz(part, iterations), matrices.chunk(threads), threads
    )
    return torch.cat(found)


def _newton_schulz(x: Tensor, iterations: int) -> Tensor:
    """The iteration x -> a x + b (x x') x + c (x x')^2 x, on the shorter side."""
    a, b, c = QUINTIC
    flipped = x.shape[1] > x.shape[2]
    x = x.mT if flipped else x
    x = x / (x.flatten(1).norm(dim=1)[:, None, None] + 1e-7)
    for _ in range(iterations):
        square = x @ x.mT
        x = torch.baddbmm(x, torch.baddbmm(square, square, square, beta=b, alpha=c), x, beta=a)
    return x.mT if flipped else x


def blocks(model: nn.Module) -> dict[int, int]:
    """By the id of a weight that holds several matrices: how many. Gates; queries, keys, values."""
    found: dict[int, int] = {}
    for part in model.modules():
        if isinstance(part, SelfAttention | CrossAttention):
            count = 3 if isinstance(part, SelfAttention) else 2
            found[id(part.project.weight)] = count
        if isinstance(part, nn.RNNBase):
            for weight in part.parameters():
                found[id(weight)] = len(weight) // part.hidden_size
    return found
