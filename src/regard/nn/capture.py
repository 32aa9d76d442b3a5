"""The recorded internals of a model.

Shapes: B sentences, k beams per sentence, T target length, S source length, H heads, D width.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Generic, NamedTuple, TypeVar

import torch
from torch import Tensor

from regard.core.errors import UserError
from regard.core.suggest import suggest_names


class MapKind(NamedTuple):
    """What recorded attention weights are.

    implied: whether the model never computes them, so that they show what its result amounts to.
    normalized: whether the weights of a query are positive and sum to one.
    sparse: whether a weight is zero exactly if the query cannot attend to that position.
    causal: whether queries cannot attend to later positions.
    """

    implied: bool = False
    normalized: bool = True
    sparse: bool = False
    causal: bool = False


class Grid(NamedTuple):
    """The positions of an image: first `before` others, such as a class token, then all cells."""

    rows: int
    columns: int
    before: int = 0

    @property
    def positions(self) -> int:
        """The number of positions."""
        return self.before + self.rows * self.columns


KINDS = (
    "hidden",
    "gates",
    "inputs",
    "maps",
    "filters",
    "grids",
)  # recorded values other than attention
Value = TypeVar("Value")


class Recorded(Mapping[str, Value], Generic[Value]):
    """The recorded value of the last call, by module path. `calls` has the values of all calls."""

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
        """Append the value of a call of this module."""
        self.calls.setdefault(name, []).append(value)

    def counts(self) -> dict[str, int]:
        """Return the number of values per module."""
        return {name: len(values) for name, values in self.calls.items()}

    def join(self, before: dict[str, int], merge: Callable[[list[Value]], Value]) -> None:
        """For each module, keep the first `before[name]` values and merge the rest into one."""
        for name, values in self.calls.items():
            new = values[before.get(name, 0) :]
            if new:
                values[before.get(name, 0) :] = [merge(new)]


class Capture:
    """The recorded internals of a model.

    names: the path of each recorded module by id. None: record only attention to the source, of
    any module.
    cross: attention to the source (k*B, H, T, S) of each layer and call, first to last.
    The other attributes are mappings from module path to:
    attention: (k*B, H, T, S), the attention weights. Rows of queries that are padding may be zeros.
    map_kinds: whether the weights are implied, and whether they are normalized.
    hidden: (k*B, T, D), the output of each layer.
    gates: {"reset", "update", "new"} of a GRU, {"input", "forget", "cell", "output"} of an LSTM,
    each (k*B, T, D).
    inputs: (k*B, T, D), the token embeddings, or images (k*B, H, W, C), with a gradient if
    gradients are enabled.
    maps: (k*B, H, W, C), the feature maps of each layer that keeps the shape of an image.
    filters: (F, H, W, C), the filters of each layer that reads windows of an image.
    grids: the `Grid` of each module that turns an image into positions.
    """

    def __init__(self, names: dict[int, str] | None = None) -> None:
        self.names = names
        self.cross: list[Tensor] = []
        self.attention: Recorded[Tensor] = Recorded()
        self.map_kinds: dict[str, MapKind] = {}
        self.hidden: Recorded[Tensor] = Recorded()
        self.gates: Recorded[dict[str, Tensor]] = Recorded()
        self.inputs: Recorded[Tensor] = Recorded()
        self.maps: Recorded[Tensor] = Recorded()
        self.filters: Recorded[Tensor] = Recorded()
        self.grids: Recorded[Grid] = Recorded()
        self.real: Recorded[Tensor | None] = Recorded()  # (B, T): which queries are not padding

    @property
    def calls(self) -> dict[str, list[Tensor]]:
        """Return the attention of each module in all calls, first to last."""
        return self.attention.calls

    def __getitem__(self, name: str) -> Tensor:
        """Return the attention (k*B, H, T, S) of a module in its last call."""
        if name not in self.attention:
            known = [kind for kind in KINDS if name in getattr(self, kind)]
            raise UserError(
                f"{name}: no recorded attention with this name"
                f"{suggest_names(str(name), self.attention)}",
                help=" or ".join(f"use captured.{kind}[{name!r}]" for kind in known),
            )
        return self.attention[name]

    def __repr__(self) -> str:
        """Return the number of recorded modules per kind of values."""
        counts = {kind: len(getattr(self, kind)) for kind in ("attention", *KINDS)}
        shown = [f"{kind}: {count}" for kind, count in counts.items() if count]
        return f"Capture({'modules with ' if shown else 'empty'}{', '.join(shown)})"

    def alignment(self) -> Tensor:
        """Return the cross-attention (k*B, T, S) of the last layer, averaged over heads."""
        if not self.cross:
            raise UserError("this model has no attention to its source, and thus no alignment")
        return self.cross[-1].mean(1)

    def entropy(self) -> dict[str, Tensor]:
        """Return the attention entropy (k*B, H) of each head in nats, averaged over tokens.

        0: each token attends to one position. log(S): each token attends to all S positions
        equally. Only the last call counts, without padding. Weights that are not normalized are
        made positive and divided by their sum first.
        """
        found = {}
        for name, weights in self.attention.items():
            if not self.map_kinds.get(name, MapKind()).normalized:
                weights = weights.abs() / weights.abs().sum(-1, keepdim=True).clamp(min=1e-30)
            entropies = torch.special.entr(weights).sum(-1)  # (k*B, H, T)
            real = self.real[name]
            if real is None or real.shape != (len(entropies), entropies.shape[2]):
                found[name] = entropies.mean(-1)
            else:
                rows = real.to(entropies).unsqueeze(1)  # (B, 1, T)
                found[name] = (entropies * rows).sum(-1) / rows.sum(-1).clamp(min=1.0)
        return found

    def gradients(self, score: Tensor) -> dict[str, Tensor]:
        """Return the gradient (B, T, D) of a score with respect to the token embeddings.

        Only the last call counts. If the score is a sum over rows, each row gets its own gradient.
        """
        return self.gradients_of(score, self.inputs)

    def gradients_of(self, score: Tensor, values: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """Return the gradient of a score with respect to recorded values, such as `maps`."""
        inputs = {name: x for name, x in values.items() if x.requires_grad}
        if score.numel() != 1:
            raise UserError(
                f"saliency: expected a scalar, found {tuple(score.shape)}",
                help="sum the output first",
            )
        if not score.requires_grad or not inputs:
            raise UserError(
                "saliency: no gradients were recorded",
                help="call the model itself, not predict, and outside of torch.no_grad and "
                "torch.inference_mode",
            )
        found = torch.autograd.grad(
            score, list(inputs.values()), retain_graph=True, allow_unused=True
        )
        return {
            name: torch.zeros_like(x) if gradient is None else gradient
            for (name, x), gradient in zip(inputs.items(), found, strict=True)
        }

    def saliency(self, score: Tensor) -> dict[str, Tensor]:
        """Return the norm (B, T) of the gradient of a score for each token, by module path."""
        return {name: gradient.norm(dim=-1) for name, gradient in self.gradients(score).items()}

    def counts(self) -> list[Any]:
        """Return the number of recorded values so far, for `join`."""
        return [len(self.cross), *(values.counts() for values, _ in self._merges())]

    def join(self, before: list[Any]) -> None:
        """Merge the values of single tokens after the counts `before` into one of all tokens."""
        new = self.cross[before[0] :]
        if new:
            self.cross[before[0] :] = [torch.cat(new, 2)]
        for (values, merge), count in zip(self._merges(), before[1:], strict=True):
            values.join(count, merge)

    def _merges(self) -> list[tuple[Recorded[Any], Callable[[list[Any]], Any]]]:
        """Return each kind of values with a function that merges the values of single tokens."""
        return [
            (self.attention, lambda values: torch.cat(values, 2)),
            (self.hidden, lambda values: torch.cat(values, 1)),
            (
                self.gates,
                lambda values: {key: torch.cat([g[key] for g in values], 1) for key in values[0]},
            ),
            (self.inputs, lambda values: torch.cat(values, 1)),
            (self.maps, lambda values: values[-1]),
            (self.filters, lambda values: values[-1]),
            (self.grids, lambda values: values[-1]),
            (self.real, lambda values: values[-1]),
        ]
