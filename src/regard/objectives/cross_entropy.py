"""Cross entropy with label smoothing.

Shapes: N real target tokens, V vocabulary.
"""

import contextlib
from typing import Any, ClassVar, Literal

import torch
from pydantic import Field
from torch import Tensor, nn

from regard.data.tensors.padded import Batch, Outputs
from regard.nn.capture_hooks import recording
from regard.objectives.ctc import joint_loss
from regard.objectives.guided_attention import guided_loss
from regard.objectives.objective import DONE, Context, Loss, Objective


class TokenLoss(Objective):
    """Base class of losses on target tokens: cross entropy with teacher forcing.

    -sum_v q(v) log p(v), with q = (1 - smoothing) on the true token and the rest spread evenly
    over the vocabulary (Szegedy et al. 2016, 7).
    """

    takes: ClassVar[frozenset[str]] = frozenset({"steps"})
    label_smoothing: float = Field(0.1, ge=0, lt=1, description="label smoothing")

    def count(self, batch: Batch) -> int:
        """Return the number of tokens that the loss is summed over."""
        assert batch.target is not None
        return int(batch.target.mask.sum())

    def __call__(self, model: nn.Module, batch: Batch, context: Context = DONE) -> Loss:
        """Return the loss of a batch. The part `nll`, without smoothing, is for perplexity."""
        return self.loss(model, batch)

    def loss(self, model: nn.Module, batch: Batch, inputs: Tensor | None = None) -> Loss:
        """Return the loss of a batch. inputs: decoder inputs (B, T), by default the true tokens."""
        return self.loss_of(_outputs(model, batch, inputs), batch)

    def loss_of(self, output: Outputs, batch: Batch) -> Loss:
        """Return the loss of the outputs for a batch."""
        assert batch.target is not None
        labels = batch.target.data[batch.target.mask]  # (N,)
        loss, nll = SmoothedLoss.apply(output.logits, labels, self.label_smoothing)
        return Loss(loss, len(labels), {"nll": nll}, output.carry)


class CrossEntropy(TokenLoss):
    """Cross entropy, plus two losses that teach attention to long sources, if they have a weight.

    (1 - ctc_weight) * cross entropy + ctc_weight * CTC of an output layer on the encoder (Watanabe
    et al. 2017) + guided_attention * penalty of attention far from the diagonal (Tachibana et al.
    2018).
    """

    kind: Literal["cross_entropy"] = "cross_entropy"
    ctc_weight: float = Field(
        0.0, ge=0, lt=1, description="weight of CTC in the loss, on an output layer of the encoder"
    )
    guided_attention: float = Field(
        0.0, ge=0, allow_inf_nan=False, description="weight of the guided attention loss"
    )
    guided_width: float = Field(
        0.2,
        gt=0,
        description="guided attention: distance from the diagonal, as a fraction of the lengths, "
        "at which the penalty is 0.39",
    )

    @property
    def reads(self) -> frozenset[str]:
        weights = {"frames": self.ctc_weight, "alignment": self.guided_attention}
        return frozenset(name for name, weight in weights.items() if weight)

    def loss(self, model: nn.Module, batch: Batch, inputs: Tensor | None = None) -> Loss:
        """Return the loss of a batch, with the parts `ctc` and `guided_attention`."""
        with recording() if self.guided_attention else contextlib.nullcontext() as captured:
            output = _outputs(model, batch, inputs)
        found = self.loss_of(output, batch)
        if self.ctc_weight:
            found = joint_loss(found, output, batch, self.ctc_weight)
        if captured is not None:
            weight, width = self.guided_attention, self.guided_width
            found = guided_loss(found, captured.alignment(), output, batch, weight, width)
        return found


def _outputs(model: nn.Module, batch: Batch, inputs: Tensor | None) -> Outputs:
    """Return the outputs of a model. inputs: decoder inputs, by default the true tokens."""
    found: Outputs = model(batch) if inputs is None else model(batch, inputs)
    return found


class SmoothedLoss(torch.autograd.Function):
    """Smoothed cross entropy with few passes over the logits.

    With smoothing s, loss = -(1 - s) log p(y) - s mean_v log p(v). The gradient is p - q, with the
    smoothed target q. The log probabilities are computed once, saved, and turned into the gradient
    in place. Equal to `F.cross_entropy(..., label_smoothing=s, reduction="sum")`.
    """

    @staticmethod
    def forward(
        ctx: Any, logits: Tensor, labels: Tensor, smoothing: float
    ) -> tuple[Tensor, Tensor]:
        """Return the summed loss of logits (N, V) and labels (N,), with and without smoothing."""
        scores = logits.float().log_softmax(-1)  # (N, V)
        nll = -scores.gather(1, labels[:, None]).sum()
        loss = (1 - smoothing) * nll
        if smoothing:
            loss = loss - smoothing / scores.shape[1] * scores.sum()
        ctx.scores, ctx.labels, ctx.smoothing = scores, labels, smoothing
        ctx.mark_non_differentiable(nll)
        return loss, nll

    @staticmethod
    def backward(ctx: Any, grad: Tensor, _: Tensor) -> tuple[Tensor, None, None]:
        scores, labels = ctx.scores, ctx.labels
        ctx.scores = None  # overwritten by the gradient
        out = scores.exp_()
        if ctx.smoothing:
            out -= ctx.smoothing / out.shape[1]
        out[torch.arange(len(labels), device=labels.device), labels] -= 1 - ctx.smoothing
        return out.mul_(grad), None, None
