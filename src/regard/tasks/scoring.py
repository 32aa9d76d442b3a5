"""The metrics of a task: of the predictions of a model, and of trivial baselines."""

from collections.abc import Sequence
from typing import Any

from regard.baselines import Baseline, BaselineFit
from regard.data.reading.read import Example, Pair
from regard.data.sources.sample import bounded_sample
from regard.metrics.numbers import WeightedScores
from regard.objectives import Objective
from regard.tasks.values import Prediction, to_text

# Of the training set; baselines are fitted on a sample of at most this size.
MAX_BASELINE_EXAMPLES = 20_000
MAX_BASELINE_CHARACTERS = 4_000_000


class Scoring:
    """Mixin of tasks: metrics, and the baselines to compare them with."""

    def compute_metrics(
        self, predictions: Sequence[Prediction], examples: Sequence[Example]
    ) -> WeightedScores | None:
        """Return the metrics of the predictions; None if every metric is computed from the loss."""
        return None

    def score(
        self, predictions: Sequence[Prediction], examples: Sequence[Example]
    ) -> dict[str, float]:
        """Return the metrics by name."""
        metrics = self.compute_metrics(predictions, examples)
        return {} if metrics is None else metrics.scores()

    def score_variants(
        self, variants: Sequence[Sequence[Prediction]], examples: Sequence[Example]
    ) -> list[dict[str, float]]:
        """Return the metrics of several lists of predictions for the same examples."""
        return [self.score(predictions, examples) for predictions in variants]

    def intervals(
        self, predictions: Sequence[Prediction], examples: Sequence[Example]
    ) -> dict[str, tuple[float, float]]:
        """Return the 95 % bootstrap confidence interval of each metric."""
        metrics = self.compute_metrics(predictions, examples)
        return {} if metrics is None else metrics.intervals()

    def baseline_fits(self) -> Sequence[BaselineFit]:
        """Return the baselines of this task."""
        return ()

    def baseline_sample(self, pairs: Sequence[Pair]) -> tuple[list[Pair], str]:
        """Return the examples to fit baselines on, and a note if they are not all examples."""
        sample = bounded_sample(pairs, MAX_BASELINE_EXAMPLES, MAX_BASELINE_CHARACTERS)
        if len(sample) == len(pairs):
            return sample, ""
        return sample, f"fitted on {len(sample):,} of {len(pairs):,} training examples"

    def baseline_sources(self, sources: Sequence[Any]) -> list[Any]:
        """Return the sources as the baselines read them."""
        return list(sources)

    def score_baseline(
        self, baseline: Baseline, examples: Sequence[Example], objective: Objective
    ) -> dict[str, float]:
        """Return the metrics of a baseline, computed by the same functions as those of a model."""
        sources = self.baseline_sources([example.source for example in examples])
        values = baseline.predict(sources)
        predictions = [Prediction(to_text(value), None, value=value) for value in values]
        metrics = self.compute_metrics(predictions, examples)
        return {} if metrics is None else metrics.scores()
