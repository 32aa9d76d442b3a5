"""The engine that runs our own models as they are."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from torch import nn

from regard.inference.engine import BatchWork, Engine, Result
from regard.inference.shortlist_stepper import narrow_search, output_layer
from regard.models.max_length import SIDES, places
from regard.nn.fast import fast
from regard.search.search import Search, SearchRequest, SearchResult
from regard.search.shortlist import Shortlist
from regard.tasks.task_loss import device_of


class TorchEngine(Engine):
    """A model of torch. spreads: whether threads and processes share its batches; shortlist: of
    the target tokens that a EncoderDecoder considers."""

    name = "torch"

    def __init__(
        self, model: nn.Module, spreads: bool = True, shortlist: Shortlist | None = None
    ) -> None:
        self.module: nn.Module = model
        self._narrow = None if shortlist is None else (output_layer(model), shortlist)
        self.plain = shortlist is None
        self.device = device_of(model)
        self.spreads = spreads
        self.forks = spreads and self.device.type == "cpu"
        self.source_places, self.target_places = (places(model, side) for side in SIDES)
        self._fast: tuple[Any, Any] | None = None

    def run(self, search: Search, request: SearchRequest) -> list[SearchResult]:
        stepper = self.stepper()
        if self.source_places or self.target_places or self.device.type != "cpu":
            request = self.own(request)
        if self._narrow is not None:
            return narrow_search(stepper, *self._narrow, search, request)
        return search.run(stepper, request)

    def hidden(self, folder: Path) -> str | None:
        if not self.plain:
            return f"{folder}: with a shortlist nothing can be seen; load it without one"
        return getattr(self.module, "hidden", None)

    def spread(self, work: BatchWork[Result], parts: list[list[int]]) -> Iterable[Result]:
        self.stepper()  # the fast path is made here, once, not again in each process that helps
        return super().spread(work, parts)

    def stepper(self) -> Any:
        """The fast path of the model, made again only if the model or its weights have changed."""
        weights = [(w._version, w.data_ptr(), w.dtype, w.device) for w in self.module.parameters()]
        if self.module.training:
            self.module.eval()
        if self._fast is None or self._fast[0] != weights:
            self._fast, self.device = (weights, fast(self.module)), device_of(self.module)
        return self._fast[1]

    def __getstate__(self) -> dict[str, Any]:
        """Return what a copy takes over: it makes a fast path of its own."""
        return vars(self) | {"_fast": None}
