"""Cross entropy with label smoothing.

Shapes: N real target tokens, V vocabulary.
"""

from typing import Any, ClassVar, Literal

import torch
from pydantic import Field
from torch import Tensor, nn

from regard.data.tensors.padded import Batch
from regard.objectives.objective import DONE, Context, Loss, Objective


class CrossEntropy(Objective):
    """Cross entropy with teacher forcing.

    -sum_v q(v) log p(v), with q = (1 - smoothing) on the true token and the rest spread evenly
    over the vocabulary (Szegedy et al. 2016, 7).
    """

    takes: ClassVar[frozenset[str]] = frozenset({"steps"})
    kind: Literal["cross_entropy"] = "cross_entropy"
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
        assert batch.target is not None
        labels = batch.target.data[batch.target.mask]  # (N,)
        output = model(batch) if inputs is None else model(batch, inputs)
        loss, nll = SmoothedLoss.apply(output.logits, labels, self.label_smoothing)
        return Loss(loss, len(labels), {"nll": nll}, output.carry)


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
