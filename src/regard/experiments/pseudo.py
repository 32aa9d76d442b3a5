"""Pseudo-labels: unlabelled examples, answered by a model that is sure of itself (Lee 2013)."""

import json
from pathlib import Path
from typing import Any

from regard.core.errors import UserError, say
from regard.core.files import write_text
from regard.data.reading.read import Pair
from regard.estimators import load
from regard.inference.prediction.input_items import questions

PSEUDO = "pseudo.jsonl"  # in the run folder: what was labelled, and how surely


def label_file(teacher: str, path: str, task: str, least: float) -> list[tuple[Pair, float]]:
    """The examples of a file of which the teacher is at least so sure, with its answers."""
    estimator = load(teacher)
    if estimator.task != task:
        raise UserError(f"--teacher {teacher}: a {estimator.task} model cannot label for {task}")
    sources = [question.source for question in questions(estimator, path)]
    sources = [source for source in sources if source]
    found = estimator.label(sources, least)
    if not found:
        raise UserError(
            f"{path}: {teacher} is not {least:.0%} sure of any of its {len(sources):,} examples; "
            "lower task.confidence, or leave --unlabelled out"
        )
    say(
        f"{path}: {len(found):,} of {len(sources):,} examples labelled by {teacher}, at least "
        f"{least:.0%} sure; they join the training part"
    )
    return found


def write_pseudo(path: Path, found: list[tuple[Pair, float]]) -> None:
    """One JSON object an example, to be looked at and to resume with."""
    rows = [
        {"source": pair.source, "target": pair.target, "confidence": round(sure, 6)}
        for pair, sure in found
    ]
    write_text(path, "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows))


def read_pseudo(path: Path) -> list[Pair]:
    """The examples that `write_pseudo` wrote; none where there is no file."""
    if not path.exists():
        return []
    rows = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    return [Pair(_side(row["source"]), tuple(row["target"]), 0) for row in rows]


def _side(value: Any) -> Any:
    return value if isinstance(value, str) else tuple(value)
