"""Positions that follow a learned dynamical system. Shapes: B batch size, T length, D width."""

from typing import ClassVar, Literal

import torch
from pydantic import Field
from torch import Tensor, nn

from regard.nn.positions.position import Position, PositionOptions, table_size
from regard.nn.positions.sinusoidal import sinusoids

TIME_PER_POSITION = 0.1
MIN_TABLE = 64  # positions in the cache


class FloaterPosition(Position):
    """The solution p of dp/dt = h(t, p), p(0) = 0, with a learned h (FLOATER, Liu et al. 2020).

    h(t, p) = V tanh(W p + t w + b) + c. The fourth-order Runge-Kutta method solves it with a fixed
    step. p is added before every layer, and sinusoids before the first. V and c start at 0, so
    that the encoding starts as the sinusoidal one.
    """

    every_layer: ClassVar[bool] = True

    def __init__(self, width: int, inner: int, steps: int) -> None:
        super().__init__()
        self.steps = steps
        self.state = nn.Parameter(torch.randn(width, inner) * width**-0.5)  # W
        self.time = nn.Parameter(torch.randn(inner))  # w
        self.shift = nn.Parameter(torch.zeros(inner))  # b
        self.out = nn.Parameter(torch.zeros(inner, width))  # V
        self.drift = nn.Parameter(torch.zeros(width))  # c
        self._known: tuple[list[Tensor], Tensor] | None = None

    def embed(self, x: Tensor, at: int, layer: int = 0) -> Tensor:
        T, D = x.shape[1:]
        x = x + self.table(at + T)[at:].to(x.dtype)
        if layer > 0:
            return x
        return x + sinusoids(table_size(at + T), D)[at : at + T].to(x.device, x.dtype)

    def table(self, length: int) -> Tensor:
        """Return p (length, D) at the first positions. Without gradients, it is cached."""
        if torch.is_grad_enabled():
            return self.solve(max(2, length))[:length]  # 2: all weights get a gradient
        weights = list(self.parameters())
        if self._known is not None:
            before, table = self._known
            same = all(map(torch.equal, before, weights))
            if same and len(table) >= length:
                return table[:length]
        with torch.inference_mode(False), torch.no_grad():
            copies = [weight.detach().clone() for weight in weights]
            self._known = copies, self.solve(table_size(length, MIN_TABLE))
        return self._known[1][:length]

    def solve(self, length: int) -> Tensor:
        """Return p (length, D) at the first positions, by the Runge-Kutta method."""
        with torch.autocast(self.drift.device.type, enabled=False):
            step = TIME_PER_POSITION / self.steps
            halves = torch.arange(2 * (length - 1) * self.steps + 1, device=self.drift.device)
            times = (halves * (step / 2))[:, None] * self.time + self.shift  # (2n + 1, inner)
            p = torch.zeros_like(self.drift)[None]  # (1, D)
            found = [p]
            for n, (now, half, after) in enumerate(
                zip(times[:-1:2], times[1::2], times[2::2], strict=True)
            ):
                k1 = self.slope(now, p)
                k2 = self.slope(half, p.add(k1, alpha=step / 2))
                k3 = self.slope(half, p.add(k2, alpha=step / 2))
                k4 = self.slope(after, p.add(k3, alpha=step))
                p = p.add(k1.add(k2 + k3, alpha=2) + k4, alpha=step / 6)
                if (n + 1) % self.steps == 0:
                    found.append(p)
            return torch.cat(found)

    def slope(self, time: Tensor, p: Tensor) -> Tensor:
        """Return h (1, D) for p (1, D). time: t w + b, (inner,)."""
        hidden = torch.tanh(torch.addmm(time, p, self.state))
        return torch.addmm(self.drift, hidden, self.out)


class Floater(PositionOptions):
    """Sinusoids plus the solution of a learned differential equation, added before every layer."""

    kind: Literal["floater"] = "floater"
    inner_width: int = Field(64, gt=0, description="hidden size of the learned derivative")
    steps: int = Field(1, gt=0, description="steps of the solver per position")

    def build(self, width: int, heads: int, causal: bool = False) -> Position:
        return FloaterPosition(width, self.inner_width, self.steps)
