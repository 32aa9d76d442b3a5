"""Minimum risk training: lower the expected cost among several outputs of the current model.

B batch size, K candidates per source, L candidate length.
"""

from typing import Literal

import torch
from pydantic import Field
from torch import nn

from regard.data.tensors.padded import Batch
from regard.objectives.candidates import pack, rewarded, search, token_logprobs
from regard.objectives.objective import DONE, Context, Loss
from regard.objectives.sequence_loss import SequenceLoss
from regard.search import Beam, Sample, Search


class MinimumRisk(SequenceLoss):
    """Minimum risk training (Shen et al. 2016; Edunov et al. 2018).

    sum_y q(y) (1 - reward(y)), with q(y) proportional to p(y)^alpha over the candidates: distinct
    samples or the n-best list of the current model, and the reference.
    """

    kind: Literal["risk"] = "risk"
    candidates: Literal["samples", "nbest"] = Field(
        "samples", description="how candidates are found: by sampling or by beam search"
    )
    alpha: float = Field(
        1.0, gt=0, description="sharpness of the distribution over candidates; 1: that of the model"
    )
    include_reference: bool = Field(True, description="the reference is one of the candidates")

    def prepare(self, model: nn.Module, batch: Batch, context: Context = DONE) -> Batch:
        """Return the batch with candidates, of which the first is the reference."""
        if context.decode is None:
            return batch
        assert batch.target is not None
        outputs = search(self.search(), batch, context, self.samples)
        tensors = pack(rewarded(outputs, batch, self.metric, context), batch.target.data)
        if not self.include_reference:  # unless it was found
            tensors["real"][:, 0] = tensors["weight"][:, 0] > 0
        return batch._replace(prepared=tensors)

    def search(self) -> Search:
        """Return the search for candidates. Call it once per batch: it has a random seed."""
        seed = int(torch.randint(2**31, ()))
        if self.candidates == "samples":
            return Sample(temperature=self.temperature, seed=seed)
        return Beam(beam=self.samples, length_norm="none", stopping="beam_full")

    def __call__(self, model: nn.Module, batch: Batch, context: Context = DONE) -> Loss:
        """Return the risk of a batch, with the cross entropy of the references mixed in."""
        found = batch.prepared
        if found is None:
            return super().__call__(model, batch, context)
        logp = token_logprobs(model, batch, found["tokens"]).sum(-1)  # (B, K)
        scores = (self.alpha * logp).masked_fill(~found["real"], float("-inf"))
        q = scores.softmax(-1)
        risk = (q * (1 - found["reward"])).sum()
        total = (1 - self.cross_entropy) * risk - self.cross_entropy * logp[:, 0].sum()
        surprise = scores.log_softmax(-1).masked_fill(~found["real"], 0.0)
        parts = {
            "reward": (found["weight"] * found["reward"]).sum(),
            "risk": risk.detach(),
            "entropy": -(q * surprise).sum().detach(),
        }
        return Loss(total, batch.rows, parts)
