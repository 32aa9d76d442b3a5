"""The forced pass of a classifier or a regressor over a source and its labels or numbers.

Shapes: n copies of the source, C outputs of the model, R parts of the output (labels or numbers),
S tokens of a text, F features of a vector.
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
from regard.tasks.inspection.batched_pass import folded_notes, log_odds
from regard.tasks.inspection.forced_pass import (
    NUM_ALTERNATIVES,
    ForcedOutput,
    ForcedPass,
    InspectionRequest,
    OutputStep,
    TokenAxis,
    TokenizedText,
)
from regard.tasks.inspection.notes import Note
from regard.tasks.values import Prediction

NO_LABEL = "(no label)"


@dataclass(frozen=True, kw_only=True)
class PooledPass(ForcedPass):
    """The forced pass over a text, or over a vector, which is read as a single position."""

    source: Padded  # (1, S), (1, 1, F) or (1, H, W, C)
    parts: int  # R

    @property
    def is_vector(self) -> bool:
        """Whether the source is a vector, which has no positions."""
        return not self.supported_views & {"attention", "picture"}

    @abstractmethod
    def scores(self, copies: int) -> Tensor:
        """Return the log probability of each label, or the numbers, (n, R)."""

    def odds(self, copies: int) -> Tensor:
        """Return the log odds or numbers (n, R) whose gradients give the saliency."""
        return self.scores(copies)

    def run(self, copies: int) -> Tensor:
        """Return the outputs of the model (n, C)."""
        return self.request.model(Batch(self.source.copies(copies))).logits.float()

    @property
    def row_axis(self) -> TokenAxis:
        return "one" if self.parts == 1 else "target"

    def output_scores(self, parts: list[int]) -> Tensor:
        return self.odds(len(parts))[torch.arange(len(parts)), parts]

    def forward(self) -> None:
        self.run(1)

    def total_score(self, copies: int) -> Tensor:
        return self.scores(copies).double().sum(1)

    def lengths(self) -> tuple[int, int]:
        return self.parts, self.source.data.shape[1]

    def saliency(self, captured: Capture, score: Tensor) -> dict[str, Tensor]:
        """Return the saliency by module; for a vector, the absolute gradients (n, F)."""
        if not self.is_vector:
            return super().saliency(captured, score)
        return {"frontend": captured.gradients(score)["frontend"].squeeze(1).abs()}

    def notes(self, internals: Sequence[Note]) -> tuple[Note, ...]:
        assert self.output is not None
        vector = [Note("vector")] if self.is_vector else []
        return (*internals, *vector, *self.output.notes)


@dataclass(frozen=True, kw_only=True)
class ClassifierPass(PooledPass):
    """The forced pass of a classifier. labels: ids of the fixed labels."""

    labels: list[int]

    def run(self, copies: int) -> Tensor:
        """Return the calibrated logits (n, C)."""
        return super().run(copies) / self.request.task.temperature

    def scores(self, copies: int) -> Tensor:
        logits = self.run(copies)
        if not self.request.task.is_multi_label:
            return logits.log_softmax(-1)[:, self.labels]
        if not self.labels:  # the probability of no label
            return F.logsigmoid(-logits).sum(1, keepdim=True)
        return F.logsigmoid(logits)[:, self.labels]

    def odds(self, copies: int) -> Tensor:
        if not self.request.task.is_multi_label:
            return log_odds(self.run(copies), self.labels * copies)[:, None]
        return self.run(copies)[:, self.labels] if self.labels else self.scores(copies)


class RegressorPass(PooledPass):
    """The forced pass of a regressor. Scores are the numbers in the unit of the data."""

    def scores(self, copies: int) -> Tensor:
        outputs, task = self.run(copies), self.request.task
        mean, deviation = (outputs.new_tensor(one) for one in (task.mean, task.deviation))
        return outputs * deviation + mean


def classifier_pass(request: InspectionRequest) -> ClassifierPass:
    """Return the forced pass over the predicted labels of a source, or over given labels."""
    task, (shown, source, prediction) = request.task, _predict(request)
    names = list(prediction.value)
    if request.target is not None:
        names = _parse_labels(task, request.target)
    steps = _label_steps(prediction, names)
    forced_pass = ClassifierPass(
        request=request,
        source=source,
        parts=len(steps),
        labels=[task.label_ids[name] for name in names],
    )
    with torch.inference_mode():
        score = float(forced_pass.scores(1).sum())
    text = prediction.text if request.target is None else request.target
    output = ForcedOutput(
        source=shown,
        target=TokenizedText(text, tuple(step.token for step in steps)),
        steps=steps,
        forced=request.forced,
        score=score,
        unknown_tokens=prediction.unknown_tokens,
        notes=tuple(folded_notes(prediction.folded)),
    )
    return replace(forced_pass, output=output)


def regressor_pass(request: InspectionRequest) -> RegressorPass:
    """Return the forced pass over the predicted numbers of a source."""
    shown, source, prediction = _predict(request)
    if request.forced:
        raise UserError(
            "target: not supported: a number has no probability", help="drop the target"
        )
    steps = tuple(OutputStep(f"{number:.6g}", None, value=number) for number in prediction.value)
    has_heads = "attention" in request.task.source.inspects
    notes = [Note("number.heads" if has_heads else "number.gradients")]
    if has_heads and len(steps) > 1:
        notes.append(Note("number.several"))
    output = ForcedOutput(
        source=shown,
        target=TokenizedText(prediction.text, tuple(step.token for step in steps)),
        steps=steps,
        unknown_tokens=prediction.unknown_tokens,
        notes=(*notes, *folded_notes(prediction.folded)),
    )
    return RegressorPass(request=request, source=source, parts=len(steps), output=output)


def _predict(request: InspectionRequest) -> tuple[TokenizedText, Padded, Prediction]:
    """Return the source as shown, the source as a batch of one, and the prediction."""
    reader, source = request.task.source, request.source
    shown = TokenizedText(reader.text(source), tuple(request.source_names))
    request.check_length("text", len(shown.tokens), "shorten the text")
    (prediction,) = request.predictor.predict([source], request.search)
    return shown, reader.batch([source]).to(request.device), prediction


def _parse_labels(task: Any, target: str) -> list[str]:
    """Parse the labels of a target. Raise UserError if a label is unknown."""
    names = [target]
    if task.is_multi_label and target not in task.label_ids:
        names = [name for part in target.split(",") if (name := part.strip())]
    for name in names:
        if name not in task.label_ids:
            raise UserError(f"target: unknown label {name!r}{suggest_names(name, task.labels)}")
    return names


def _label_steps(prediction: Prediction, names: list[str]) -> tuple[OutputStep, ...]:
    """Return one step per label, or a single step for the empty label set."""
    probabilities = prediction.probabilities or {}
    ordered = sorted(probabilities.items(), key=lambda pair: -pair[1])
    alternatives = tuple(pair for pair in ordered if pair[0] not in names)[:NUM_ALTERNATIVES]
    if not names:
        p = math.prod(1 - p for p in probabilities.values())
        return (OutputStep(NO_LABEL, p, alternatives),)
    return tuple(OutputStep(label, probabilities[label], alternatives) for label in names)
