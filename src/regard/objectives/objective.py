"""The interface of objectives: a loss is a sum and a count, never a mean."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar

from torch import Tensor, nn

from regard.core.options import Options
from regard.data.tensors.padded import Batch
from regard.data.tensors.tree import Tree
from regard.search import Search, SearchRequest

Decode = Callable[[Search, SearchRequest], list[Any]]


@dataclass
class Loss:
    """A sum and the count it is divided by (weighted tokens or examples).

    parts: sums to log, by name; carry: state for the next batch of a sequential corpus.
    """

    sum: Tensor
    count: float
    parts: dict[str, Tensor] = field(default_factory=dict)
    carry: Tree = None


@dataclass(frozen=True)
class Context:
    """The position of a batch in a run. progress: finished fraction of the run; step: updates so
    far; decode: runs a search with the current model, in eval mode, without gradients; main
    thread only.

    In evaluation, without a run, progress is 1, so that losses are comparable.
    """

    progress: float = 1.0
    step: int = 0
    decode: Decode | None = None


DONE = Context()


class Objective(Options, ABC):
    """The base class. takes: model outputs it supports (`gives` of the model options);
    least_squares: whether it is the squared error, which linear models minimize in closed form."""

    takes: ClassVar[frozenset[str]]
    least_squares: ClassVar[bool] = False
    kind: str

    def ready(self, load: Callable[[str], nn.Module]) -> None:
        """Prepare for a run; called once before the first update. load: loads a trained model."""

    def prepare(self, model: nn.Module, batch: Batch, context: Context = DONE) -> Batch:
        """Return the batch as the loss reads it; called once per batch in the main thread. It may
        search and sample, and stores the results in `batch.prepared`."""
        return batch

    @abstractmethod
    def count(self, batch: Batch) -> float:
        """Return what the loss of a prepared batch is divided by."""

    @abstractmethod
    def __call__(self, model: nn.Module, batch: Batch, context: Context = DONE) -> Loss:
        """Return the loss of a prepared batch; rows are independent, and may be split over
        threads."""
