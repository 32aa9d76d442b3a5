"""What an objective promises: a loss as a sum and a count, never a mean."""

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
    """A sum and the count it is divided by, tokens or examples by their weight.

    parts: sums to log, by name; carry: what the next batch continues from, if it follows.
    """

    sum: Tensor
    count: float
    parts: dict[str, Tensor] = field(default_factory=dict)
    carry: Tree = None


@dataclass(frozen=True)
class Context:
    """Where in a run a batch is. share: of the run that is done, 0 to 1; step: updates so far;
    decode: runs a search with the model as it is, in eval mode and without gradients; for the
    main thread alone.

    Without a run, as in evaluation, it is over: losses can then be compared with each other.
    """

    share: float = 1.0
    step: int = 0
    decode: Decode | None = None


DONE = Context()


class Objective(Options, ABC):
    """The contract. takes: what a model must give (`gives` of its options); least_squares: whether
    it is the squared error, which a linear model makes smallest in closed form."""

    takes: ClassVar[frozenset[str]]
    least_squares: ClassVar[bool] = False
    kind: str

    def ready(self, load: Callable[[str], nn.Module]) -> None:
        """Called once per run, before the first update. load: reads a trained model."""

    def prepare(self, model: nn.Module, batch: Batch, context: Context = DONE) -> Batch:
        """The batch as the loss reads it, called once per batch in the main thread: it may search
        and sample, and puts what it finds into `batch.prepared`."""
        return batch

    @abstractmethod
    def count(self, batch: Batch) -> float:
        """What the loss of a prepared batch is divided by."""

    @abstractmethod
    def __call__(self, model: nn.Module, batch: Batch, context: Context = DONE) -> Loss:
        """The loss of a prepared batch, each row on its own; may run in a row thread, for some of
        its rows."""
