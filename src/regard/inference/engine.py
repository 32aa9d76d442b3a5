"""The contract of an engine: sources in, outputs out."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

import torch
from torch import Tensor

from regard.core.errors import UserError
from regard.core.threads import in_threads, one_thread_each
from regard.core.workers import in_workers, workers_there
from regard.data.tensors.padded import Padded
from regard.nn.ablation import is_ablating
from regard.nn.capture_hooks import is_recording
from regard.nn.positions import too_long
from regard.search import Beam, Hypothesis, Sample, TokenConstraints
from regard.search.force import Stepper

WORTH = 32  # sources for which copies of this process are worth their start
FEW = 32  # sources in a batch below which threads only wait for each other

Result = TypeVar("Result")
Find = Callable[["Engine", list[int]], list[list[Hypothesis]]]


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
        wishes: Sequence[TokenConstraints] | None = None,
    ) -> list[list[Hypothesis]]:
        """The outputs of each row of source, best first, at most `limits` (B,) symbols long."""

    def stepper(self) -> Stepper:
        """The model step by step, for scores of given outputs, alignments and alternatives."""
        raise UserError(f"engine {self.name}: only searches; choose engine torch for this")

    def suited(self, parts: list[list[int]], find: Find) -> "Engine":
        """The engine for sources in these batches: this one, unless it stands for several.

        find: the outputs of a batch by an engine.
        """
        return self

    def fitting(self, source: int, target: int) -> "Engine":
        """The engine for sources and answers of so many symbols: this one, or who has places."""
        return self

    def taken(self) -> list[str | None] | None:
        """What must be known to take the same engine again: name, quantize; None: only itself."""
        return None

    def take(self, record: list[str | None] | None) -> None:
        """Takes the engine that `taken` told of."""
        assert record is None  # there is nothing to choose

    def share(self, count: int) -> int:
        """How many of so many sources one processor answers, where several share them."""
        return max(1, -(-count // self._workers(count)))

    def _workers(self, count: int) -> int:
        """How many processes so many sources are worth."""
        seen = is_recording() or is_ablating()
        return workers_there() if self.forks and count >= WORTH and not seen else 1

    def spread(
        self, work: Callable[[list[int]], Result], parts: list[list[int]]
    ) -> Iterable[Result]:
        """The results of batches, in their order, by all the processors there are.

        What is captured or silenced is so in this thread, so then all is done here.
        """
        if is_recording() or is_ablating():
            return [work(part) for part in parts]
        count = sum(map(len, parts))
        workers = self._workers(count)
        if workers > 1 and len(parts) > 1:
            return in_workers(work, parts, workers)
        if self.device.type != "cpu":
            return map(work, parts)
        if count < FEW * len(parts):  # so little that threads would only wait for each other
            with one_thread_each():
                return [work(part) for part in parts]
        return in_threads(work, parts, torch.get_num_threads() if len(parts) > 1 else 1)
