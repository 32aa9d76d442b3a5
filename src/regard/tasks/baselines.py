"""Fitting and scoring the baselines of a task. A baseline that fails becomes a note."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from regard.baselines import Baseline, BaselineFit
from regard.data.reading.read import Example, Pair
from regard.metrics.metric_names import best_of
from regard.objectives import Objective
from regard.tasks.task import Task

Result = TypeVar("Result")


@dataclass(frozen=True)
class BaselineScores:
    """The metrics of a baseline by name."""

    name: str
    scores: dict[str, float]

    def as_dict(self) -> dict[str, Any]:
        """Return the baseline for JSON."""
        return {"name": self.name, "scores": self.scores}


@dataclass(frozen=True)
class BaselineResults:
    """The scores of all baselines, the best one first. notes: what was not computed, and why."""

    scores: list[BaselineScores] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def as_list(self) -> list[dict[str, Any]]:
        """Return the scores for JSON."""
        return [one.as_dict() for one in self.scores]


def fit_baselines(
    task: Task, fits: Iterable[BaselineFit], pairs: Sequence[Pair], notes: list[str]
) -> list[Baseline]:
    """Return the baselines that apply, fitted on pairs. notes: list to which failures are added."""
    sources = task.baseline_sources([pair.source for pair in pairs])
    targets = [pair.target for pair in pairs]
    found = []
    for one in fits:
        baseline = _attempt(one.name, lambda one=one: one.fit(sources, targets), notes)  # type: ignore[misc]
        if baseline is not None:
            found.append(baseline)
    return found


def score_baselines(
    task: Task,
    baselines: Iterable[Baseline],
    examples: Sequence[Example],
    objective: Objective,
    notes: Sequence[str] = (),
) -> BaselineResults:
    """Return the metrics of baselines on examples. notes: put before the notes of failures."""
    found, messages = [], list(notes)
    for one in baselines:
        scores = _attempt(
            one.name,
            lambda one=one: task.score_baseline(one, examples, objective),  # type: ignore[misc]
            messages,
        )
        if scores:
            found.append(BaselineScores(one.name, scores))
    return BaselineResults(best_first(found, task.metric), messages)


def best_first(found: Sequence[BaselineScores], metric: str) -> list[BaselineScores]:
    """Return the baselines sorted by a metric, or by their first metric if they do not have it."""
    if not found:
        return []
    by = metric if all(metric in one.scores for one in found) else next(iter(found[0].scores))
    return sorted(found, key=lambda one: one.scores[by], reverse=best_of(by) is max)


def _attempt(name: str, compute: Callable[[], Result], notes: list[str]) -> Result | None:
    """Return a result; None, and a note, if its computation fails: a run must not fail by it."""
    try:
        return compute()
    except Exception as error:
        text = str(error).splitlines()
        notes.append(f"baseline {name}: not computed: {text[0] if text else type(error).__name__}")
        return None
