"""Which weights an optimizer moves, in groups with their own decay and share of the rate."""

from collections.abc import Iterator
from typing import Any

from torch import nn

from regard.core import parallel
from regard.inputs.frontend import Embedding
from regard.models.output_layer import OutputLayer
from regard.nn.positions import LearnedPosition

Factors = dict[str, float]  # by name: the share of the learning rate, where it is not 1
Group = dict[str, Any]


def trained(model: nn.Module) -> Iterator[tuple[str, nn.Parameter]]:
    """The weights that are not frozen, by name; tied ones once."""
    return ((name, weight) for name, weight in model.named_parameters() if weight.requires_grad)


def embedded(model: nn.Module) -> set[int]:
    """The ids of the weights of embeddings and learned places, and of heads tied to one."""
    tables = (Embedding, OutputLayer, LearnedPosition)
    parts = (part for part in model.modules() if isinstance(part, tables))
    return {id(weight) for part in parts for weight in part.parameters()}


def hidden_matrices(model: nn.Module) -> set[str]:
    """The names of the matrices between the embeddings and the output layer."""
    spared = embedded(model)
    return {
        name
        for name, weight in trained(model)
        if weight.dim() == 2 and id(weight) not in spared and not name.startswith("head.")
    }


def on_cpu(model: nn.Module) -> bool:
    """Whether the weights lie on the CPU."""
    return all(weight.device.type == "cpu" for weight in model.parameters())


def divided(model: nn.Module) -> bool:
    """Whether each process has only parts of the weights."""
    return any(parallel.is_sharded(weight) for weight in model.parameters())


def groups_of(
    model: nn.Module, decay: float, factors: Factors, among: set[str] | None = None
) -> list[Group]:
    """Matrices, which decay, and everything else (and embeddings), which does not.

    Weights with another share of the learning rate have groups of their own. among: only these.
    """
    spared = embedded(model)
    groups: dict[tuple[float, float], list[nn.Parameter]] = {(decay, 1.0): [], (0.0, 1.0): []}
    for name, weight in trained(model):
        if among is None or name in among:
            plain = weight.dim() < 2 or id(weight) in spared
            key = (0.0 if plain else decay, factors.get(name, 1.0))
            groups.setdefault(key, []).append(weight)
    return [
        {"params": members, "weight_decay": decay, "factor": factor}
        for (decay, factor), members in groups.items()
        if members
    ]
