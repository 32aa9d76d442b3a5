"""Pseudo-labels: unlabelled examples, answered by a model that is sure of itself (Lee 2013)."""

from regard.core.errors import UserError, say
from regard.data.reading.read import Pair
from regard.exchange.engine_choice import load_predictor
from regard.inference.confident_labels import label
from regard.inference.prediction.input_items import file_items


def label_file(teacher: str, path: str, task: str, least: float) -> list[tuple[Pair, float]]:
    """The examples of a file of which the teacher is at least so sure, with its answers."""
    predictor = load_predictor(teacher)
    kind = predictor.task.kind
    if kind != task:
        raise UserError(f"--teacher {teacher}: a {kind} model cannot label for {task}")
    sources = [item.source for item in file_items(predictor, path)]
    sources = [source for source in sources if source]
    found = label(predictor, sources, least)
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
