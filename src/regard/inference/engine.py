"""The contract of an engine: a search and a request in, outputs out."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import torch
from torch import nn

from regard.core.errors import UserError
from regard.core.threads import single_threaded_torch, thread_map
from regard.core.workers import fork_map, num_workers
from regard.nn.ablation import is_ablating
from regard.nn.capture_hooks import is_recording
from regard.nn.positions import too_long
from regard.search.search import Search, SearchRequest, SearchResult
from regard.tasks.batches import MIN_ROWS_PER_THREAD

WORTH = 32  # sources for which copies of this process are worth their start

Result = TypeVar("Result")
BatchWork = Callable[["Engine", list[int]], Result]  # what an engine does with a batch of sources


class Engine(ABC):
    """Runs a trained model. device: where it computes; forks: whether copies of this process can
    run it, each for itself; spreads: whether threads share its batches; source_places,
    target_places: the most tokens that each side can read, EOS included, or None; module: the
    model as torch trains it, if it can be seen from inside; plain: whether it is run as it is."""

    name: str
    device = torch.device("cpu")
    forks = False
    spreads = True
    plain = False
    source_places: int | None = None
    target_places: int | None = None
    module: nn.Module | None = None

    def check(self, length: int) -> None:
        """Raise UserError if sources of this length, EOS included, are too long."""
        if self.source_places is not None and length > self.source_places:
            raise too_long(length, self.source_places, "model.encoder.positions")

    @abstractmethod
    def run(self, search: Search, request: SearchRequest) -> list[SearchResult]:
        """Return what the search finds for each row of a request."""

    def stepper(self) -> Any:
        """Return the model step by step, for scores of given outputs, alignments, alternatives."""
        raise UserError(f"engine {self.name}: only searches; choose engine torch for this")

    def inside(self) -> nn.Module:
        """Return the model as torch trains it; raise UserError if another engine runs it."""
        if self.module is None:
            raise UserError(
                f"engine {self.name}: nothing can be seen inside; load the model with engine torch"
            )
        return self.module

    def hidden(self, folder: Path) -> str | None:
        """Return why the model cannot be inspected; None: it can. folder: of the model."""
        return (
            f"{folder}: the engine {self.name} shows nothing of its inside; inspect the folder of "
            "the run that it was exported from, with engine torch"
        )

    def for_alignment(self, request: SearchRequest) -> Any:
        """Return the model step by step, as it runs this request."""
        return self.stepper()

    def own(self, request: SearchRequest) -> SearchRequest:
        """Return a request where this engine computes, with no more tokens than it has room for."""
        if request.source is not None:
            self.check(request.source.data.shape[1])
        if self.target_places is not None and request.limits is not None:
            # an output that ends there is marked as truncated
            request = replace(request, limits=request.limits.clamp(max=self.target_places))
        return request.to(self.device)

    def taken(self) -> list[str | None] | None:
        """What must be known to take the same engine again: name, quantize; None: only itself."""
        return None

    def take(self, record: list[str | None] | None) -> None:
        """Takes the engine that `taken` told of."""
        assert record is None  # there is nothing to choose

    def workers(self, count: int) -> int:
        """Return how many processes this many sources are worth."""
        seen = is_recording() or is_ablating()
        return num_workers() if self.forks and count >= WORTH and not seen else 1

    def spread(self, work: BatchWork[Result], parts: list[list[int]]) -> Iterable[Result]:
        """Return the results of batches, in their order, by all the processors there are.

        Recording and ablation hold in this thread only, so then all is done here.
        """
        own = partial(work, self)
        if not self.spreads or is_recording() or is_ablating():
            return map(own, parts)
        count = sum(map(len, parts))
        workers = self.workers(count)
        if workers > 1 and len(parts) > 1:
            return fork_map(own, parts, workers)
        if self.device.type != "cpu":
            return map(own, parts)
        if count < MIN_ROWS_PER_THREAD * len(
            parts
        ):  # so little that threads would only wait for each other
            with single_threaded_torch():
                return [own(part) for part in parts]
        return thread_map(own, parts, torch.get_num_threads() if len(parts) > 1 else 1)
