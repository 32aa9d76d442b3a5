"""Search: from a step function and a State to outputs."""

from typing import Literal

import torch
from pydantic import Field
from torch import Tensor

from regard.data.batch import Padded
from regard.models.generator import Generator
from regard.options import Options
from regard.search.beam import Hypothesis, beam_search
from regard.search.decide import Decide
from regard.search.sample import Sample

__all__ = ["Beam", "Decide", "Hypothesis", "Sample"]


class Beam(Options):
    """Beam search; beam 1 is greedy."""

    kind: Literal["beam"] = "beam"
    beam: int = Field(5, gt=0, description="hypotheses kept; 1 is greedy")
    alpha: float = Field(0.75, ge=0, description="score = log p / length^alpha")
    max_length: int | None = Field(
        None, gt=0, description="symbols of an answer, at most; None: by the source's length"
    )

    def run(
        self, model: Generator, source: Padded, limits: Tensor, nbest: int = 1
    ) -> list[list[Hypothesis]]:
        """The best outputs of each row of source, at most `limits` (B,) symbols long."""
        model.eval()
        with torch.inference_mode():
            state = model.start(source)
            return beam_search(model.step, state, limits, max(self.beam, nbest), self.alpha, nbest)
