"""The training graph in a run folder: arrays in `graph.safetensors`, names in `graph.json`."""

from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load, save

from regard.core.errors import UserError
from regard.core.files import corrupted, read_bytes, read_fields, write_bytes, write_json
from regard.data.reading.graph import Bags, Graph, arrays_of

ARRAYS, NAMES = "graph.safetensors", "graph.json"
MAX_BYTES = 1 << 34
TYPES = {
    "name": str,
    "nodes": list[str],
    "relations": list[str],
    "texts": list[str] | None,
}


def save_graph(graph: Graph, folder: Path) -> None:
    """Write a graph into a folder."""
    tensors = {"ends": graph.ends, "kind": graph.kind}
    names = ("flat", "lengths") if isinstance(graph.features, Bags) else ("numbers",)
    tensors |= dict(zip(names, arrays_of(graph.features), strict=False))
    write_bytes(folder / ARRAYS, save({n: np.ascontiguousarray(a) for n, a in tensors.items()}))
    texts = list(graph.features) if isinstance(graph.features, tuple) else None
    tree = {"name": graph.name, "nodes": graph.nodes, "relations": graph.relations, "texts": texts}
    write_json(folder / NAMES, tree)


def load_graph(folder: Path, digest: str) -> Graph:
    """Return the graph that `save_graph` wrote; raise UserError if its content changed."""
    path = folder / ARRAYS
    name, nodes, relations, texts = read_fields(folder / NAMES, **TYPES)
    try:
        found = load(bytes(read_bytes(path, MAX_BYTES)))
    except (SafetensorError, OSError) as error:
        raise UserError(f"{path}: cannot be read: {error}", help="copy the run again") from error
    try:
        features: Any = found.get("numbers", texts)
        if "flat" in found:
            features = Bags(found["flat"], found["lengths"])
        if texts is not None:
            features = tuple(texts)
        graph = Graph(name, tuple(nodes), features, found["ends"], found["kind"], tuple(relations))
        same = graph.digest == digest
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise corrupted(path, "expected the arrays of a graph") from error
    if not same:
        raise corrupted(path, "it is not the graph of the training data")
    return graph
