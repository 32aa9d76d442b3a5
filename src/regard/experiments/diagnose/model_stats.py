"""Figures of what goes on inside the trained model: attention, gradients, dead and stuck units.

B rows, H heads, T length, S length of what is attended to, D width.
"""

import contextlib
import math
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from regard.experiments.diagnose.findings import Figures
from regard.experiments.diagnose.subject import Subject, spread
from regard.experiments.diagnose.trials import quieted
from regard.nn.capture_hooks import recording

STUCK = 0.01  # a gate this near to 0 or 1, a state this near to -1 or 1
BATCHES = 3

Found = dict[str, list[Tensor]]  # by the name of a module, something of each call
Look = Callable[[Any, Any, Any], Tensor]  # at a module, its input and its output


def inside_figures(subject: Subject) -> Figures:
    """Attention entropy by module, dead and stuck units by module, gradient by layer."""
    batches = spread(subject.batches(subject.train), BATCHES)
    model = subject.trained
    active, stuck = Found(), Found()
    with watched(model, active, stuck), recording(model) as recorded, torch.no_grad():
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
        "stuck_gates": _means(stuck),
        "gradients": gradients(subject, batches),
        "frozen": list(subject.config.training.freeze),
    }


def _means(found: dict[str, list[Tensor]]) -> dict[str, float]:
    return {name: float(torch.cat(parts).mean()) for name, parts in found.items() if parts}


@contextlib.contextmanager
def watched(model: nn.Module, active: Found, stuck: Found) -> Iterator[None]:
    """Collect the largest inputs of ReLUs and which gates are stuck, by module, in the block."""
    with contextlib.ExitStack() as hooks:
        for name, part in model.named_modules():
            if hasattr(part, "rectified") and part.activation is torch.nn.functional.relu:
                look = partial(_collect, active.setdefault(name, []), _active)
            elif isinstance(part, nn.RNNBase):
                look = partial(_collect, stuck.setdefault(name, []), _stuck)
            else:
                continue
            hooks.enter_context(part.register_forward_hook(look))
        yield


def _collect(found: list[Tensor], look: Look, part: Any, inputs: Any, output: Any) -> None:
    found.append(look(part, inputs[0], output))


def _entropy(weights: Tensor) -> Tensor | None:
    """(..., S) attention to its entropies (n,), each as a share of the largest possible; of rows
    that attend to more than one position."""
    places = (weights > 0).sum(-1)
    entropy = -(weights * weights.clamp(min=1e-12).log()).sum(-1)
    several = places > 1
    if not bool(several.any()):
        return None
    return entropy[several] / places[several].float().log()


def _active(part: Any, x: Any, output: Any) -> Tensor:
    """The largest value at each ReLU over all positions (inner,)."""
    return part.rectified(x, output).flatten(0, -2).amax(0)


def _stuck(part: nn.RNNBase, x: Tensor, output: Any) -> Tensor:
    """Which gates, or states of a plain network, are as good as shut or open (n,)."""
    states = output[0]  # of x (B, T, inputs): (B, T, D)
    if part.mode.startswith("RNN"):
        return (states.abs() > 1 - STUCK).float().flatten()
    before = torch.cat([torch.zeros_like(states[:, :1]), states[:, :-1]], 1)
    names = ("weight_ih_l0", "bias_ih_l0", "weight_hh_l0", "bias_hh_l0")
    weight, bias, inner, inner_bias = (getattr(part, name) for name in names)
    parts = (x @ weight.T + bias + before @ inner.T + inner_bias).chunk(
        weight.shape[0] // states.shape[-1], -1
    )
    gates = torch.cat([parts[i] for i in ((0, 1, 3) if part.mode == "LSTM" else (0, 1))])
    opened = gates[:, 1:].sigmoid()  # the first state is not known here
    return ((opened < STUCK) | (opened > 1 - STUCK)).float().flatten()


def gradients(subject: Subject, batches: list[Any]) -> dict[str, float]:
    """The norm of the gradient of each layer, beside the norm of its weights."""
    model = subject.trained
    if not any(p.requires_grad for p in model.parameters()):
        return {}
    twin = quieted(subject.fresh()).train()  # a GPU's recurrent layers train only in this mode
    twin.load_state_dict(model.state_dict())
    for batch in batches:
        loss = subject.loss_of(twin, batch)
        (loss.sum / max(1, loss.count)).backward()
    squares: dict[str, list[float]] = {}
    for name, weight in twin.named_parameters():
        square = 0.0 if weight.grad is None else float(weight.grad.double().square().sum())
        sums = squares.setdefault(layer_of(name), [0.0, 0.0])
        sums[0] += square
        sums[1] += float(weight.detach().double().square().sum())
    return {
        name: math.sqrt(grad / weight) if weight else math.sqrt(grad)
        for name, (grad, weight) in squares.items()
    }


def layer_of(name: str) -> str:
    """The layer that a weight belongs to: `decoder.layers.0.cross.join.weight` to its first parts.

    A number ends it, so that layers of a stack are told apart.
    """
    parts = name.split(".")[:-1]
    for place, part in enumerate(parts):
        if part.isdigit():
            return ".".join(parts[: place + 1])
    return ".".join(parts[:2]) or name
