"""Losses for labels and numbers.

Shapes: B batch size, S length, C labels or numbers.
"""

from collections.abc import Iterator
from typing import Any, ClassVar, Literal

import torch
import torch.nn.functional as F
from pydantic import Field
from torch import Tensor, nn

from regard.core.data_stats import DataStats
from regard.core.options import AutoSetting
from regard.data.tensors.padded import Batch
from regard.nn import crf
from regard.nn.perturbation import perturbing
from regard.objectives.cross_entropy import SmoothedLoss
from regard.objectives.objective import DONE, Context, Loss, Objective

ADVERSARIAL_EPOCHS = 1.5  # relative to training without them


class Tags(Objective):
    """Cross entropy per position; with a CRF head, of the entire label sequence."""

    takes: ClassVar[frozenset[str]] = frozenset({"labels"})
    kind: Literal["tags"] = "tags"
    label_smoothing: float = Field(0.0, ge=0, lt=1, description="label smoothing")

    def count(self, batch: Batch) -> float:
        """Return the weighted number of positions that the loss is summed over."""
        assert batch.target is not None
        lengths, weight = batch.target.mask.sum(1), batch.weight
        if weight is None:
            return float(lengths.sum())
        return float(weight.sum() if weight.dim() == 2 else lengths.float() @ weight)

    def __call__(self, model: nn.Module, batch: Batch, context: Context = DONE) -> Loss:
        """Return the loss of a batch."""
        assert batch.target is not None
        labels, mask = batch.target.data, batch.target.mask
        output = model(batch)
        scores = output.logits  # (B, S, C)
        if output.transitions is not None:
            each = crf.nll(scores, output.transitions, labels, mask)  # (B,)
        elif batch.weight is None:
            loss, _ = SmoothedLoss.apply(scores[mask], labels[mask], self.label_smoothing)
            return Loss(loss, self.count(batch))
        else:
            nats = F.cross_entropy(
                scores.transpose(1, 2),
                labels,
                label_smoothing=self.label_smoothing,
                reduction="none",
            )  # (B, S)
            if batch.weight.dim() == 2:
                return Loss((nats * batch.weight).sum(), self.count(batch))
            each = (nats * mask).sum(1)
        total = each.sum() if batch.weight is None else each @ batch.weight
        return Loss(total, self.count(batch))


class Labels(Objective):
    """Cross entropy of one label per example; if multi-label, binary cross entropy per label.

    With `adversarial`, the mean of this loss and the loss of perturbed inputs (Miyato et al. 2017).
    """

    takes: ClassVar[frozenset[str]] = frozenset({"labels"})
    kind: Literal["labels"] = "labels"
    label_smoothing: float = Field(0.0, ge=0, lt=1, description="label smoothing")
    adversarial: float | None = Field(
        None,
        ge=0,
        allow_inf_nan=False,
        description="norm of adversarial perturbations of the vectors that the encoder reads, per "
        "example (0 = none)",
    )

    @property
    def epoch_factor(self) -> float | None:
        """Return more than 1 with perturbed inputs, because models overfit later."""
        if self.adversarial is None:
            return None
        return ADVERSARIAL_EPOCHS if self.adversarial else 1.0

    def propose(self, stats: DataStats, config: Any) -> Iterator[AutoSetting]:
        """Yield the norm of the perturbations once the kind of the encoder is known."""
        encoder = config.model.encoder
        if not encoder.is_auto:
            text = stats.source == "text" and stats.subwords
            norm = encoder.default_adversarial if text and not stats.is_large else 0.0
            reason = "regularizes models of few texts" if norm else stats.reason
            yield from self.auto_settings(reason, adversarial=norm)

    def count(self, batch: Batch) -> float:
        """Return the weighted number of examples that the loss is summed over."""
        return _rows(batch)

    def __call__(self, model: nn.Module, batch: Batch, context: Context = DONE) -> Loss:
        """Return the loss of a batch.

        Parts: `adversarial`, of perturbed inputs; `nll`, of the others, without label smoothing.
        """
        count = self.count(batch)
        if not (self.adversarial and model.training and torch.is_grad_enabled()):
            return Loss(_weighted(self._each(model, batch), batch), count)
        with perturbing() as perturbation:
            each = self._each(model, batch)
            # Divided as in the update: some norms have statistics of their gradients.
            perturbation.increase(each.sum() / count, self.adversarial)
            worse = _weighted(self._each(model, batch), batch)
        clean = _weighted(each, batch)
        parts = {"adversarial": worse.detach()}
        if not self.label_smoothing:
            parts["nll"] = clean.detach()
        return Loss((clean + worse) / 2, count, parts)

    def _each(self, model: nn.Module, batch: Batch) -> Tensor:
        """Return the loss of each example (B,)."""
        assert batch.labels is not None
        scores, labels = model(batch).logits, batch.labels  # (B, C), (B,) or (B, C)
        if labels.dim() == 1:
            smoothing = self.label_smoothing
            return F.cross_entropy(scores, labels, label_smoothing=smoothing, reduction="none")
        soft = labels * (1 - self.label_smoothing) + 0.5 * self.label_smoothing
        return F.binary_cross_entropy_with_logits(scores, soft, reduction="none").sum(1)


class Distance(Objective):
    """Base class of regression losses, summed over the numbers of an example."""

    takes: ClassVar[frozenset[str]] = frozenset({"labels"})

    def count(self, batch: Batch) -> float:
        """Return the weighted number of examples that the loss is summed over."""
        return _rows(batch)

    def __call__(self, model: nn.Module, batch: Batch, context: Context = DONE) -> Loss:
        """Return the loss of a batch."""
        assert batch.labels is not None
        each = self.distance(model(batch).logits - batch.labels).sum(1)
        return Loss(_weighted(each, batch), self.count(batch))

    def distance(self, error: Tensor) -> Tensor:
        """Return the loss of each number. error: prediction minus target."""
        raise NotImplementedError


class Squared(Distance):
    """Mean squared error; the optimal constant prediction is the mean."""

    least_squares: ClassVar[bool] = True
    kind: Literal["mse"] = "mse"

    def distance(self, error: Tensor) -> Tensor:
        return error.square()


class Absolute(Distance):
    """Mean absolute error, robust to outliers; the optimal constant prediction is the median."""

    kind: Literal["mae"] = "mae"

    def distance(self, error: Tensor) -> Tensor:
        return error.abs()


class Huber(Distance):
    """Squared error for small errors, linear beyond `delta` (Huber 1964)."""

    kind: Literal["huber"] = "huber"
    delta: float = Field(
        1.0, gt=0, description="where the loss becomes linear, in standard deviations of the target"
    )

    def distance(self, error: Tensor) -> Tensor:
        size = error.abs()
        far = self.delta * (2 * size - self.delta)
        return torch.where(size <= self.delta, error.square(), far)


def _rows(batch: Batch) -> float:
    return float(batch.rows if batch.weight is None else batch.weight.sum())


def _weighted(each: Tensor, batch: Batch) -> Tensor:
    return each.sum() if batch.weight is None else each @ batch.weight
