"""The options of beam search."""

from collections.abc import Collection, Iterator, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from pydantic import Field, model_validator

from regard.core.data_stats import DataStats
from regard.core.options import AutoSetting, not_exported
from regard.search.hypothesis import Hypothesis, LengthNorm, Stopping
from regard.search.search import (
    Explanation,
    PlainBeam,
    Search,
    SearchRequest,
    SearchVariants,
)

if TYPE_CHECKING:
    from regard.search.scoring import Scoring

LENGTH_PENALTIES = (0.0, 0.25, 0.5, 0.75, 1.0, 1.25, 1.5)  # compared on the dev set


class Beam(Search):
    """Beam search; beam 1 is greedy."""

    takes: ClassVar[frozenset[str]] = frozenset({"steps"})
    kind: Literal["beam"] = "beam"
    beam: int = Field(5, gt=0, description="beam size; 1 is greedy")
    length_norm: LengthNorm = Field(
        "average",
        description="length normalization with p = length_penalty: average divides log p by L^p, "
        "gnmt by ((5 + L) / 6)^p, none by 1",
    )
    length_penalty: float = Field(
        0.75, ge=0, description="length penalty exponent; larger values favor longer outputs"
    )
    coverage_penalty: float = Field(
        0.0, ge=0, description="weight of the coverage penalty (Wu et al. 2016)"
    )
    stopping: Stopping | None = Field(
        None,
        description="when to stop; None: beam_full for subwords and for models that "
        "CTranslate2 can run, otherwise optimal. optimal: when no live beam can still win. The "
        "others may stop earlier. beam_full: when `beam` hypotheses are finished; no_gain: like "
        "beam_full, or when no live beam ranks above the finished ones at its current length; "
        "first: when the best hypothesis of a step is finished",
    )
    beam_groups: int = Field(1, gt=0, description="number of groups in diverse beam search")
    diversity_penalty: float = Field(
        0.5, ge=0, description="penalty for a token that another group selected at the same step"
    )
    min_length: int = Field(0, ge=0, description="minimum output length in tokens")
    max_length: int | None = Field(
        None,
        gt=0,
        description="maximum output length in tokens; None derives it from the source length",
    )
    no_repeat_ngram: int = Field(
        0, ge=0, description="forbid repeated n-grams of this size; 0 disables it"
    )

    @model_validator(mode="after")
    def _groups_divide(self) -> "Beam":
        if self.beam % self.beam_groups:
            raise ValueError(
                f"beam {self.beam} is not a multiple of beam_groups {self.beam_groups}"
            )
        if self.max_length is not None and self.min_length > self.max_length:
            raise ValueError(f"min_length {self.min_length} is above max_length {self.max_length}")
        return self

    def propose(self, stats: DataStats, config: Any) -> Iterator[AutoSetting]:
        """Yield the stopping rule: optimal for characters, where it takes no longer.

        Models that CTranslate2 can run keep its rule.
        """
        if any(part.is_auto for part in config.model.sides.values()):
            return
        if stats.subwords or not not_exported(config.model, "ctranslate2", "model"):
            yield from self.auto_settings(stats.reason, stopping="beam_full")
        else:
            yield from self.auto_settings(stats.reason, stopping="optimal")

    @property
    def candidates(self) -> int:
        return self.beam

    @property
    def stopping_rule(self) -> Stopping:
        """Return when to stop: `stopping`, or a default if it is unset."""
        return self.stopping or "beam_full"

    @property
    def scoring(self) -> "Scoring":
        """Return the `Scoring` that ranks hypotheses."""
        from regard.search.scoring import Scoring

        return Scoring(self.length_norm, self.length_penalty, self.coverage_penalty)

    def run(self, model: Any, request: SearchRequest, trace: Any = None) -> list[list[Hypothesis]]:
        """Return the best hypotheses per source. trace: records the search."""
        from regard.search.beam import run_beam

        return run_beam(self, model, request, trace)

    def explain(self, model: Any, request: SearchRequest) -> Explanation:
        """Return the best hypothesis and the search tree, which includes the greedy path."""
        from regard.search.explore import search_tree
        from regard.search.trace import Trace

        trace, greedy_search = Trace(), self.model_copy(update={"beam": 1, "beam_groups": 1})
        ((best,),) = self.run(model, request, trace)
        ((greedy,),) = greedy_search.run(model, request)
        scoring = None if self.coverage_penalty else self.scoring
        return Explanation(best, search_tree(trace, self.beam, greedy, best, scoring))

    def plain_beam(self) -> PlainBeam | None:
        extras = (
            self.coverage_penalty,
            self.min_length,
            self.no_repeat_ngram,
            self.beam_groups > 1,
        )
        if self.length_norm == "gnmt" or self.stopping_rule != "beam_full" or any(extras):
            return None
        return PlainBeam(self.beam, 0.0 if self.length_norm == "none" else self.length_penalty)

    def variants(self, user_settings: Collection[str]) -> SearchVariants:
        """Return other length penalties, and greedy search. With one beam there are no variants."""
        if self.beam == 1:
            return SearchVariants()
        reranked, searched = [], []
        if self.length_norm != "none" and "length_penalty" not in user_settings:
            nearest_first = sorted(LENGTH_PENALTIES, key=lambda p: abs(p - self.length_penalty))
            reranked = [
                self.model_copy(update={"length_penalty": value})
                for value in nearest_first
                if value != self.length_penalty
            ]
        if self.beam_groups == 1 and "beam" not in user_settings:
            searched = [self.model_copy(update={"beam": 1})]
        return SearchVariants(self.beam, reranked, searched)

    def rerank(self, nbest: Sequence[Sequence[Any]], other: "Beam") -> list[Any]:
        """Return the best hypothesis of each n-best list by the length penalty of `other`."""
        from regard.search.scoring import rerank

        return rerank(nbest, self.scoring, other.scoring)
