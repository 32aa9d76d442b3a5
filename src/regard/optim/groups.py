"""Parameter groups: trainable weights with their weight decay and learning-rate factor."""

from collections.abc import Iterator
from typing import Any

from torch import nn

from regard.core import parallel
from regard.inputs.frontend import Embedding
from regard.models.output_layer import OutputLayer
from regard.nn.positions import Position

Factors = dict[str, float]  # learning-rate factors by parameter name; 1 if missing
Group = dict[str, Any]


def trainable(model: nn.Module) -> Iterator[tuple[str, nn.Parameter]]:
    """Return the names and weights that are not frozen. Tied weights appear once."""
    return ((name, weight) for name, weight in model.named_parameters() if weight.requires_grad)


def embedding_ids(model: nn.Module) -> set[int]:
    """Return the ids of the weights of embeddings, positional encodings and output layers."""
    tables = (Embedding, OutputLayer, Position)
    parts = (part for part in model.modules() if isinstance(part, tables))
    return {id(weight) for part in parts for weight in part.parameters()}


def hidden_matrices(model: nn.Module) -> set[str]:
    """Return the names of the matrices between the embeddings and the output layer."""
    excluded = embedding_ids(model)
    return {
        name
        for name, weight in trainable(model)
        if weight.dim() == 2 and id(weight) not in excluded and not name.startswith("head.")
    }


def is_on_cpu(model: nn.Module) -> bool:
    """Return whether all weights are on the CPU."""
    return all(weight.device.type == "cpu" for weight in model.parameters())


def is_sharded(model: nn.Module) -> bool:
    """Return whether the weights are sharded over processes."""
    return any(parallel.is_sharded(weight) for weight in model.parameters())


def groups_of(
    model: nn.Module, decay: float, factors: Factors, among: set[str] | None = None
) -> list[Group]:
    """Return a group of matrices with weight decay, and one of all other weights without decay.

    Embeddings have no decay. Weights with a learning-rate factor other than 1 have groups of their
    own. among: the names of the weights to include. None: all.
    """
    excluded = embedding_ids(model)
    groups: dict[tuple[float, float], list[nn.Parameter]] = {(decay, 1.0): [], (0.0, 1.0): []}
    for name, weight in trainable(model):
        if among is None or name in among:
            no_decay = weight.dim() < 2 or id(weight) in excluded
            key = (0.0 if no_decay else decay, factors.get(name, 1.0))
            groups.setdefault(key, []).append(weight)
    return [
        {"params": members, "weight_decay": decay, "factor": factor}
        for (decay, factor), members in groups.items()
        if members
    ]
