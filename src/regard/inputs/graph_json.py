"""A small graph as one line of JSON: {"nodes": [...], "edges": [[0, 1], ...]}.

A node is its features: indices or numbers as a list, or a text. With a name, it is an object
{"id": "a", "features": ...}. An edge is a list of two nodes, by name or by number from 0, and
perhaps a relation.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from regard.core.errors import UserError
from regard.core.files import parse_json
from regard.data.reading.columns import number
from regard.data.reading.graph import Bags, Features, Graph
from regard.data.reading.media import show_names
from regard.data.reading.node_features import MAX_INDEX

EXAMPLE = '{"nodes": [[0, 5], [3]], "edges": [[0, 1]]}'
MAX_NODES, MAX_EDGES = 100_000, 1_000_000


def graph_of_json(text: str, kind: str, directed: bool) -> Graph:
    """Return the graph in a line of JSON. kind: of the features."""
    try:
        tree = parse_json(text)
    except ValueError as error:
        raise UserError(f"invalid JSON: {error}", help=f"expected {EXAMPLE}") from None
    if not isinstance(tree, dict) or not set(tree) <= {"nodes", "edges"} or "nodes" not in tree:
        raise UserError("expected an object with the keys nodes and edges", help=f"as {EXAMPLE}")
    nodes, edges = tree["nodes"], tree.get("edges", [])
    for name, value, limit in (("nodes", nodes, MAX_NODES), ("edges", edges, MAX_EDGES)):
        if not isinstance(value, list) or len(value) > limit:
            raise UserError(f"{name}: expected a list of at most {limit:,}")
    if not nodes:
        raise UserError("nodes: expected at least one node")
    names, rows = zip(*(_node(index, node) for index, node in enumerate(nodes)), strict=True)
    if len(set(names)) < len(names):
        raise UserError("nodes: expected different names")
    return make_graph("graph", names, features_of(rows, kind), edges, directed)


def _node(index: int, node: Any) -> tuple[str, Any]:
    if not isinstance(node, dict):
        return str(index), node
    if set(node) != {"id", "features"} or not isinstance(node["id"], str | int):
        raise UserError(f"nodes.{index}: expected the keys id and features")
    return str(node["id"]), node["features"]


def features_of(rows: Sequence[Any], kind: str) -> Features:
    """Return lists of indices, lists of numbers, or texts, as features."""
    if kind == "text":
        for index, row in enumerate(rows):
            if not isinstance(row, str):
                raise UserError(f"nodes.{index}: expected a text, found {row!r:.60}")
        return tuple(rows)
    for index, row in enumerate(rows):
        if not isinstance(row, list | tuple) or any(number(one) is None for one in row):
            raise UserError(f"nodes.{index}: expected a list of numbers, found {row!r:.60}")
        if kind == "numbers" and len(row) != len(rows[0]):
            raise UserError(f"nodes.{index}: expected {len(rows[0])} numbers, found {len(row)}")
        if kind == "bag" and any(one != int(one) or not 0 <= one <= MAX_INDEX for one in row):
            raise UserError(f"nodes.{index}: expected indices from 0 to {MAX_INDEX:,}")
    if kind == "numbers":
        return np.array(rows, np.float64).reshape(len(rows), -1)
    lengths = np.array([len(row) for row in rows], np.int64)
    return Bags(np.array([int(one) for row in rows for one in row], np.int64), lengths)


def make_graph(
    name: str, names: Sequence[str], features: Features, edges: Sequence[Any], directed: bool
) -> Graph:
    """Return a graph of edges by name or position. Loops and repeated edges count once."""
    positions = {name: index for index, name in enumerate(names)}
    found: dict[tuple[int, int, int], None] = {}
    relations: dict[str, int] = {}
    for index, edge in enumerate(edges):
        if not isinstance(edge, list | tuple) or len(edge) not in (2, 3):
            raise UserError(f"edges.{index}: expected two nodes, found {edge!r:.60}")
        a, b = (_position(end, positions, index) for end in edge[:2])
        kind = relations.setdefault(str(edge[2]), len(relations)) if len(edge) == 3 else 0
        if a != b:
            found[(a, b, kind) if directed else (min(a, b), max(a, b), kind)] = None
    array = np.array(list(found), np.int64).reshape(-1, 3)
    return Graph(name, tuple(names), features, array[:, :2].T, array[:, 2], tuple(relations))


def _position(end: Any, positions: dict[str, int], index: int) -> int:
    if isinstance(end, bool) or str(end) not in positions:
        raise UserError(
            f"edges.{index}: no node {end!r:.60}: expected one of {show_names(positions)}"
        )
    return positions[str(end)]
