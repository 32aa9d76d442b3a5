"""Graphs as Python values: arrays of features and edges, or a dict with nodes and edges."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from regard.core.errors import UserError
from regard.data.reading.graph import Bags, Features, Graph, NodeSet
from regard.data.reading.read import Pair
from regard.data.sources.graphs import held_out_nodes
from regard.estimators.rows import to_rows
from regard.inputs.graph_json import features_of, make_graph


def is_graph(value: Any) -> bool:
    """Return whether a value is a graph: a `Graph`, or a dict with nodes and edges."""
    return isinstance(value, Graph) or (isinstance(value, Mapping) and "edges" in value)


def to_graph(value: Any, number: int = 1, directed: bool = False) -> Graph:
    """Return a dict {"nodes": features, "edges": pairs of nodes} as a graph."""
    if isinstance(value, Graph):
        return value
    if set(value) != {"nodes", "edges"}:
        raise UserError(f"example {number}: expected the keys nodes and edges, found {[*value]}")
    try:
        return graph_of_arrays(value["nodes"], value["edges"], f"graph {number}", directed)
    except UserError as error:
        raise error.at(f"example {number}") from error


def graph_of_arrays(
    features: Any, edges: Any, name: str = "graph", directed: bool = False
) -> Graph:
    """Return a graph. The nodes are named by their positions, from 0.

    features: an array (N, F), a sparse matrix of zeros and ones, lists of indices, or texts.
    edges: (E, 2) positions of nodes, or (E, 3) with a relation.
    """
    found = to_features(features)
    if hasattr(edges, "__array__"):
        edges = np.asarray(edges).tolist()
    if not isinstance(edges, Sequence):
        raise UserError(f"edges: expected an array (E, 2), found {type(edges).__name__}")
    rows = [
        tuple(np.asarray(edge).tolist()) if hasattr(edge, "__array__") else edge for edge in edges
    ]
    return make_graph(name, [str(i) for i in range(len(found))], found, rows, directed)


def to_features(features: Any) -> Features:
    """Return the features of nodes: numbers (N, F), bags of indices, or texts.

    Lists of whole numbers of equal length may be either; they are an array of integers.
    """
    if hasattr(features, "tocsr"):
        matrix = features.tocsr()
        matrix.sum_duplicates()
        if not np.isin(matrix.data, (0, 1)).all():
            raise UserError(
                "features: expected a sparse matrix of zeros and ones, found other numbers",
                help="pass features.toarray()",
            )
        matrix.eliminate_zeros()
        lengths = np.diff(matrix.indptr).astype(np.int64)
        return Bags(matrix.indices.astype(np.int64), lengths)
    rows = to_rows(features, "features")
    if not rows:
        raise UserError("features: expected at least one node")
    if all(isinstance(row, str) for row in rows):
        return tuple(rows)
    lists = [np.asarray(row).tolist() if hasattr(row, "__array__") else row for row in rows]
    if hasattr(features, "__array__") or not _are_whole(lists):
        return features_of(lists, "numbers")
    if len(set(map(len, lists))) > 1:
        return features_of(lists, "bag")
    return np.asarray(features_of(lists, "numbers")).astype(np.int64)


def _are_whole(rows: list[Any]) -> bool:
    """Return whether rows are lists of whole numbers."""
    return all(
        isinstance(row, list | tuple) and all(isinstance(one, int | np.integer) for one in row)
        for row in rows
    )


def node_pairs(graph: Graph, labels: Any, dev: Any) -> tuple[list[Pair], list[Pair]]:
    """Return a graph with the labels for training, and with those for validation.

    labels, dev: a label per node; None, or NaN, if a node has none. Whole floats are the same
    labels as integers, since arrays with NaN have floats. dev None: hold out a tenth.
    """
    given = to_labels(graph, labels, "y")
    if dev is not None:
        return [Pair(graph, given, 1)], [Pair(graph, to_labels(graph, dev, "dev"), 1)]
    held = held_out_nodes(graph.nodes, [label is not None for label in given])
    both = zip(given, held, strict=True)
    parts = [(None if out else label, label if out else None) for label, out in both]
    train, rest = zip(*parts, strict=True)
    return [Pair(graph, train, 1)], [Pair(graph, rest, 1)]


def to_labels(graph: Graph, labels: Any, name: str) -> tuple[str | None, ...]:
    """Return a label, or None, per node."""
    rows = to_rows(labels, name)
    if len(rows) != len(graph):
        raise UserError(
            f"{name}: expected a label or None per node ({len(graph)}), found {len(rows)}"
        )
    missing = [row is None or (isinstance(row, float) and np.isnan(row)) for row in rows]
    if all(missing):
        raise UserError(f"{name}: no node has a label")
    return tuple(
        None if none else str(int(row) if is_whole(row) else row)
        for none, row in zip(missing, rows, strict=True)
    )


def is_whole(label: Any) -> bool:
    """Return whether a label is a whole number, also as a float."""
    if isinstance(label, float | np.floating):
        return float(label).is_integer()
    return isinstance(label, int | np.integer) and not isinstance(label, bool)


def nodes_of(graph: Graph, nodes: Any) -> NodeSet:
    """Return nodes of a graph by position; None: all."""
    found = range(len(graph)) if nodes is None else to_rows(nodes, "nodes")
    for node in found:
        if not isinstance(node, int | np.integer) or not 0 <= node < len(graph):
            raise UserError(f"nodes: expected positions from 0 to {len(graph) - 1}, found {node!r}")
    return NodeSet(graph, tuple(int(node) for node in found))
