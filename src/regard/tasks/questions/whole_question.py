"""The question to a classifier or a regressor: the labels or numbers of a source.

n copies, C outputs, R parts of the prediction: labels or numbers; F numbers of a vector.
"""

import math
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from regard.core.errors import UserError
from regard.core.suggest import suggest_names
from regard.data.tensors.padded import Batch, Padded
from regard.nn.capture import Capture
from regard.tasks.questions.notes import Note
from regard.tasks.questions.question import (
    OTHERS,
    Asked,
    Axis,
    OutputStep,
    Question,
    QuestionFacts,
    TokenizedText,
)
from regard.tasks.questions.token_question import log_odds
from regard.tasks.values import Prediction

NONE = "(no label)"


@dataclass(frozen=True, kw_only=True)
class WholeQuestion(Question):
    """A source that has one prediction as a whole: a text, or a vector of one position."""

    source: Padded  # (1, S) or (1, 1, F)
    parts: int  # R

    @property
    def sequential(self) -> bool:
        """Whether the source has several positions."""
        found: bool = self.asked.task.source.sequential
        return found

    @abstractmethod
    def scores(self, copies: int) -> Tensor:
        """Return (n, R): the log probability of each part, or the numbers themselves."""

    def odds(self, copies: int) -> Tensor:
        """Return (n, R): what gradients are taken of, log odds or numbers."""
        return self.scores(copies)

    def run(self, copies: int) -> Tensor:
        """Return (n, C): what the model gives."""
        return self.asked.model(Batch(self.source.copies(copies))).logits.float()

    @property
    def rows(self) -> Axis:
        return "one" if self.parts == 1 else "target"

    @property
    def shows(self) -> frozenset[str]:
        return super().shows if self.sequential else frozenset({"saliency"})

    def each(self, parts: list[int]) -> Tensor:
        return self.odds(len(parts))[torch.arange(len(parts)), parts]

    def read(self) -> None:
        self.run(1)

    def totals(self, copies: int) -> Tensor:
        return self.scores(copies).double().sum(1)

    def lengths(self) -> tuple[int, int]:
        return self.parts, self.source.data.shape[1]

    def saliency(self, captured: Capture, score: Tensor) -> dict[str, Tensor]:
        """Return the same; of a vector the gradient by each of its numbers (n, F)."""
        if self.sequential:
            return super().saliency(captured, score)
        return {"frontend": captured.gradients(score)["frontend"].squeeze(1).abs()}

    def notes(self, seen: Sequence[Note]) -> tuple[Note, ...]:
        assert self.facts is not None
        vector = [] if self.sequential else [Note("vector")]
        return (*seen, *vector, *self.facts.notes)


@dataclass(frozen=True, kw_only=True)
class LabelQuestion(WholeQuestion):
    """labels: what the model is held to."""

    labels: list[int]

    def run(self, copies: int) -> Tensor:
        """Return (n, C): calibrated logits."""
        return super().run(copies) / self.asked.task.temperature

    def scores(self, copies: int) -> Tensor:
        logits = self.run(copies)
        if not self.asked.task.is_multi_label:
            return logits.log_softmax(-1)[:, self.labels]
        if not self.labels:  # that there is none
            return F.logsigmoid(-logits).sum(1, keepdim=True)
        return F.logsigmoid(logits)[:, self.labels]

    def odds(self, copies: int) -> Tensor:
        if not self.asked.task.is_multi_label:
            return log_odds(self.run(copies), self.labels * copies)[:, None]
        return self.run(copies)[:, self.labels] if self.labels else self.scores(copies)


class NumberQuestion(WholeQuestion):
    """Numbers, in the unit of the data."""

    def scores(self, copies: int) -> Tensor:
        outputs, task = self.run(copies), self.asked.task
        mean, deviation = (outputs.new_tensor(one) for one in (task.mean, task.deviation))
        return outputs * deviation + mean


def label_question(asked: Asked) -> LabelQuestion:
    """Return the question that the labels of a source answer, or given ones."""
    task, (shown, source, found) = asked.task, _predicted(asked)
    names = list(found.value) if asked.target is None else _given(task, asked.target)
    steps = _label_steps(found, names)
    question = LabelQuestion(
        asked=asked,
        source=source,
        parts=len(steps),
        labels=[task.numbers[name] for name in names],
    )
    with torch.inference_mode():
        score = float(question.scores(1).sum())
    text = found.text if asked.target is None else asked.target
    facts = QuestionFacts(
        source=shown,
        target=TokenizedText(text, tuple(step.token for step in steps)),
        steps=steps,
        forced=asked.forced,
        score=score,
        unknown_tokens=found.unknown_tokens,
    )
    return replace(question, facts=facts)


def number_question(asked: Asked) -> NumberQuestion:
    """Return the question that the numbers of a source answer."""
    shown, source, found = _predicted(asked)
    if asked.forced:
        raise UserError("target: a number has no probability to be held to; leave it out")
    steps = tuple(OutputStep(f"{number:.6g}", None, value=number) for number in found.value)
    sequential = asked.task.source.sequential
    notes = [Note("number.heads" if sequential else "number.gradients")]
    if sequential and len(steps) > 1:
        notes.append(Note("number.several"))
    facts = QuestionFacts(
        source=shown,
        target=TokenizedText(found.text, tuple(step.token for step in steps)),
        steps=steps,
        unknown_tokens=found.unknown_tokens,
        notes=tuple(notes),
    )
    return NumberQuestion(asked=asked, source=source, parts=len(steps), facts=facts)


def _predicted(asked: Asked) -> tuple[TokenizedText, Padded, Prediction]:
    """Return a source as it is shown and as the model reads it, and its prediction."""
    reader, source = asked.task.source, asked.source
    shown = TokenizedText(reader.text(source), tuple(reader.names(source)))
    asked.refuse_longer("text", len(shown.tokens), "give a shorter text")
    (found,) = asked.predictor.predict([source], asked.search)
    return shown, reader.batch([source]).to(asked.device), found


def _given(task: Any, target: str) -> list[str]:
    """Return the labels of a target."""
    names = [target]
    if task.is_multi_label and target not in task.numbers:
        names = [name for part in target.split(",") if (name := part.strip())]
    for name in names:
        if name not in task.numbers:
            raise UserError(f"target: no label {name!r}{suggest_names(name, task.labels)}")
    return names


def _label_steps(found: Prediction, names: list[str]) -> tuple[OutputStep, ...]:
    """Return a step for each label that is predicted; one if there is none."""
    shares = found.probabilities or {}
    ordered = sorted(shares.items(), key=lambda pair: -pair[1])
    others = tuple((label, p) for label, p in ordered if label not in names)[:OTHERS]
    if not names:
        return (OutputStep(NONE, math.prod(1 - p for p in shares.values()), others),)
    return tuple(OutputStep(label, shares[label], others) for label in names)
