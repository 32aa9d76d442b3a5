"""A classifier or a regressor seen from inside: one answer, and what it rests on.

n copies, C outputs, R parts of the answer: labels or numbers; F numbers of a vector.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from regard.core.errors import UserError
from regard.core.suggest import nearest
from regard.data.tensors.padded import Batch
from regard.inference.model_capture import capture
from regard.inference.predictor import Predictor
from regard.models.labeller import Labeller
from regard.tasks.classify import Classify
from regard.tasks.regress import Regress
from regard.tasks.task import Prediction, device_of
from regard.views.inspection.about import about
from regard.views.inspection.inspected_texts import refuse_longer
from regard.views.inspection.internals import Inside, inside
from regard.views.inspection.notes import Note
from regard.views.inspection.question import Scored, log_odds
from regard.views.inspection.steps import OTHERS
from regard.views.inspection.value import Axis, Inspection, OutputStep, Saliency, TokenizedText

NONE = "(no label)"
Picked = Callable[[Tensor], Tensor]


@dataclass(frozen=True)
class PooledPass(Scored):
    """A text or a vector. pick: outputs (n, C) to the scores (n, R) of what was answered; lean: to
    what gradients are taken of, log odds or numbers (n, R)."""

    model: Labeller
    batch: Batch  # of one row
    pick: Picked
    lean: Picked
    parts: int

    def scores(self, copies: int) -> Tensor:
        return self.pick(self._run(copies))

    def each(self, parts: list[int]) -> Tensor:
        return self.lean(self._run(len(parts)))[torch.arange(len(parts)), parts]

    def _run(self, copies: int) -> Tensor:
        """(n, C): what the model gives."""
        assert self.batch.source is not None
        source = self.batch.source.copies(copies)
        return self.model(self.batch._replace(source=source)).logits.float()

    def lengths(self) -> tuple[int, int]:
        assert self.batch.source is not None
        return self.parts, self.batch.source.data.shape[1]


def inspect_whole(
    predictor: Predictor, source: Any, target: str | None, search: Any, most: int
) -> Inspection:
    """The label or the number of a text or a vector, and what is behind it."""
    task, model = predictor.task, predictor.engine.inside().eval()
    assert isinstance(task, Classify | Regress) and isinstance(model, Labeller)
    side = _side(task, source)
    refuse_longer("text", len(side.symbols), most, "give a shorter text")
    (found,) = predictor.predict([source], search)
    batch = Batch(task.source.batch([source])).to(device_of(model))
    if isinstance(task, Classify):
        answer = _labels(task, found, target)
        steps, pick = _label_steps(task, found, answer), _label_scores(task, answer)
        lean = _label_odds(task, answer)
    else:
        if target is not None:
            raise UserError("target: a number has no probability to be held to; leave it out")
        steps, pick = _number_steps(found), _numbers(task)
        lean = pick
    rows: Axis = "one" if len(steps) == 1 else "target"
    question = PooledPass(model, batch, pick, lean, len(steps))
    several = task.source.sequential
    looked = inside(question, rows) if several else _vector_inside(question, rows)
    with torch.inference_mode():
        score = float(question.scores(1).sum()) if isinstance(task, Classify) else None
    symbols = tuple(step.symbol for step in steps)
    return Inspection(
        model=about(predictor),
        source=side,
        target=TokenizedText(found.text if target is None else target, symbols),
        steps=tuple(steps),
        given=target is not None,
        score=score,
        unknown=found.unknown,
        **looked.seen(),
        notes=(*looked.notes, *_remarks(task)),
    )


def _side(task: Classify | Regress, source: Any) -> TokenizedText:
    """A source and the names of its positions."""
    return TokenizedText(task.source.text(source), tuple(task.source.names(source)))


def _labels(task: Classify, found: Prediction, target: str | None) -> list[int]:
    """The labels that the model is held to: its own, or given ones."""
    if target is None:
        return [task.numbers[label] for label in found.value]
    names = [target]
    if task.several and target not in task.numbers:
        names = [name for part in target.split(",") if (name := part.strip())]
    for name in names:
        if name not in task.numbers:
            raise UserError(f"target: no label {name!r}{nearest(name, task.labels)}")
    return [task.numbers[name] for name in names]


def _label_steps(task: Classify, found: Prediction, answer: list[int]) -> list[OutputStep]:
    """A step for each label that is given; one where there is none."""
    shares = found.probabilities or {}
    own = [task.labels[label] for label in answer]
    ordered = sorted(shares.items(), key=lambda pair: -pair[1])
    others = tuple((label, p) for label, p in ordered if label not in own)[:OTHERS]
    if not own:
        return [OutputStep(NONE, math.prod(1 - p for p in shares.values()), others)]
    return [OutputStep(label, shares[label], others) for label in own]


def _label_scores(task: Classify, answer: list[int]) -> Picked:
    """Outputs to the log probabilities of the labels."""
    if not task.several:
        return lambda out: (out / task.temperature).log_softmax(-1)[:, answer]
    if not answer:  # that there is none
        return lambda out: F.logsigmoid(-out / task.temperature).sum(1, keepdim=True)
    return lambda out: F.logsigmoid(out / task.temperature)[:, answer]


def _label_odds(task: Classify, answer: list[int]) -> Picked:
    """Outputs to the log odds of the labels."""
    if not task.several:
        return lambda out: log_odds(out / task.temperature, answer * len(out))[:, None]
    return (lambda out: out[:, answer] / task.temperature) if answer else _label_scores(task, [])


def _number_steps(found: Prediction) -> list[OutputStep]:
    return [OutputStep(f"{number:.6g}", None, value=number) for number in found.value]


def _numbers(task: Regress) -> Picked:
    """Outputs to numbers in the unit of the data."""

    def pick(out: Tensor) -> Tensor:
        mean, deviation = (out.new_tensor(one) for one in (task.mean, task.deviation))
        return out * deviation + mean

    return pick


def _vector_inside(question: PooledPass, rows: Axis) -> Inside:
    """The gradient by each number of a vector: there is nothing else to see."""
    with torch.enable_grad(), capture(question.model) as seen:
        score = question.each(list(range(question.parts))).sum()
    slopes = seen.gradients(score)["frontend"].squeeze(1).abs()  # (R, F)
    return Inside(saliency=Saliency(rows, "source", slopes.cpu()), notes=(Note("vector"),))


def _remarks(task: Classify | Regress) -> list[Note]:
    """What numbers mean that elsewhere are probabilities."""
    if not isinstance(task, Regress):
        return []
    if not task.source.sequential:
        return [Note("number.gradients")]
    notes = [Note("number.heads")]
    if len(task.mean) > 1:
        notes.append(Note("number.several"))
    return notes
