"""The interface of searches, which find the outputs of a model for a request.

Search options import torch only when they run, because the command line is built from them.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Protocol

from regard.core.options import Options

if TYPE_CHECKING:
    import torch
    from torch import Tensor

    from regard.data.tensors.padded import Padded
    from regard.data.tokenizers.tokenizer import Tokenizer
    from regard.search.callbacks import StepCallback
    from regard.search.explore import SearchTree
    from regard.search.hypothesis import Hypothesis, TokenConstraints


SearchResult = Any  # result of one row: hypotheses, best first, or label scores


@dataclass(frozen=True)
class SearchRequest:
    """The input of a search over B rows (sources or prompts).

    source: encoded sources; None to continue prompts.
    limits: maximum tokens per output (B,), EOS included; None for labels.
    prompts: token ids of prompts of equal length.
    indices: one per prompt. The random numbers for a prompt depend on its index and the seed.
    Those for a source depend on its token ids, or, if it has none, on its index.
    context: maximum context length of a language model.
    on_step: callback after each step, which may cancel the search.
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
        """Return source and limits, which must be set."""
        assert self.source is not None and self.limits is not None
        return self.source, self.limits


class Steps(Protocol):
    """The steps of a search that decodes in parallel, such as the passes of mask-predict."""

    def as_dict(self, tokenizer: Tokenizer, best: Sequence[int]) -> dict[str, Any]:
        """Return the steps for JSON. best: the tokens of the best hypothesis."""


class Explanation(NamedTuple):
    """The best hypothesis for one row, and its search tree or steps, if any."""

    best: Hypothesis
    tree: SearchTree | None = None
    steps: Steps | None = None


class PlainBeam(NamedTuple):
    """Settings of a beam search that ranks by log p / L^length_penalty, without other options."""

    beam: int
    length_penalty: float


class SearchVariants(NamedTuple):
    """Variants of a search to compare on the dev set after training.

    nbest: number of hypotheses to find. reranked: searches that rank the same n-best lists in
    another order (`Search.rerank`). searched: searches that have to run.
    """

    nbest: int = 1
    reranked: Sequence[Search] = ()
    searched: Sequence[Search] = ()


class Search(Options):
    """Base class of searches.

    takes: supported kinds of output (`gives` of model options). min_length, max_length: limits of
    the output in tokens, if the search has such settings.
    """

    takes: ClassVar[frozenset[str]]
    kind: str

    @property
    def candidates(self) -> int:
        """Return how many hypotheses the search compares for each source."""
        return 1

    @abstractmethod
    def run(self, model: Any, request: SearchRequest) -> list[SearchResult]:
        """Return the result for each row of the request."""

    def explain(self, model: Any, request: SearchRequest) -> Explanation:
        """Return the best hypothesis for a request of one row, and its search tree, if any."""
        ((best, *_),) = self.run(model, request)
        return Explanation(best)

    def plain_beam(self) -> PlainBeam | None:
        """Return equivalent settings for the beam search of an inference engine, or None."""
        return None

    def variants(self, user_settings: Collection[str]) -> SearchVariants:
        """Return the variants to compare on the dev set after training.

        user_settings: names of the settings of this search that the user set; they stay.
        """
        return SearchVariants()

    def rerank(self, nbest: Sequence[Sequence[Any]], other: Any) -> list[Any]:
        """Return the best hypothesis of each n-best list of this search by the ranks of `other`."""
        return [hypotheses[0] for hypotheses in nbest]
