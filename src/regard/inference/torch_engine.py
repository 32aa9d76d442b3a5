"""The engine that runs our own models as they are."""

from collections.abc import Sequence

from torch import Tensor, nn

from regard.data.tensors.padded import Padded
from regard.inference.engine import Engine
from regard.inference.shortlist_stepper import narrow_search, output_layer
from regard.models.ensemble import Ensemble
from regard.models.max_length import SIDES, places
from regard.nn.fast import fast
from regard.search import Beam, Hypothesis, Sample, TokenConstraints
from regard.search.force import Stepper
from regard.search.shortlist import Shortlist
from regard.tasks.task import device_of


class TorchEngine(Engine):
    """A Generator, or an ensemble of them; a Generator also with a shortlist."""

    name = "torch"

    def __init__(self, model: nn.Module, shortlist: Shortlist | None = None) -> None:
        self.model = model
        self._narrow = None if shortlist is None else (output_layer(model), shortlist)
        self.device = device_of(model)
        self.forks = self.device.type == "cpu"
        self.source_places, self.target_places = (_least(model, side) for side in SIDES)
        self._stepper: Stepper = fast(model.eval())

    def search(
        self,
        options: Beam | Sample,
        source: Padded,
        limits: Tensor,
        nbest: int = 1,
        wishes: Sequence[TokenConstraints] | None = None,
    ) -> list[list[Hypothesis]]:
        if self._narrow is not None:
            head, own = self._narrow
            stepper = self.stepper()
            return narrow_search(stepper, head, own, options, source, limits, nbest, wishes)
        return options.run(self.stepper(), source, limits, nbest, wishes)

    def stepper(self) -> Stepper:
        return self._stepper


def _least(model: nn.Module, side: str) -> int | None:
    """The most symbols that this side of every member of a model can read."""
    members = model.models if isinstance(model, Ensemble) else [model]
    return min((n for n in (places(one, side) for one in members) if n is not None), default=None)
