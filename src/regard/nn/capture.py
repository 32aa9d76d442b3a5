"""What was seen of a model while it ran.

B rows, k beams, T target length, S source length, H heads, D width.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Generic, TypeVar

import torch
from torch import Tensor

from regard.core.errors import UserError
from regard.core.suggest import suggest_names

Value = TypeVar("Value")


class Views(Mapping[str, Value], Generic[Value]):
    """What modules showed, by their paths: of each its last view; `calls`: of each all of them."""

    def __init__(self) -> None:
        self.calls: dict[str, list[Value]] = {}

    def __getitem__(self, name: str) -> Value:
        return self.calls[name][-1]

    def __iter__(self) -> Iterator[str]:
        return iter(self.calls)

    def __len__(self) -> int:
        return len(self.calls)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(self.calls)})"

    def add(self, name: str, value: Value) -> None:
        """Puts a view behind the others of this module."""
        self.calls.setdefault(name, []).append(value)

    def counts(self) -> dict[str, int]:
        """How many views there are of each module."""
        return {name: len(views) for name, views in self.calls.items()}

    def join(self, before: dict[str, int], joined: Callable[[list[Value]], Value]) -> None:
        """Makes the views of each module that came since then one view."""
        for name, views in self.calls.items():
            new = views[before.get(name, 0) :]
            if new:
                views[before.get(name, 0) :] = [joined(new)]


class Capture:
    """What was seen. Every view has the rows of the call that it is of.

    names: the path of each module that is looked at, by its id; None: only attention to the
    source is kept, whoever shows it.
    cross: attention to the source (k*B, H, T, S) of each layer and call, first to last.
    By the path of the module:
    attention: (k*B, H, T, S).
    hidden: (k*B, T, D), what each layer gives.
    gates: {"reset", "update", "new"} of a GRU, {"input", "forget", "cell", "output"} of an LSTM,
    each (k*B, T, D).
    inputs: (k*B, T, D), the vectors of tokens, with a gradient where gradients are on.
    """

    def __init__(self, names: dict[int, str] | None = None) -> None:
        self.names = names
        self.cross: list[Tensor] = []
        self.attention: Views[Tensor] = Views()
        self.hidden: Views[Tensor] = Views()
        self.gates: Views[dict[str, Tensor]] = Views()
        self.inputs: Views[Tensor] = Views()
        self.real: Views[Tensor | None] = Views()  # which rows of attention are no padding

    @property
    def calls(self) -> dict[str, list[Tensor]]:
        """The attention of each module in all calls, first to last."""
        return self.attention.calls

    def __getitem__(self, name: str) -> Tensor:
        """The attention (k*B, H, T, S) of a module in its last call."""
        if name not in self.attention:
            raise UserError(
                f"{name}: no attention of this name was seen{suggest_names(name, self.attention)}"
            )
        return self.attention[name]

    def alignment(self) -> Tensor:
        """(k*B, T, S): the attention to the source, the mean over the heads of the last layer."""
        if not self.cross:
            raise UserError("this model has no attention to its source, so there is no alignment")
        return self.cross[-1].mean(1)

    def entropy(self) -> dict[str, Tensor]:
        """(k*B, H): how spread the attention of each head is, in nats; the mean over real rows.

        0: each token looks at one place; log(S): at all of S places alike. Of the last call.
        """
        found = {}
        for name, weights in self.attention.items():
            each = torch.special.entr(weights).sum(-1)  # (k*B, H, T)
            real = self.real[name]
            if real is None or real.shape != (len(each), each.shape[2]):
                found[name] = each.mean(-1)
            else:
                rows = real.to(each).unsqueeze(1)  # (B, 1, T)
                found[name] = (each * rows).sum(-1) / rows.sum(-1).clamp(min=1.0)
        return found

    def gradients(self, score: Tensor) -> dict[str, Tensor]:
        """(B, T, D): the gradient of a number by the vector of each input token, by path.

        Of the last call. A sum over rows gives each row its own gradient.
        """
        inputs = {name: x for name, x in self.inputs.items() if x.requires_grad}
        if score.numel() != 1:
            raise UserError(f"saliency: one number expected, {tuple(score.shape)} found; sum them")
        if not score.requires_grad or not inputs:
            raise UserError(
                "saliency: no gradients were kept; call the model itself, not predict, and outside "
                "of torch.no_grad and torch.inference_mode"
            )
        found = torch.autograd.grad(
            score, list(inputs.values()), retain_graph=True, allow_unused=True
        )
        return {
            name: torch.zeros_like(x) if gradient is None else gradient
            for (name, x), gradient in zip(inputs.items(), found, strict=True)
        }

    def saliency(self, score: Tensor) -> dict[str, Tensor]:
        """(B, T): how much each input token moves a number: the norms of its gradient, by path."""
        return {name: gradient.norm(dim=-1) for name, gradient in self.gradients(score).items()}

    def counts(self) -> list[Any]:
        """How much was seen so far."""
        return [len(self.cross), *(views.counts() for views, _ in self._joins())]

    def join(self, before: list[Any]) -> None:
        """Makes what came since then, of one token after the other, one view of them all."""
        new = self.cross[before[0] :]
        if new:
            self.cross[before[0] :] = [torch.cat(new, 2)]
        for (views, joined), count in zip(self._joins(), before[1:], strict=True):
            views.join(count, joined)

    def _joins(self) -> list[tuple[Views[Any], Callable[[list[Any]], Any]]]:
        """All kinds of views, and how those of single tokens become one."""
        return [
            (self.attention, lambda views: torch.cat(views, 2)),
            (self.hidden, lambda views: torch.cat(views, 1)),
            (
                self.gates,
                lambda views: {key: torch.cat([g[key] for g in views], 1) for key in views[0]},
            ),
            (self.inputs, lambda views: torch.cat(views, 1)),
            (self.real, lambda views: views[-1]),
        ]
