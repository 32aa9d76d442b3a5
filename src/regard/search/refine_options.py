"""The options of mask-predict."""

from typing import Any, ClassVar, Literal

from pydantic import Field, model_validator

from regard.search.hypothesis import Hypothesis
from regard.search.search import Explanation, Search, SearchRequest


class Refine(Search):
    """Mask-predict (Ghazvininejad et al. 2019): predict all tokens, then rewrite the least sure.

    The output is the candidate with the highest mean log probability of its tokens and its length.
    """

    takes: ClassVar[frozenset[str]] = frozenset({"fill"})
    kind: Literal["refine"] = "refine"
    passes: int = Field(4, gt=0, description="decoder calls; 1: all tokens at once")
    lengths: int = Field(
        3, gt=0, description="most probable output lengths to try, if the decoder predicts lengths"
    )
    min_length: int = Field(0, ge=0, description="minimum output length in tokens")
    max_length: int | None = Field(
        None,
        gt=0,
        description="maximum output length in tokens; None derives it from the source length",
    )

    @model_validator(mode="after")
    def _lengths_fit(self) -> "Refine":
        if self.max_length is not None and self.min_length > self.max_length:
            raise ValueError(f"min_length {self.min_length} is above max_length {self.max_length}")
        return self

    @property
    def candidates(self) -> int:
        """Return the number of hypotheses that the search finds for each source."""
        return self.lengths

    def run(self, model: Any, request: SearchRequest) -> list[list[Hypothesis]]:
        """Return the best hypotheses per source, one per candidate length."""
        from regard.search.refine import refine

        return refine(self, model, request)

    def explain(self, model: Any, request: SearchRequest) -> Explanation:
        """Return the best hypothesis, the lengths that were considered, and all passes."""
        from regard.search.refine import refine
        from regard.search.refinement import Refinement

        trace = Refinement()
        ((best, *_),) = refine(self, model, request, trace)
        return Explanation(best, steps=trace)
