"""Base class of the options of all tasks."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from pydantic import Field

from regard.core.errors import UserError
from regard.core.formatting import count_noun
from regard.core.options import AutoSetting, Options
from regard.data.reading.read import Pair, Pairs, split_dev
from regard.data.sources.open import DataSpec, TrainDev, open_pairs
from regard.data.sources.sample import sample_pairs

if TYPE_CHECKING:
    from regard.tasks.task import Task


class TaskOptions(Options):
    """Base class of the options of all tasks.

    writes_sounds: whether predictions are sounds, which are written to files.
    """

    writes_sounds: ClassVar[bool] = False
    kind: str
    examples: int | None = Field(
        None, gt=0, description="train on a random sample of this many examples; None: all"
    )

    def open(self, spec: DataSpec, dev: DataSpec) -> TrainDev:
        """Read the data; return the training set and the dev set."""
        return open_pairs(spec, dev, self.read, self.kind, self.hold_out)

    def read(self, spec: DataSpec) -> Pairs:
        """Return the examples of a file."""
        return spec.read()

    def hold_out(self, pairs: list[Pair]) -> tuple[Sequence[Pair], list[Pair]]:
        """Split the examples into a training set and a dev set."""
        return split_dev(pairs)

    def sample(self, pairs: Sequence[Pair], seed: int) -> tuple[Sequence[Pair], list[str]]:
        """Return the training set, reduced to `examples` examples, and a note about the sample."""
        if self.examples is None:
            return pairs, []
        if self.examples >= len(pairs):
            only = f"the training set has only {count_noun(len(pairs), 'example')}"
            return pairs, [f"note: task.examples={self.examples}: {only}, all are used"]
        taken = f"{self.examples:,} of {len(pairs):,} training examples"
        note = f"note: task.examples={self.examples}: {taken}, sampled with training.seed={seed}"
        return sample_pairs(pairs, self.examples, seed), [note]

    def trainable(
        self, pairs: Sequence[Pair], task: "Task | None" = None
    ) -> tuple[Sequence[Pair], list[str]]:
        """Return the examples to train on, and one message per reason for skipped examples."""
        return list(pairs), []

    def fit(
        self, pairs: Sequence[Pair], model: Any = None, like: "Task | None" = None
    ) -> tuple["Task", Any, list[AutoSetting]]:
        """Fit a task to these examples. Return the task, complete options and automatic settings.

        model: the options of the model. like: a task whose vocabulary is reused.
        """
        raise NotImplementedError

    def get_pseudo_label_threshold(self) -> float:
        """Return the minimum confidence of a pseudo-label."""
        raise UserError("--unlabeled: only supported for tasks tag and classify")

    def load(self, folder: Path) -> "Task":
        """Return the task that `save` wrote to a run folder."""
        raise NotImplementedError
