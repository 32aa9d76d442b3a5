"""The contract of a search: a request in, outputs out.

The options of searches do not import torch until they run: commands make their own from them.
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


SearchResult = (
    Any  # what a search finds for one row: hypotheses, best first, or the scores of labels
)


@dataclass(frozen=True)
class SearchRequest:
    """What a search looks for, B rows together.

    source: what the model reads; None if it continues prompts, which all have one length. limits:
    (B,) maximum tokens of an output, EOS included; None if outputs have no length of their own.
    indices: what randomness depends on besides the seed, for each prompt. context: maximum tokens
    that a model of prompts looks back on. on_step: is told of each step, and may cancel the search.
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
        """Return source and limits of a request for outputs of their own length."""
        assert self.source is not None and self.limits is not None
        return self.source, self.limits


class Explanation(NamedTuple):
    """The best output of a search over one row, and how it was found, if the search has a tree."""

    best: Hypothesis
    tree: SearchTree | None = None


class PlainBeam(NamedTuple):
    """A beam search that ranks by log p / L^length_penalty, without further rules."""

    beam: int
    length_penalty: float


class Search(Options):
    """A way to find outputs. takes: what a model must give (`gives` of its options)."""

    takes: ClassVar[frozenset[str]]
    kind: str

    @abstractmethod
    def run(self, model: Any, request: SearchRequest) -> list[SearchResult]:
        """Return what is found for each row of the request."""

    def explain(self, model: Any, request: SearchRequest) -> Explanation:
        """Return the best output for a request of one row, and how it was found."""
        ((best, *_),) = self.run(model, request)
        return Explanation(best)

    def plain_beam(self) -> PlainBeam | None:
        """Return the settings for engines that have a beam search of their own, if it finds the
        same."""
        return None
