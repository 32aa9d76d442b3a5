"""Distillation token by token: the model learns the probabilities of a trained teacher.

N real target tokens, V vocabulary.
"""

from collections.abc import Callable
from typing import Literal

import torch
import torch.nn.functional as F
from pydantic import Field, PrivateAttr
from torch import nn

from regard.core.errors import UserError
from regard.data.tensors.padded import Batch
from regard.objectives.cross_entropy import SmoothedLoss, TokenLoss
from regard.objectives.objective import DONE, Context, Loss


class Distill(TokenLoss):
    """Distillation of each token (Hinton et al. 2015; Kim and Rush 2016, 3.1).

    weight * T^2 KL(teacher || model), both at temperature T, plus (1 - weight) * cross entropy.
    The teacher has no gradients and is not part of checkpoints.
    """

    kind: Literal["distill"] = "distill"
    teacher: str | None = Field(None, description="run folder of the teacher")
    temperature: float = Field(1.0, gt=0, description="softmax temperature of teacher and model")
    weight: float = Field(
        0.5, ge=0, le=1, description="weight of the teacher; the rest is cross entropy"
    )
    _teacher: nn.Module | None = PrivateAttr(None)

    @property
    def teachers(self) -> tuple[str, ...]:
        if self.teacher is None:
            raise UserError(
                "objective.teacher: expected the run folder of a trained model, found none",
                help="--set objective.teacher=runs/NAME",
            )
        return (self.teacher,)

    def ready(self, load: Callable[[str], nn.Module]) -> None:
        """Load the teacher."""
        (folder,) = self.teachers
        self._teacher = load(folder)

    def __call__(self, model: nn.Module, batch: Batch, context: Context = DONE) -> Loss:
        """Return the loss of a batch; in evaluation, the cross entropy."""
        if not model.training or self._teacher is None:
            return super().__call__(model, batch, context)
        assert batch.target is not None
        labels = batch.target.data[batch.target.mask]  # (N,)
        with torch.no_grad():
            expected = self._teacher(batch).logits.float() / self.temperature
        torch.clear_autocast_cache()
        output = model(batch)
        loss, nll = SmoothedLoss.apply(output.logits, labels, self.label_smoothing)
        found = (output.logits.float() / self.temperature).log_softmax(-1)
        kl = F.kl_div(found, expected.log_softmax(-1), reduction="sum", log_target=True)
        total = (1 - self.weight) * loss + self.weight * self.temperature**2 * kl
        return Loss(total, len(labels), {"nll": nll, "kl": kl.detach()}, output.carry)
