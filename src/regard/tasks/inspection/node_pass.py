"""The forced pass over a neighborhood of a graph and the labels of some of its nodes.

Shapes: n copies of the graph, S nodes that are computed, R nodes whose labels are explained, C
labels.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from torch import Tensor, nn

from regard.core.errors import UserError
from regard.core.suggest import suggest_names
from regard.data.reading.graph import Graph, NodeSet
from regard.data.tensors.padded import Batch, Padded
from regard.nn.kernels.kernel import Kernel
from regard.tasks.inspection.batched_pass import BatchedPass
from regard.tasks.inspection.forced_pass import (
    ForcedOutput,
    InspectionRequest,
    TokenAxis,
    TokenizedText,
)
from regard.tasks.inspection.notes import Note

MAX_COMPUTED = 2_000  # nodes: attention maps have all pairs of them
MAX_HOPS = 2  # edges from an explained node to one that is shown


@dataclass(frozen=True, kw_only=True)
class NodePass(BatchedPass):
    """The forced pass over a graph with fixed labels of its first R nodes."""

    source: Padded  # (1, S)
    shown: int  # the first nodes of S, which are shown

    @property
    def row_axis(self) -> TokenAxis:
        return "one" if len(self.tokens) == 1 else "target"

    @property
    def kept(self) -> int:
        """The number of first positions that are shown."""
        return self.shown

    def logits(self, copies: int) -> Tensor:
        """Return the logits (n, R, C) of the explained nodes."""
        outputs = self.request.model(Batch(self.source.copies(copies)))
        logits: Tensor = outputs.logits[:, : len(self.tokens)].float()
        return logits

    def lengths(self) -> tuple[int, int]:
        return len(self.tokens), self.source.data.shape[1]


def node_pass(request: InspectionRequest) -> NodePass:
    """Return the forced pass over the nodes of a source and their neighbors."""
    task, source = request.task, request.source
    graph, asked = (source.graph, source.at) if isinstance(source, NodeSet) else (source, None)
    asked = tuple(range(len(graph))) if asked is None else asked
    request.check_length("text", len(asked), "pass fewer nodes")
    near, shown, notes = _neighborhood(request, graph, asked)
    part = graph.take(near)
    labels = _labels(request, part, len(asked))
    forced_pass = NodePass(
        request=request,
        source=task.source.encode([part]).all().to(request.device),
        shown=shown,
        tokens=tuple(task.tag_ids[label] for label in labels),
    )
    names = [graph.nodes[i] for i in asked]
    output = ForcedOutput(
        source=TokenizedText(" ".join(names), part.nodes[:shown]),
        target=TokenizedText(" ".join(labels), tuple(labels)),
        steps=forced_pass.steps(task.tags.__getitem__),
        forced=request.forced,
        score=forced_pass.score(),
        notes=tuple(notes),
        graph=_drawn(request, part.take(np.arange(shown)), len(asked)),
    )
    return replace(forced_pass, output=output)


def _neighborhood(
    request: InspectionRequest, graph: Graph, asked: Sequence[int]
) -> tuple[np.ndarray, int, list[Note]]:
    """Return the nodes to compute, explained nodes first; how many to show; and notes."""
    notes: list[Note] = []
    hops = _hops(request.model.encoder)
    near = graph.around(asked, len(graph) if hops is None else hops)
    if hops is None:
        near = np.concatenate([near, np.setdiff1d(np.arange(len(graph)), near)])
    if len(near) > MAX_COMPUTED:
        notes.append(Note("graph.cut", nodes=len(near), limit=MAX_COMPUTED))
        near = near[: max(MAX_COMPUTED, len(asked))]
    inside = len(graph.around(asked, MAX_HOPS))
    shown = min(inside, len(near), max(request.max_tokens, len(asked)))
    if shown < inside:
        notes.append(Note("graph.shown", nodes=inside, limit=shown))
    return near, shown, notes


def _hops(encoder: nn.Module) -> int | None:
    """Return how many edges away the nodes are that change a prediction; None: all nodes do.

    One edge more than the encoder has layers, since the degree of a node counts too.
    """
    if not all(part.local for part in encoder.modules() if isinstance(part, Kernel)):
        return None
    layers: Any = getattr(encoder, "layers", ())
    return len(layers) + 1


def _labels(request: InspectionRequest, part: Graph, count: int) -> list[str]:
    """Return the predicted or the given labels of the first nodes."""
    task = request.task
    if request.target is None:
        (found,) = request.predictor.predict([NodeSet(part, tuple(range(count)))])
        return list(found.value)
    labels = [request.target] if count == 1 else request.target.split()
    if len(labels) != count:
        raise UserError(f"target: expected {count} labels, one per node, found {len(labels)}")
    for label in labels:
        if label not in task.tag_ids:
            raise UserError(f"target: unknown label {label!r}{suggest_names(label, task.tags)}")
    return labels


def _drawn(request: InspectionRequest, part: Graph, count: int) -> dict[str, Any]:
    """Return the shown graph, ready for JSON: nodes, edges and the predicted label of each node."""
    (found,) = request.predictor.predict([part])
    relations = [part.relations[kind] for kind in part.kind] if part.relations else []
    return {
        "nodes": list(part.nodes),
        "edges": part.ends.T.tolist(),
        "relations": relations,
        "labels": list(found.value),
        "explained": count,
    }
