"""The torch engine: runs the PyTorch module of a model.

A fast path is an optimized version of a model for inference, with the same interface and results.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from torch import nn

from regard.inference.engine import BatchWork, Engine, Result
from regard.inference.shortlist_stepper import output_layer, shortlist_search
from regard.models.max_length import SIDES, limiting_section, max_length
from regard.nn.fast import fast
from regard.search.search import Search, SearchRequest, SearchResult
from regard.search.shortlist import Shortlist
from regard.tasks.task_loss import device_of


class TorchEngine(Engine):
    """Engine that runs a torch module.

    uses_threads: whether batches are divided among threads and processes. shortlist: restricts the
    output layer of an EncoderDecoder to likely target tokens.
    """

    name = "torch"

    def __init__(
        self, model: nn.Module, uses_threads: bool = True, shortlist: Shortlist | None = None
    ) -> None:
        self.module: nn.Module = model
        self._shortlist = None if shortlist is None else (output_layer(model), shortlist)
        self.plain = shortlist is None
        self.device = device_of(model)
        self.uses_threads = uses_threads
        self.fork_safe = uses_threads and self.device.type == "cpu"
        self.max_source_length, self.max_target_length = (max_length(model, side) for side in SIDES)
        self.source_section = limiting_section(model, "encoder")
        self._fast: tuple[Any, Any] | None = None

    def run(self, search: Search, request: SearchRequest) -> list[SearchResult]:
        stepper = self.stepper()
        if self.max_source_length or self.max_target_length or self.device.type != "cpu":
            request = self.fit_request(request)
        if self._shortlist is not None:
            return shortlist_search(stepper, *self._shortlist, search, request)
        return search.run(stepper, request)

    def why_not_inspectable(self, folder: Path) -> str | None:
        if not self.plain:
            return f"{folder}: cannot be inspected with a shortlist; load it without one"
        return getattr(self.module, "why_not_inspectable", None)

    def map_batches(self, work: BatchWork[Result], parts: list[list[int]]) -> Iterable[Result]:
        self.stepper()  # build the fast path once, before the workers fork
        return super().map_batches(work, parts)

    def stepper(self) -> Any:
        """Return the fast path of the model. Rebuild it only if the weights changed."""
        weights = _fingerprint(self.module, [])
        if self.module.training:
            self.module.eval()
        if self._fast is None or self._fast[0] != weights:
            self._fast, self.device = (weights, fast(self.module)), device_of(self.module)
        return self._fast[1]

    def __getstate__(self) -> dict[str, Any]:
        """Return the attributes to pickle, without the fast path, which a copy rebuilds."""
        return vars(self) | {"_fast": None}


def _fingerprint(module: nn.Module, found: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Append version and address of each parameter, which change with its values, type and device.

    It runs before each batch, and takes a quarter of the time of `module.parameters()`.
    """
    for weight in module._parameters.values():
        if weight is not None:
            version = 0 if weight.is_inference() else weight._version  # those have none
            found.append((version, weight.data_ptr()))
    for part in module._modules.values():
        if part is not None:
            _fingerprint(part, found)
    return found
