"""What the options of all tasks can do."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from regard.core.errors import UserError
from regard.core.options import AutoSetting, Options
from regard.data.reading.read import Pair, Pairs, split_dev
from regard.data.sources.open import DataSpec, TrainDev, open_pairs

if TYPE_CHECKING:
    from regard.tasks.task import Task


class TaskOptions(Options):
    """What the options of all tasks can do."""

    kind: str

    def open(self, place: DataSpec, dev: DataSpec) -> TrainDev:
        """The training and dev examples."""
        return open_pairs(place, dev, self.read, self.kind, self.hold_out)

    def read(self, place: DataSpec) -> Pairs:
        """The examples of a file."""
        return place.read()

    def hold_out(self, pairs: list[Pair]) -> tuple[Sequence[Pair], list[Pair]]:
        """Train and dev parts of examples that came without a dev part."""
        return split_dev(pairs)

    def trainable(
        self, pairs: Sequence[Pair], task: "Task | None" = None
    ) -> tuple[Sequence[Pair], list[str]]:
        """The examples that can be trained on, and a line for each reason others cannot."""
        return list(pairs), []

    def fit(
        self, pairs: Sequence[Pair], model: Any = None, like: "Task | None" = None
    ) -> tuple["Task", Any, list[AutoSetting]]:
        """The task of these examples, the options with nothing open, what was chosen and why.

        model: the options of the model. like: a task whose vocabulary is taken over.
        """
        raise NotImplementedError

    def get_pseudo_label_threshold(self) -> float:
        """Return the minimum confidence of a pseudo-label."""
        raise UserError("--unlabeled: only supported for tasks tag and classify")

    def load(self, folder: Path) -> "Task":
        """The task that `save` wrote into a run folder."""
        raise NotImplementedError
