"""The contract of an engine: sources in, outputs out."""

from abc import ABC, abstractmethod
from collections.abc import Sequence

import torch
from torch import Tensor

from regard.data.batch import Padded
from regard.errors import UserError
from regard.nn.positions import too_long
from regard.search import Beam, Hypothesis, Sample, Wish
from regard.search.force import Stepper


class Engine(ABC):
    """Runs a trained transducer. device: where its inputs lie; forks: whether copies of this
    process can run it, each for itself; source_places, target_places: the most symbols that each
    side can read, EOS included, or None."""

    name: str
    device = torch.device("cpu")
    forks = False
    source_places: int | None = None
    target_places: int | None = None

    def check(self, length: int) -> None:
        """Refuses sources of this length, EOS included, if they are too long."""
        if self.source_places is not None and length > self.source_places:
            raise too_long(length, self.source_places, "model.encoder.positions")

    @abstractmethod
    def search(
        self,
        options: Beam | Sample,
        source: Padded,
        limits: Tensor,
        nbest: int = 1,
        wishes: Sequence[Wish] | None = None,
    ) -> list[list[Hypothesis]]:
        """The outputs of each row of source, best first, at most `limits` (B,) symbols long."""

    def stepper(self) -> Stepper:
        """The model step by step, for scores of given outputs, alignments and alternatives."""
        raise UserError(f"engine {self.name}: only searches; choose engine torch for this")
