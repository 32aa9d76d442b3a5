"""The interface of objectives. They return a loss as a sum and a count, never as a mean."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from torch import Tensor, nn

from regard.core.options import Options
from regard.data.tensors.padded import Batch
from regard.data.tensors.tree import Tree
from regard.search import Search, SearchRequest

Decode = Callable[[Search, SearchRequest], list[Any]]
Tokens = Sequence[Sequence[int]]  # token ids of several outputs, without EOS
Rewards = Callable[[str, Tokens, Tokens], list[float]]  # metric, outputs, references


@dataclass
class Loss:
    """A summed loss, and the count to divide it by (weighted tokens or examples).

    parts: other sums to log, by name. carry: the model state for the next batch of plain text.
    """

    sum: Tensor
    count: float
    parts: dict[str, Tensor] = field(default_factory=dict)
    carry: Tree = None


@dataclass(frozen=True)
class Context:
    """The position of a batch in a training run.

    progress: the finished fraction of the run; 1 in evaluation, so that losses are comparable.
    step: the number of updates so far. decode: runs a search with the current model, in eval mode
    and without gradients. rewards: scores outputs, higher is better. Both are None in evaluation,
    and only the main thread may call them. state: what `Objective.advance` returned.
    """

    progress: float = 1.0
    step: int = 0
    decode: Decode | None = None
    rewards: Rewards | None = None
    state: Mapping[str, float] = field(default_factory=dict)


DONE = Context()


class Objective(Options, ABC):
    """Base class of objectives.

    takes: the kinds of model outputs that the objective supports (`gives` of the model options).
    least_squares: whether it is the squared error, which linear models minimize in closed form.
    searches: whether `prepare` searches. starts_trained: whether it improves a trained model and
    learns little from random weights. lr_factor: factor of the automatic learning rate.
    """

    takes: ClassVar[frozenset[str]]
    least_squares: ClassVar[bool] = False
    searches: ClassVar[bool] = False
    starts_trained: ClassVar[bool] = False
    lr_factor: ClassVar[float] = 1.0
    kind: str

    @property
    def epoch_factor(self) -> float | None:
        """Return the factor of the automatic number of epochs; None if settings are missing."""
        return 1.0

    @property
    def reads(self) -> frozenset[str]:
        """Return what the loss reads besides the kinds of `takes`.

        "frames": logits of the encoder, for CTC. "alignment": attention to the source.
        """
        return frozenset()

    @property
    def teachers(self) -> tuple[str, ...]:
        """Return the folders of the trained models that the objective learns from."""
        return ()

    def ready(self, load: Callable[[str], nn.Module]) -> None:
        """Prepare for a run. Called once before the first update. load: loads a trained model."""

    def prepare(self, model: nn.Module, batch: Batch, context: Context = DONE) -> Batch:
        """Return the batch as the loss reads it. Called once per batch in the main thread.

        May search and sample, and stores the results in `batch.prepared`.
        """
        return batch

    @abstractmethod
    def count(self, batch: Batch) -> float:
        """Return the number to divide the loss of a prepared batch by."""

    @abstractmethod
    def __call__(self, model: nn.Module, batch: Batch, context: Context = DONE) -> Loss:
        """Return the loss of a prepared batch.

        Examples must be independent, because threads may divide the batch among them.
        """

    def advance(self, state: Mapping[str, float], parts: Mapping[str, float]) -> dict[str, float]:
        """Return the state of the objective after an update, which checkpoints save.

        state: the previous state, at first empty. parts: mean terms of the loss by name, over all
        processes.
        """
        return {}
