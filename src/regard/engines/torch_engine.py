"""The engine that runs our own models as they are."""

from collections.abc import Sequence

from torch import Tensor, nn

from regard.data.batch import Padded
from regard.engines.base import Engine
from regard.models.lean import lean
from regard.search import Beam, Hypothesis, Sample, Wish
from regard.search.force import Stepper
from regard.tasks.base import device_of


class TorchEngine(Engine):
    """A Generator, or an ensemble of them."""

    name = "torch"

    def __init__(self, model: nn.Module) -> None:
        self.device = device_of(model)
        self.forks = self.device.type == "cpu"
        self._stepper: Stepper = lean(model.eval())

    def search(
        self,
        options: Beam | Sample,
        source: Padded,
        limits: Tensor,
        nbest: int = 1,
        wishes: Sequence[Wish] | None = None,
    ) -> list[list[Hypothesis]]:
        return options.run(self.stepper(), source, limits, nbest, wishes)

    def stepper(self) -> Stepper:
        return self._stepper
