"""The interface of a search: a request in, outputs out.

Search options import torch only when they run, because commands build their options from them.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from regard.core.options import Options

if TYPE_CHECKING:
    import torch
    from torch import Tensor

    from regard.data.tensors.padded import Padded
    from regard.search.callbacks import StepCallback
    from regard.search.explore import SearchTree
    from regard.search.hypothesis import Hypothesis, TokenConstraints


SearchResult = Any  # for one row: hypotheses, best first, or the scores of labels


@dataclass(frozen=True)
class SearchRequest:
    """The input of a search over B rows.

    source: the model's input; None to continue prompts, which all have the same length. limits:
    (B,) maximum tokens of an output, EOS included; None for labels. indices: one per prompt; the
    random numbers depend on it and on the seed. context: maximum context length of a language
    model. on_step: is called after each step, and may cancel the search.
    """

    source: Padded | None = None
    limits: Tensor | None = None
    nbest: int = 1
    prompts: Sequence[Sequence[int]] | None = None
    constraints: Sequence[TokenConstraints] | None = None
    indices: Sequence[int] = ()
    context: int | None = None
    on_step: StepCallback | None = None

    def to(self, device: torch.device) -> SearchRequest:
        """Return the same request on another device."""
        source = None if self.source is None else self.source.to(device)
        limits = None if self.limits is None else self.limits.to(device)
        return replace(self, source=source, limits=limits)

    def sequences(self) -> tuple[Padded, Tensor]:
        """Return source and limits of a request for sequences."""
        assert self.source is not None and self.limits is not None
        return self.source, self.limits


class Explanation(NamedTuple):
    """The best output of a search over one row, and its search tree, if any."""

    best: Hypothesis
    tree: SearchTree | None = None


class PlainBeam(NamedTuple):
    """A beam search that ranks by log p / L^length_penalty, without further rules."""

    beam: int
    length_penalty: float


class Search(Options):
    """A search for outputs. takes: the kinds of model output it supports (`gives` of options)."""

    takes: ClassVar[frozenset[str]]
    kind: str

    @abstractmethod
    def run(self, model: Any, request: SearchRequest) -> list[SearchResult]:
        """Return the result for each row of the request."""

    def explain(self, model: Any, request: SearchRequest) -> Explanation:
        """Return the best output for a request of one row, and its search tree, if any."""
        ((best, *_),) = self.run(model, request)
        return Explanation(best)

    def plain_beam(self) -> PlainBeam | None:
        """Return the settings for an engine's own beam search, if it returns the same outputs."""
        return None
