"""Beam search as a setting."""

from typing import Any, ClassVar, Literal

import torch
from pydantic import Field, model_validator

from regard.search.beam import Plan, Stop, beam_search
from regard.search.constrained import Must, Unmet
from regard.search.explore import search_tree
from regard.search.greedy import greedy_search
from regard.search.hypothesis import Hypothesis
from regard.search.rules import Rules, with_room
from regard.search.scoring import Normalise, Scoring
from regard.search.search import Explanation, PlainBeam, Search, SearchRequest
from regard.search.selection import Best, Choose, Diverse
from regard.search.trace import Trace


class Beam(Search):
    """Beam search; beam 1 is greedy."""

    takes: ClassVar[frozenset[str]] = frozenset({"steps"})
    kind: Literal["beam"] = "beam"
    beam: int = Field(5, gt=0, description="hypotheses that go on; 1 is greedy")
    normalise: Normalise = Field(
        "average", description="log p / L^alpha; gnmt: / ((5 + L) / 6)^alpha; none: log p"
    )
    alpha: float = Field(0.75, ge=0, description="how much longer outputs are favoured")
    coverage: float = Field(0.0, ge=0, description="how much source that nobody looked at costs")
    stop: Stop = Field(
        "full",
        description="when a sentence is done. exact: no live beam can still win; full: also when "
        "as many ended as there are beams; likely: also when no live beam ranks before those that "
        "ended; first: when the best one ended",
    )
    groups: int = Field(1, gt=0, description="groups of beams that avoid each other's symbols")
    diversity: float = Field(0.5, ge=0, description="how strongly groups avoid each other")
    min_length: int = Field(0, ge=0, description="symbols of an answer, at least")
    max_length: int | None = Field(
        None, gt=0, description="symbols of an answer, at most; None: by the source's length"
    )
    no_repeat: int = Field(0, ge=0, description="no run of so many symbols comes twice; 0: it may")

    @model_validator(mode="after")
    def _groups_divide(self) -> "Beam":
        if self.beam % self.groups:
            raise ValueError(f"beam {self.beam} is not a multiple of groups {self.groups}")
        if self.max_length is not None and self.min_length > self.max_length:
            raise ValueError(f"min_length {self.min_length} is above max_length {self.max_length}")
        return self

    @property
    def scoring(self) -> Scoring:
        """How outputs are ranked."""
        return Scoring(self.normalise, self.alpha, self.coverage)

    @torch.inference_mode()
    def run(
        self, model: Any, request: SearchRequest, trace: Trace | None = None
    ) -> list[list[Hypothesis]]:
        """Return the best outputs for each row of the source. trace: records the search."""
        source, limits, nbest = request.source, request.limits, request.nbest
        assert source is not None and limits is not None
        constraints = request.constraints
        beam = self.groups * -(-max(self.beam, nbest) // self.groups)
        choose: Choose = Best(2 * beam)
        if self.groups > 1:
            choose = Diverse(beam, self.groups, self.diversity)
        if self.min_length or constraints is not None:
            limits = with_room(limits, self.min_length, constraints)
        must = constraints is not None and any(one.must for one in constraints)
        if constraints is not None and must:
            choose = Must(choose, constraints, limits.tolist())
        rules, scoring = Rules(self.min_length, self.no_repeat, constraints), self.scoring
        if beam == 1 and trace is None and not self.coverage and not must:
            start = model.start(source)
            return greedy_search(model.step, start, limits, scoring, rules, request.on_step)
        cover = source.mask if self.coverage else None
        plan = Plan(beam, nbest, scoring, self.stop, rules, choose, cover, trace, request.on_step)
        found = beam_search(model.step, model.start(source), limits, plan)
        for row, hypotheses in enumerate(found):
            if not hypotheses:
                raise Unmet(row)
        return found

    def explain(self, model: Any, request: SearchRequest) -> Explanation:
        """Return the best output with the tree of the search, and greedy search in it."""
        trace, alone = Trace(), self.model_copy(update={"beam": 1, "groups": 1})
        ((best,),) = self.run(model, request, trace)
        ((greedy,),) = alone.run(model, request)
        scoring = None if self.coverage else self.scoring
        return Explanation(best, search_tree(trace, self.beam, greedy, best, scoring))

    def plain_beam(self) -> PlainBeam | None:
        rules = (self.coverage, self.min_length, self.no_repeat, self.groups > 1)
        if self.normalise == "gnmt" or self.stop != "full" or any(rules):
            return None
        return PlainBeam(self.beam, 0.0 if self.normalise == "none" else self.alpha)
