"""Policy gradients: REINFORCE with a baseline, and MIXER.

B batch size, K candidates per source, L candidate length.
"""

from collections.abc import Mapping
from typing import Literal

import torch
from pydantic import Field
from torch import Tensor, nn

from regard.data.tensors.padded import Batch
from regard.objectives.candidates import pack, references, rewarded, search, token_logprobs
from regard.objectives.objective import DONE, Context, Loss
from regard.objectives.sequence_loss import SequenceLoss
from regard.search import Beam, Sample

BASELINE_DECAY = 0.99  # of the moving average of rewards, per update


class Reinforce(SequenceLoss):
    """REINFORCE (Williams 1992): raise the probability of samples with more reward than expected.

    -mean_s (reward(y_s) - baseline) log p(y_s). The baseline lowers the variance and does not
    depend on the sample: mean of the other samples (Kool et al. 2019), reward of the greedy output
    (self-critical, Rennie et al. 2017), or moving average of the rewards of earlier updates.
    """

    kind: Literal["reinforce"] = "reinforce"
    baseline: Literal["mean", "greedy", "moving", "none"] = Field(
        "mean",
        description="expected reward that is subtracted: mean of the other samples of the source, "
        "reward of the greedy output, moving average over updates, or none",
    )

    def prepare(self, model: nn.Module, batch: Batch, context: Context = DONE) -> Batch:
        """Return the batch with samples and baselines; the first candidate is the reference."""
        if context.decode is None:
            return batch
        assert batch.target is not None
        forced = self.forced(batch, context)  # (B,)
        found = rewarded(self._samples(batch, context, forced), batch, self.metric, context)
        tensors = pack(found, batch.target.data) | {"forced": forced}
        return batch._replace(
            prepared=tensors | {"baseline": self._baseline(batch, context, tensors)}
        )

    def forced(self, batch: Batch, context: Context) -> Tensor:
        """Return how many tokens of each reference (B,) the samples start with, EOS included."""
        assert batch.target is not None
        return batch.target.mask.new_zeros(batch.rows, dtype=torch.long)

    def _samples(
        self, batch: Batch, context: Context, forced: Tensor
    ) -> list[list[tuple[int, ...]]]:
        """Return samples of each row that start with tokens of the reference."""
        assert batch.target is not None
        true, count = references(batch), forced.tolist()
        if bool((forced == batch.target.mask.sum(1)).all()):
            return [[tuple(row)] for row in true]
        prefixes = [row[:n] for row, n in zip(true, count, strict=True)] if any(count) else ()
        sample = Sample(temperature=self.temperature, seed=int(torch.randint(2**31, ())))
        return search(sample, batch, context, self.samples, prefixes)

    def _baseline(self, batch: Batch, context: Context, tensors: dict[str, Tensor]) -> Tensor:
        """Return the baseline of each candidate (B, K)."""
        reward, weight = tensors["reward"], tensors["weight"]
        if self.baseline == "mean" and self.samples > 1:
            total = (weight * reward).sum(1, keepdim=True) * self.samples
            return (total - reward) / (self.samples - 1)
        if self.baseline == "greedy":
            greedy = search(Beam(beam=1), batch, context)
            rows = pack(rewarded(greedy, batch, self.metric, context), reward)
            return (rows["weight"] * rows["reward"]).sum(1, keepdim=True).expand_as(reward)
        moving = context.state.get("reward", 0.0) if self.baseline == "moving" else 0.0
        return torch.full_like(reward, moving)

    def __call__(self, model: nn.Module, batch: Batch, context: Context = DONE) -> Loss:
        """Return the loss of a batch, with the cross entropy of the references mixed in."""
        found = batch.prepared
        if found is None:
            return super().__call__(model, batch, context)
        logp = token_logprobs(model, batch, found["tokens"])  # (B, K, L)
        positions = torch.arange(logp.shape[-1], device=logp.device)
        sampled = positions >= found["forced"][:, None]  # (B, L)
        own, true = (logp * sampled[:, None]).sum(-1), logp[:, 0]
        gain = found["weight"] * (found["reward"] - found["baseline"])
        loss = -(gain * own).sum() - (true * ~sampled).sum()
        total = (1 - self.cross_entropy) * loss - self.cross_entropy * true.sum()
        parts = {
            "reward": (found["weight"] * found["reward"]).sum(),
            "baseline": (found["weight"] * found["baseline"]).sum(),
            "entropy": -(found["weight"] * own).sum().detach(),
        }
        return Loss(total, batch.rows, parts)

    def advance(self, state: Mapping[str, float], parts: Mapping[str, float]) -> dict[str, float]:
        """Return the moving average of rewards."""
        if self.baseline != "moving":
            return {}
        before = state.get("reward", parts["reward"])
        return {"reward": BASELINE_DECAY * before + (1 - BASELINE_DECAY) * parts["reward"]}


class Mixer(Reinforce):
    """MIXER (Ranzato et al. 2016): from cross entropy to REINFORCE, the last tokens first.

    The model reads the first tokens of the reference, with cross entropy, and samples the rest,
    with REINFORCE. The sampled part grows linearly from `start` to `end` of the run.
    """

    kind: Literal["mixer"] = "mixer"  # type: ignore[assignment]
    start: float = Field(
        0.0, ge=0, le=1, description="fraction of the run at which the first token is sampled"
    )
    end: float = Field(
        0.75, ge=0, le=1, description="fraction of the run at which all tokens are sampled"
    )

    def sampled_fraction(self, progress: float) -> float:
        """Return the fraction of the tokens of an output that is sampled."""
        if progress >= self.end:
            return 1.0
        return max(0.0, (progress - self.start) / (self.end - self.start))

    def forced(self, batch: Batch, context: Context) -> Tensor:
        """Return how many tokens of each reference (B,) the samples start with, EOS included."""
        assert batch.target is not None
        lengths = batch.target.mask.sum(1)
        return lengths - (lengths * self.sampled_fraction(context.progress)).ceil().long()

    def __call__(self, model: nn.Module, batch: Batch, context: Context = DONE) -> Loss:
        """Return the loss of a batch, and the mean fraction of sampled tokens."""
        loss = super().__call__(model, batch, context)
        if batch.prepared is not None:
            assert batch.target is not None
            lengths = batch.target.mask.sum(1)
            loss.parts["sampled_fraction"] = (1 - batch.prepared["forced"] / lengths).sum()
        return loss
