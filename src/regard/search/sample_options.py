"""Sampling as a setting."""

from typing import TYPE_CHECKING, Any, ClassVar, Literal

from pydantic import Field, model_validator

from regard.search.hypothesis import Hypothesis
from regard.search.search import Search, SearchRequest

if TYPE_CHECKING:
    from regard.search.filters import Filters


class Sample(Search):
    """Sampling, from the whole distribution or its most probable part."""

    takes: ClassVar[frozenset[str]] = frozenset({"steps", "masked"})  # of masked: nothing
    kind: Literal["sample"] = "sample"
    temperature: float = Field(
        1.0, ge=0, allow_inf_nan=False, description="p^(1/temperature); 0 is greedy"
    )
    top_k: int | None = Field(None, ge=0, description="the best k tokens only; 0 or None: all")
    top_p: float | None = Field(
        None, ge=0, le=1, description="the best tokens that reach this probability; None: all"
    )
    min_p: float | None = Field(
        None, ge=0, le=1, description="tokens with this share of the best one's p; None: all"
    )
    length: int | None = Field(
        None,
        gt=0,
        description="tokens of an answer, at most; None: 200, or by the source's length",
    )
    min_length: int = Field(0, ge=0, description="with a source: tokens of an answer, at least")
    no_repeat: int = Field(
        0, ge=0, description="with a source: no run of so many tokens comes twice; 0: it may"
    )
    seed: int = Field(1, ge=0, description="the same seed draws the same answers")

    @model_validator(mode="after")
    def _lengths_fit(self) -> "Sample":
        if self.length is not None and self.min_length > self.length:
            raise ValueError(f"min_length {self.min_length} is above length {self.length}")
        return self

    @property
    def filters(self) -> "Filters":
        """Which tokens may be drawn."""
        from regard.search.filters import Filters

        return Filters(self.temperature, self.top_k, self.top_p, self.min_p)

    @property
    def longest(self) -> int:
        """The most tokens of an answer without a source."""
        return self.length or 200

    @property
    def max_length(self) -> int | None:
        """The most tokens of an answer to a source, where it is said."""
        return self.length

    def run(self, model: Any, request: SearchRequest) -> list[list[Hypothesis]]:
        """Return outputs for each row as they are drawn: from a source, or after a prompt."""
        from regard.search.sample import run_continuation, run_sample

        return (run_continuation if request.source is None else run_sample)(self, model, request)
