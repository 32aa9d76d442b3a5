"""Beam search as a setting."""

from typing import TYPE_CHECKING, Any, ClassVar, Literal

from pydantic import Field, model_validator

from regard.search.hypothesis import Hypothesis, Normalize, Stop
from regard.search.search import (
    Explanation,
    PlainBeam,
    Search,
    SearchRequest,
)

if TYPE_CHECKING:
    from regard.search.scoring import Scoring


class Beam(Search):
    """Beam search; beam 1 is greedy."""

    takes: ClassVar[frozenset[str]] = frozenset({"steps"})
    kind: Literal["beam"] = "beam"
    beam: int = Field(5, gt=0, description="hypotheses that go on; 1 is greedy")
    normalize: Normalize = Field(
        "average", description="log p / L^alpha; gnmt: / ((5 + L) / 6)^alpha; none: log p"
    )
    alpha: float = Field(0.75, ge=0, description="how much longer outputs are favored")
    coverage: float = Field(0.0, ge=0, description="how much source that nobody looked at costs")
    stop: Stop = Field(
        "full",
        description="when a sentence is done. exact: no live beam can still win; full: also when "
        "as many ended as there are beams; likely: also when no live beam ranks before those that "
        "ended; first: when the best one ended",
    )
    groups: int = Field(1, gt=0, description="groups of beams that avoid each other's tokens")
    diversity: float = Field(0.5, ge=0, description="how strongly groups avoid each other")
    min_length: int = Field(0, ge=0, description="tokens of an answer, at least")
    max_length: int | None = Field(
        None, gt=0, description="tokens of an answer, at most; None: by the source's length"
    )
    no_repeat: int = Field(0, ge=0, description="no run of so many tokens comes twice; 0: it may")

    @model_validator(mode="after")
    def _groups_divide(self) -> "Beam":
        if self.beam % self.groups:
            raise ValueError(f"beam {self.beam} is not a multiple of groups {self.groups}")
        if self.max_length is not None and self.min_length > self.max_length:
            raise ValueError(f"min_length {self.min_length} is above max_length {self.max_length}")
        return self

    @property
    def scoring(self) -> "Scoring":
        """How outputs are ranked."""
        from regard.search.scoring import Scoring

        return Scoring(self.normalize, self.alpha, self.coverage)

    def run(self, model: Any, request: SearchRequest, trace: Any = None) -> list[list[Hypothesis]]:
        """Return the best outputs for each row of the source. trace: records the search."""
        from regard.search.beam import run_beam

        return run_beam(self, model, request, trace)

    def explain(self, model: Any, request: SearchRequest) -> Explanation:
        """Return the best output with the tree of the search, and greedy search in it."""
        from regard.search.explore import search_tree
        from regard.search.trace import Trace

        trace, alone = Trace(), self.model_copy(update={"beam": 1, "groups": 1})
        ((best,),) = self.run(model, request, trace)
        ((greedy,),) = alone.run(model, request)
        scoring = None if self.coverage else self.scoring
        return Explanation(best, search_tree(trace, self.beam, greedy, best, scoring))

    def plain_beam(self) -> PlainBeam | None:
        rules = (self.coverage, self.min_length, self.no_repeat, self.groups > 1)
        if self.normalize == "gnmt" or self.stop != "full" or any(rules):
            return None
        return PlainBeam(self.beam, 0.0 if self.normalize == "none" else self.alpha)
