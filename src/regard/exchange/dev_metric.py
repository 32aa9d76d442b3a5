"""The metric that an engine loses on the dev set of a run."""

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property

from regard import metrics
from regard.data.reading.read import Example
from regard.inference.engine import Engine
from regard.inference.predictor import Predictor
from regard.storage.run_files import run_metadata
from regard.storage.training_data import read_training_data

MAX_EXAMPLES = 256
MAX_SIZE = 1 << 28  # bytes of training data that are read to find the dev set


class DevMetric:
    """The dev set of a run, for comparisons with torch. predictor: runs torch."""

    def __init__(self, predictor: Predictor) -> None:
        self.predictor = replace(predictor)  # keeps its engine
        self.name = predictor.task.metric

    @cached_property
    def examples(self) -> Sequence[Example]:
        """The first examples of the dev set; [] if its files are unknown or missing."""
        found = self.predictor
        facts = run_metadata(found.folder)
        data = read_training_data(found.folder, found.config, found.task, facts, MAX_SIZE)
        return found.task.examples(data.dev)[:MAX_EXAMPLES]

    @cached_property
    def with_torch(self) -> float:
        """The metric of torch."""
        return self._score(self.predictor)

    def lost(self, engine: Engine) -> float | None:
        """Return by how much an engine is worse than torch; None if there is no dev set."""
        if not self.examples:
            return None
        lost = self.with_torch - self._score(replace(self.predictor, engine=engine))
        return lost if metrics.HIGHER_IS_BETTER[self.name] else -lost

    def _score(self, predictor: Predictor) -> float:
        found = predictor.predict([example.source for example in self.examples])
        return predictor.task.score(found, self.examples)[self.name]
