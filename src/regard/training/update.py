"""One update of the weights: backward passes, gradient clipping and optimizer step."""

import contextlib
import math
from collections import Counter
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import Parameter
from torch.nn.utils import clip_grad_value_, clip_grads_with_norm_, get_total_norm

from regard.core import parallel
from regard.core.errors import UserError
from regard.core.threads import single_threaded_torch
from regard.data.tensors.padded import Batch
from regard.nn.fast import fast
from regard.objectives import Context
from regard.optim import gradient_noise
from regard.optim.precision import MIN_SCALE, autocast, rescale
from regard.search import Search, SearchRequest
from regard.training.run import Run
from regard.training.shards import backward


@dataclass(frozen=True)
class MicroBatch:
    """One of the batches whose gradients an update accumulates.

    number: index of the batch in the epoch. counts: False for a batch with weight 0, which only
    keeps this process in sync with the others at the end of an epoch.
    """

    batch: Batch
    number: int
    counts: bool = True


@dataclass(frozen=True)
class Update:
    """Statistics of an update.

    loss: mean per token or example. parts: named terms of the loss (nll: without label smoothing).
    norm: gradient norm before clipping. norms: gradient norm of each top-level module.
    tokens: number of tokens or examples in the mean. padding: fraction of padding.
    """

    loss: float
    parts: dict[str, float]
    norm: float
    norms: dict[str, float]
    tokens: float
    examples: int
    padding: float


def update(run: Run, micro: list[MicroBatch], lr: float, progress: float) -> Update:
    """Update the weights with the gradient over the batches of all processes; return statistics.

    micro: the batches of this process. progress: finished fraction of the run.
    """
    context = Context(
        progress, run.state.step, partial(decode, run), run.task.rewards, run.state.objective
    )
    single = parallel.world_size() == 1 and run.device.type == "cpu"
    # A batch that cannot be split is computed with torch's own threads inside each operation.
    threads = torch.get_num_threads() if single and not run.needs_batch else 1
    if not run.model.training:  # a search or a validation came before
        run.model.train()
    with single_threaded_torch() if threads > 1 else contextlib.nullcontext():
        micro = [_prepared(run, one, context) for one in micro]
        batches = [m.batch for m in micro if m.counts]
        local = sum(run.config.objective.count(batch) for batch in batches)
        count = parallel.all_reduce_sum([local])[0] or 1.0  # 1.0: avoid division by zero
        sums = _backward(run, micro, count, threads, context)
        parts = {name: value / count for name, value in sums.items()}
        loss = parts.pop("loss")
        run.state.objective = run.config.objective.advance(run.state.objective, parts)
        norms = _gradients(run, loss, count, lr)
        norm = math.hypot(*norms.values())
        if math.isfinite(norm):
            _step(run, lr)
        for optimizer in run.optimizers:
            optimizer.zero_grad()
    masks = [mask for batch in batches for mask in batch.masks]
    real, total = sum(int(mask.sum()) for mask in masks), sum(mask.numel() for mask in masks)
    rows = sum(batch.rows for batch in batches)
    examples, all_real, all_total = parallel.all_reduce_sum([rows, real, total])
    return Update(loss, parts, norm, norms, count, int(examples), 1 - all_real / all_total)


def _prepared(run: Run, one: MicroBatch, context: Context) -> MicroBatch:
    """Return the batch with what the objective prepares for its loss, e.g. sampled outputs."""
    _seed(run, one)
    return replace(one, batch=run.config.objective.prepare(run.model, one.batch, context))


def decode(run: Run, search: Search, request: SearchRequest) -> list[Any]:
    """Return the result of a search with the current model, in eval mode, without gradients."""
    run.model.eval()
    with parallel.unsharded(run.model), torch.no_grad():
        results = search.run(fast(run.model), request)
    run.model.train()
    return results


def _backward(
    run: Run, micro: list[MicroBatch], count: float, threads: int, context: Context
) -> dict[str, float]:
    """Accumulate the gradients of the loss divided by `count`; return the sum of each loss term.

    count: tokens or examples of all processes. The randomness of a batch depends only on its
    position in the run. It does not depend on earlier batches or the number of processes.
    """
    training, sums = run.config.training, Counter[str]()
    scale = run.state.loss_scale if training.precision == "float16" else 1.0
    for index, one in enumerate(micro):
        _seed(run, one)
        is_last = index == len(micro) - 1
        with parallel.gradient_sync(run.engine, is_last), autocast(training.precision, run.device):
            divisor = (
                count / parallel.world_size() / scale if one.counts else math.inf
            )  # DDP averages over processes
            batch = one.batch._replace(carry=run.carry)
            loss = backward(run.engine, run.config.objective, batch, divisor, threads, context)
            run.carry = loss.carry if run.corpus.sequential else None
        losses = {"loss": loss.sum.detach(), **loss.parts}
        sums.update({name: value * one.counts for name, value in losses.items()})
    names = sorted(sums)
    values = parallel.all_reduce_sum([float(sums[name]) for name in names])
    return dict(zip(names, values, strict=True))


def _seed(run: Run, one: MicroBatch) -> None:
    """Seed torch's generators for a batch. `torch.manual_seed` would take 100 times as long."""
    numbers = (run.config.training.seed, run.state.epoch, one.number, run.rng_stream)
    mixed = int(np.random.SeedSequence(numbers).generate_state(1)[0])
    torch.default_generator.manual_seed(mixed)
    if run.device.type == "cuda":
        torch.cuda.manual_seed(mixed)


def _gradients(run: Run, loss: float, count: float, lr: float) -> dict[str, float]:
    """Unscale (float16) and clip the gradient; return its norms before clipping, by module.

    Raise UserError if the loss or, except in float16, the gradient is not finite.
    """
    training, state = run.config.training, run.state
    trained = [(n, p) for n, p in run.named_weights() if p.grad is not None]
    half = training.precision == "float16"
    if half:
        torch._foreach_mul_(
            [p.grad for _, p in trained if p.grad is not None], 1 / state.loss_scale
        )
    norms = _norms(trained)
    norm = math.hypot(*norms.values())
    if half and math.isfinite(loss):
        _rescale(run, math.isfinite(norm))
    elif not (math.isfinite(loss) and math.isfinite(norm)):
        raise _not_finite(run, loss, norm, lr)
    weights = [p for _, p in trained]
    if math.isfinite(norm):
        gradients = [p.grad for p in weights if p.grad is not None]
        run.previous_gradients, state.noise_means = gradient_noise.measure(
            state.step + 1, gradients, run.previous_gradients, state.noise_means, count
        )
        now = norm
        if training.clip_value:
            clip_grad_value_(weights, training.clip_value)
            now = math.hypot(*_norms(trained).values())
        if training.clip_norm:
            clip_grads_with_norm_(weights, training.clip_norm, torch.tensor(now, device=run.device))
    return norms


def _norms(trained: list[tuple[str, Parameter]]) -> dict[str, float]:
    """Return the gradient norm of each top-level module."""
    parts: dict[str, list[Tensor]] = {}
    for name, parameter in trained:
        assert parameter.grad is not None
        parts.setdefault(name.split(".")[0], []).append(parameter.grad)
    values = [parallel.full_tensor(get_total_norm(gradients)) for gradients in parts.values()]
    return dict(zip(parts, torch.stack(values).tolist(), strict=True))


def _rescale(run: Run, finite: bool) -> None:
    """Update the float16 loss scale. finite: whether the gradient of this update is finite."""
    state = run.state
    state.loss_scale, state.steps_since_rescale = rescale(
        state.loss_scale, state.steps_since_rescale, finite
    )
    if state.loss_scale < MIN_SCALE:
        step = state.step + 1
        raise UserError(
            f"step {step}: float16 gradients overflow even at the smallest loss scale",
            help=divergence_help(run),
        )


def _step(run: Run, lr: float) -> None:
    """Step the optimizers, update the average of the weights, and advance the modules."""
    for optimizer in run.optimizers:
        for group in optimizer.param_groups:
            group["lr"] = lr * group["factor"]
        optimizer.step()
    run.average.step(run.weights())
    advance(run)


def advance(run: Run) -> None:
    """Call `advance` of the modules that change with each update, such as random features.

    Their random generators depend only on the seed and the step, so that a run can be resumed.
    """
    step = run.state.step + 1
    for number, part in enumerate(run.advancing):
        mixed = np.random.SeedSequence((run.config.training.seed, step, number)).generate_state(1)
        generator = torch.Generator().manual_seed(int(mixed[0]))
        part.advance(step, generator)


def _not_finite(run: Run, loss: float, norm: float, lr: float) -> UserError:
    """Return the error for a loss or a gradient that is not finite."""
    what = "loss" if not math.isfinite(loss) else "gradient"
    return UserError(
        f"step {run.state.step + 1}: {what} is not finite (loss {loss:g}, gradient norm {norm:g}, "
        f"lr {lr:.2g})",
        note="the update was not applied; checkpoints are intact",
        help=divergence_help(run),
    )


def divergence_help(run: Run) -> str:
    """Return the help text for diverged training: settings to try."""
    config = run.config.training
    if config.lr is None:  # closed form
        return ""
    clip = f", or training.clip_norm=1 (now {config.clip_norm:g})"
    return (
        f"try --set training.lr={config.lr / 3:.1g} (now {config.lr:g}), a longer "
        f"training.schedule.warmup{'' if 0 < config.clip_norm <= 1 else clip}"
    )
