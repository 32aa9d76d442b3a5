"""Conditional masked language modeling, which trains parallel decoders (Ghazvininejad et al. 2019).

Shapes: B batch size, T target length, V vocabulary, L lengths, N masked tokens.
"""

from typing import Any, ClassVar, Literal

import torch
import torch.nn.functional as F
from pydantic import Field, model_validator
from torch import Tensor, nn

from regard.data.tensors.padded import Batch, LengthScores, Padded
from regard.data.tensors.special import EOS, MASK, PAD
from regard.nn.dropout import thread_generator
from regard.objectives.cross_entropy import SmoothedLoss
from regard.objectives.objective import DONE, Context, Loss, Objective
from regard.objectives.token_losses import pseudo_random


class CMLM(Objective):
    """Cross entropy of masked target tokens, given the source and the other target tokens.

    The number of masked tokens is uniform between one and all (3.2). In evaluation, the masks
    depend only on the tokens of the row. If the model has a length classifier, the cross entropy
    of the length is added.
    """

    takes: ClassVar[frozenset[str]] = frozenset({"fill"})
    kind: Literal["cmlm"] = "cmlm"
    label_smoothing: float = Field(0.1, ge=0, lt=1, description="label smoothing")
    length_weight: float = Field(
        1.0, ge=0, description="weight of the length in the loss, if the decoder predicts lengths"
    )

    @model_validator(mode="after")
    def _length_is_learned(self) -> "CMLM":
        if not self.length_weight:
            raise ValueError(
                "length_weight 0: the length would not be learned; for a length loss that does not "
                "change the encoder, use model.decoder.length=classifier"
            )
        return self

    def prepare(self, model: nn.Module, batch: Batch, context: Context = DONE) -> Batch:
        """Return the batch with its decoder inputs, in which tokens are masked."""
        assert batch.target is not None
        model_: Any = model
        hidden = model_.unknown(batch.target.data) == MASK
        inputs = masked_inputs(batch.target, hidden & batch.target.mask, model.training)
        return batch._replace(prepared=inputs)

    def count(self, batch: Batch) -> int:
        """Return the number of masked tokens, which the loss is summed over."""
        assert batch.target is not None
        return int(((batch.prepared == MASK) & batch.target.mask).sum())

    def __call__(self, model: nn.Module, batch: Batch, context: Context = DONE) -> Loss:
        """Return the loss of a batch. The part `nll`, without smoothing, is for perplexity."""
        assert batch.target is not None
        masked = (batch.prepared == MASK) & batch.target.mask
        output = model(batch, batch.prepared)
        labels = batch.target.data[masked]  # (N,)
        loss, nll = SmoothedLoss.apply(output.logits, labels, self.label_smoothing)
        parts = {"nll": nll}
        if output.lengths is not None:
            length = length_nll(output.lengths, batch.target.mask.sum(1)).sum()
            loss = loss + self.length_weight * length
            parts["length"] = length.detach()
        return Loss(loss, len(labels), parts)


def masked_inputs(target: Padded, maskable: Tensor, sample: bool) -> Tensor:
    """Return the decoder inputs (B, T): targets, of which some `maskable` tokens (B, T) are MASK.

    sample: whether masks are sampled. Otherwise they depend only on the tokens of the row.
    """
    tokens = target.data.masked_fill(~target.mask, PAD)
    count = maskable.sum(1, keepdim=True)  # (B, 1)
    if sample:
        generator, device = thread_generator(), tokens.device
        order = torch.rand(tokens.shape, generator=generator, device=device)
        part = torch.rand(len(tokens), 1, generator=generator, device=device)
    else:
        order = pseudo_random(tokens)
        part = pseudo_random(tokens.masked_fill(tokens == EOS, PAD).sum(1, keepdim=True))
    number = (part * count).long().clamp(max=count - 1) + 1  # uniform in 1 ... count
    rank = order.masked_fill(~maskable, 2.0).argsort(dim=1, stable=True).argsort(1)
    return tokens.masked_fill((rank < number) & maskable, MASK)


def length_nll(scores: LengthScores, lengths: Tensor) -> Tensor:
    """Return -log p (B,) of the true lengths (B,), or of the nearest length with a class."""
    last = scores.logits.shape[1] - 1
    label = (lengths - scores.shortest).clamp(0, last)
    return F.cross_entropy(scores.logits, label, reduction="none")
