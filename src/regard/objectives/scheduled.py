"""Scheduled sampling: in training the decoder reads some of its own predictions.

B batch size, T target length, N real target tokens, V vocabulary.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, ClassVar, Literal

import torch
from pydantic import Field, field_validator
from torch import Tensor, nn

from regard.core.data_stats import DataStats
from regard.core.options import AutoSetting
from regard.data.tensors.padded import Batch, shifted
from regard.nn.dropout import StepNoise, repeatable_noise, use_step_noise
from regard.objectives.cross_entropy import CrossEntropy
from regard.objectives.decay import AnyDecay, LinearDecay
from regard.objectives.objective import DONE, Context, Loss
from regard.search.filters import sample_tokens
from regard.search.logit_masks import mask_specials


class ScheduledSampling(CrossEntropy):
    """Cross entropy with decoder inputs that are true tokens or the model's own predictions.

    Step by step (Bengio et al. 2015), each prediction depends on the inputs before it. With two
    passes (Mihaylova and Martins 2019), the predictions of a first pass over true tokens replace
    some inputs of the second; more passes repeat this (Duckworth et al. 2019). With as many passes
    as tokens, the result is that of step by step. Only the last pass has gradients; all passes
    have the same dropout masks. Inputs to replace are sampled in `prepare`.
    """

    takes: ClassVar[frozenset[str]] = frozenset({"steps"})
    kind: Literal["scheduled"] = "scheduled"  # type: ignore[assignment]
    decay: AnyDecay = Field(
        LinearDecay(), description="how the probability of the true token decays over the run"
    )
    passes: int | None = Field(
        None,
        ge=0,
        description="forward passes per batch; 0: step by step; None: 0 for recurrent decoders, "
        "otherwise 2",
    )
    mix: Literal["sample", "argmax"] = Field(
        "sample", description="which own predictions: sampled or the most probable tokens"
    )

    @field_validator("passes")
    @classmethod
    def _several(cls, value: int | None) -> int | None:
        if value == 1:
            raise ValueError("expected 0 (step by step) or at least 2")
        return value

    def propose(self, stats: DataStats, config: Any) -> Iterator[AutoSetting]:
        """Yield the number of passes once the kind of the decoder is known."""
        decoder = config.model.decoder
        if not decoder.is_auto:
            reason = "recurrent decoder" if decoder.recurrent else "the decoder trains in parallel"
            yield from self.auto_settings(reason, passes=0 if decoder.recurrent else 2)

    def prepare(self, model: nn.Module, batch: Batch, context: Context = DONE) -> Batch:
        """Return the batch with the inputs to replace, and a uniform sample per position."""
        if not model.training:
            return batch
        assert batch.target is not None
        mask = batch.target.mask
        own, uniform = torch.rand(2, *mask.shape, dtype=torch.float64).to(mask.device)
        own = (own >= self.decay.probability(context.progress)) & mask
        own[:, 0] = False  # the first input is BOS
        return batch._replace(prepared={"own": own, "uniform": uniform})

    def __call__(self, model: nn.Module, batch: Batch, context: Context = DONE) -> Loss:
        """Return the loss of a batch, and how many inputs are own predictions, or are wrong."""
        if batch.prepared is None:
            return super().__call__(model, batch, context)
        assert batch.target is not None
        own, true = batch.prepared["own"], shifted(batch.target.data)
        inputs = self.inputs(model, batch) if bool(own.any()) else None
        loss = self.loss(model, batch, inputs)
        wrong = 0.0 if inputs is None else (inputs != true)[own].sum()
        counts = {"own_inputs": own.sum(), "wrong_inputs": torch.as_tensor(wrong)}
        return replace(loss, parts=loss.parts | {k: v.double() for k, v in counts.items()})

    @torch.no_grad()
    def inputs(self, model: nn.Module, batch: Batch) -> Tensor:
        """Return the decoder inputs (B, T), with own predictions where `own` is True."""
        how = self._in_passes if self.passes else self._step_by_step
        inputs = how(model, batch)
        torch.clear_autocast_cache()  # rounded weights without gradients
        return inputs

    def _in_passes(self, model: nn.Module, batch: Batch) -> Tensor:
        """Return the decoder inputs after all passes but the last."""
        assert batch.target is not None and self.passes is not None
        inputs, mask = shifted(batch.target.data), batch.target.mask
        for _ in range(self.passes - 1):
            with repeatable_noise():
                logits = model(batch, inputs).logits  # (N, V)
            found = self.predict(logits, batch.prepared["uniform"][mask])
            inputs = _mixed(batch, torch.zeros_like(inputs).masked_scatter(mask, found))
        return inputs

    def _step_by_step(self, model: nn.Module, batch: Batch) -> Tensor:
        """Return the decoder inputs, each computed from those before it."""
        assert batch.target is not None and batch.source is not None
        module: Any = getattr(model, "module", model)  # without the wrapper of DDP
        inputs, noise = shifted(batch.target.data), StepNoise(batch.target.data.shape[1])
        own, uniform = batch.prepared["own"], batch.prepared["uniform"]
        last = int(own.any(0).nonzero().max())  # later inputs are true tokens
        with repeatable_noise():
            state = module.start(batch.source)
            for t in range(last):
                with use_step_noise(noise):
                    logits, state = module.step(inputs[:, t : t + 1], state)
                found = self.predict(logits[:, 0], uniform[:, t])
                inputs[:, t + 1] = torch.where(own[:, t + 1], found, inputs[:, t + 1])
                noise.next()
        return inputs

    def predict(self, logits: Tensor, uniform: Tensor) -> Tensor:
        """Return own predictions (N,) for logits (N, V) and uniform samples (N,)."""
        logp = logits.float().log_softmax(-1)
        mask_specials(logp)
        return logp.argmax(-1) if self.mix == "argmax" else sample_tokens(logp, uniform)


def _mixed(batch: Batch, predictions: Tensor) -> Tensor:
    """Return the decoder inputs: the prediction for the position before, where `own` is True."""
    assert batch.target is not None
    inputs, own = shifted(batch.target.data), batch.prepared["own"]
    return torch.where(own, torch.roll(predictions, 1, 1), inputs)
