"""The options of sampling."""

from typing import TYPE_CHECKING, Any, ClassVar, Literal

from pydantic import Field, model_validator

from regard.search.hypothesis import Hypothesis
from regard.search.search import Search, SearchRequest

if TYPE_CHECKING:
    from regard.search.filters import Filters


DEFAULT_MAX_NEW_TOKENS = 200


class Sample(Search):
    """Sampling from the full distribution or its most probable part."""

    takes: ClassVar[frozenset[str]] = frozenset(
        {"steps", "masked"}
    )  # "masked": a masked language model has these options too, but generates nothing
    kind: Literal["sample"] = "sample"
    temperature: float = Field(
        1.0, ge=0, allow_inf_nan=False, description="softmax temperature; 0 is greedy"
    )
    top_k: int | None = Field(
        None, ge=0, description="sample from the k most probable tokens; 0 or None: all"
    )
    top_p: float | None = Field(
        None,
        ge=0,
        le=1,
        description="nucleus sampling: smallest token set with total probability >= top_p",
    )
    min_p: float | None = Field(
        None,
        ge=0,
        le=1,
        description="min-p: drop tokens below this fraction of the highest probability",
    )
    max_length: int | None = Field(
        None,
        gt=0,
        description="maximum output length in tokens; None: 200, or derived from the source length",
    )
    min_length: int = Field(
        0, ge=0, description="minimum output length in tokens (only for models with a source)"
    )
    no_repeat_ngram: int = Field(
        0,
        ge=0,
        description="forbid repeated n-grams of this size; 0 disables it (models with a source "
        "only)",
    )
    seed: int = Field(1, ge=0, description="random seed for sampling")

    @model_validator(mode="after")
    def _lengths_fit(self) -> "Sample":
        if self.max_length is not None and self.min_length > self.max_length:
            raise ValueError(f"min_length {self.min_length} is above max_length {self.max_length}")
        return self

    @property
    def filters(self) -> "Filters":
        """Return the filters of the distribution that tokens are sampled from."""
        from regard.search.filters import Filters

        return Filters(self.temperature, self.top_k, self.top_p, self.min_p)

    @property
    def max_new_tokens(self) -> int:
        """Return the maximum number of tokens that continue a prompt."""
        return self.max_length or DEFAULT_MAX_NEW_TOKENS

    def run(self, model: Any, request: SearchRequest) -> list[list[Hypothesis]]:
        """Return the sampled hypotheses per source or prompt."""
        from regard.search.sample import run_continuation, run_sample

        return (run_continuation if request.source is None else run_sample)(self, model, request)
