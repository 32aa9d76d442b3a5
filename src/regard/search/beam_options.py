"""Beam search as a setting."""

from collections.abc import Sequence
from typing import Literal

import torch
from pydantic import Field, model_validator
from torch import Tensor

from regard.core.options import Options
from regard.data.tensors.padded import Padded
from regard.search.beam import Plan, Stop, beam_search
from regard.search.constrained import Must, Unmet
from regard.search.force import Stepper
from regard.search.greedy import greedy_search
from regard.search.hypothesis import Hypothesis, TokenConstraints
from regard.search.rules import Rules, with_room
from regard.search.scoring import Normalise, Scoring
from regard.search.selection import Best, Choose, Diverse
from regard.search.trace import Trace


class Beam(Options):
    """Beam search; beam 1 is greedy."""

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
        self,
        stepper: Stepper,
        source: Padded,
        limits: Tensor,
        nbest: int = 1,
        wishes: Sequence[TokenConstraints] | None = None,
        trace: Trace | None = None,
    ) -> list[list[Hypothesis]]:
        """The best outputs of each row of source, at most `limits` (B,) symbols long."""
        beam = self.groups * -(-max(self.beam, nbest) // self.groups)
        choose: Choose = Best(beam)
        if self.groups > 1:
            choose = Diverse(beam, self.groups, self.diversity)
        limits = with_room(limits, self.min_length, wishes)
        if wishes is not None and any(wish.must for wish in wishes):
            choose = Must(choose, wishes, limits.tolist())
        rules = Rules(self.min_length, self.no_repeat, wishes)
        if beam == 1 and trace is None and not self.coverage and not isinstance(choose, Must):
            start = stepper.start(source)
            return greedy_search(stepper.step, start, limits, self.scoring, rules)
        plan = Plan(
            beam,
            nbest,
            self.scoring,
            self.stop,
            rules,
            choose,
            source.mask if self.coverage else None,
            trace,
        )
        found = beam_search(stepper.step, stepper.start(source), limits, plan)
        for row, hypotheses in enumerate(found):
            if not hypotheses:
                raise Unmet(row)
        return found
