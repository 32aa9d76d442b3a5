"""Statistics of model internals: attention entropy, gradients, dead units, saturated gates.

Shapes: B examples, T positions, S attended positions, D width of a layer.
"""

import contextlib
import math
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from regard.experiments.diagnose.diagnosed_run import DiagnosedRun, spaced
from regard.experiments.diagnose.findings import Statistics
from regard.experiments.diagnose.trials import without_dropout
from regard.nn.capture_hooks import recording

SATURATED = 0.01  # distance of a gate from 0 or 1, or of a plain RNN's state from -1 or 1
BATCHES = 3

Collected = dict[str, list[Tensor]]  # by module name, one tensor per call
Reader = Callable[[Any, Any, Any], Tensor]  # reads a tensor from a module, its input and its output


def internal_statistics(subject: DiagnosedRun) -> Statistics:
    """Return attention entropy, dead units and saturated gates by module; gradients by layer."""
    batches = spaced(subject.batches(subject.train), BATCHES)
    model = subject.trained
    active, saturated = Collected(), Collected()
    with activity_hooks(model, active, saturated), recording(model) as recorded, torch.no_grad():
        for batch in batches:
            subject.loss_of(model, batch)
    spread_out = {name: map(_entropy, calls) for name, calls in recorded.attention.calls.items()}
    entropies = {name: [e for e in each if e is not None] for name, each in spread_out.items()}
    dead = {
        name: float((torch.stack(parts).amax(0) <= 0).float().mean())
        for name, parts in active.items()
        if parts
    }
    return {
        "attention_entropy": _means(entropies),
        "dead_units": dead,
        "saturated_gates": _means(saturated),
        "gradients": gradients(subject, batches),
        "frozen": list(subject.config.training.freeze),
    }


def _means(found: dict[str, list[Tensor]]) -> dict[str, float]:
    return {name: float(torch.cat(parts).mean()) for name, parts in found.items() if parts}


@contextlib.contextmanager
def activity_hooks(model: nn.Module, active: Collected, saturated: Collected) -> Iterator[None]:
    """Record maximum ReLU inputs and saturated gates by module, inside the block."""
    with contextlib.ExitStack() as hooks:
        for name, part in model.named_modules():
            if hasattr(part, "rectified") and part.activation is torch.nn.functional.relu:
                reader = partial(_collect, active.setdefault(name, []), _active)
            elif isinstance(part, nn.RNNBase):
                reader = partial(_collect, saturated.setdefault(name, []), _saturated)
            else:
                continue
            hooks.enter_context(part.register_forward_hook(reader))
        yield


def _collect(found: list[Tensor], reader: Reader, part: Any, inputs: Any, output: Any) -> None:
    found.append(reader(part, inputs[0], output))


def _entropy(weights: Tensor) -> Tensor | None:
    """Return the entropy (n,) of each row of attention weights (..., S), divided by its maximum.

    Rows that attend to a single position are skipped. Return None if no row remains.
    """
    positions = (weights > 0).sum(-1)
    entropy = -(weights * weights.clamp(min=1e-12).log()).sum(-1)
    several = positions > 1
    if not bool(several.any()):
        return None
    return entropy[several] / positions[several].float().log()


def _active(part: Any, x: Any, output: Any) -> Tensor:
    """Return the maximum (units,) over all positions; a unit is dead if it is never positive."""
    return part.rectified(x, output).flatten(0, -2).amax(0)


def _saturated(part: nn.RNNBase, x: Tensor, output: Any) -> Tensor:
    """Return 1 for each saturated gate value, otherwise 0 (n,).

    A plain RNN has no gates, so its hidden states are used.
    """
    states = output[0]  # (B, T, D), for x (B, T, inputs)
    if part.mode.startswith("RNN"):
        return (states.abs() > 1 - SATURATED).float().flatten()
    before = torch.cat([torch.zeros_like(states[:, :1]), states[:, :-1]], 1)
    names = ("weight_ih_l0", "bias_ih_l0", "weight_hh_l0", "bias_hh_l0")
    weight, bias, inner, inner_bias = (getattr(part, name) for name in names)
    parts = (x @ weight.T + bias + before @ inner.T + inner_bias).chunk(
        weight.shape[0] // states.shape[-1], -1
    )
    gates = torch.cat([parts[i] for i in ((0, 1, 3) if part.mode == "LSTM" else (0, 1))])
    gate_values = gates[:, 1:].sigmoid()  # the initial state is unknown: skip the first position
    return ((gate_values < SATURATED) | (gate_values > 1 - SATURATED)).float().flatten()


def gradients(subject: DiagnosedRun, batches: list[Any]) -> dict[str, float]:
    """Return the gradient norm of each layer, divided by the norm of the layer's weights."""
    model = subject.trained
    if not any(p.requires_grad for p in model.parameters()):
        return {}
    copy = without_dropout(subject.new_model()).train()  # cuDNN needs train mode for backward
    copy.load_state_dict(model.state_dict())
    for batch in batches:
        loss = subject.loss_of(copy, batch)
        (loss.sum / max(1, loss.count)).backward()
    squares: dict[str, list[float]] = {}
    for name, weight in copy.named_parameters():
        square = 0.0 if weight.grad is None else float(weight.grad.double().square().sum())
        sums = squares.setdefault(layer_of(name), [0.0, 0.0])
        sums[0] += square
        sums[1] += float(weight.detach().double().square().sum())
    return {
        name: math.sqrt(grad / weight) if weight else math.sqrt(grad)
        for name, (grad, weight) in squares.items()
    }


def layer_of(name: str) -> str:
    """Return the layer of a weight: `decoder.layers.0` for `decoder.layers.0.cross.join.weight`."""
    parts = name.split(".")[:-1]
    for position, part in enumerate(parts):
        if part.isdigit():
            return ".".join(parts[: position + 1])
    return ".".join(parts[:2]) or name
