"""Read graphs: a table of nodes and a table of edges.

N nodes, E edges.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from regard.core.errors import UserError
from regard.core.formatting import count_noun
from regard.data.reading.columns import TARGETS
from regard.data.reading.graph import Features, Graph, take_features
from regard.data.reading.graph_edges import read_edges
from regard.data.reading.graph_tables import (
    NODE_NAMES,
    Table,
    is_header,
    read_table,
)
from regard.data.reading.lines import raise_bad_lines, stem
from regard.data.reading.node_features import read_features
from regard.data.reading.pair_format import Problems, Row

NO_LABEL = ("", "?", "-", "none", "null", "nan", "na", "n/a")
MAX_LISTED = 8  # columns of features in a note


class NodeColumns(NamedTuple):
    """The columns that the user passed, by side; None: by the header, or by position."""

    id: str | None = None
    source: str | None = None
    target: str | None = None
    split: str | None = None
    graph: str | None = None


class Reading(NamedTuple):
    """How graphs are read. features: their kind. directed: whether the direction of edges counts.

    labeled: whether a column of labels or numbers is needed.
    """

    features: str | None = None
    directed: bool = False
    labeled: bool = True

    @classmethod
    def of(cls, options: Any) -> Reading:
        """Return how the options of an input read graphs; defaults if it is another input."""
        features, directed = (getattr(options, name, None) for name in ("features", "directed"))
        return cls(features, bool(directed))


@dataclass
class GraphData:
    """Graphs with the label of each node, or of each graph, and its split.

    labels: per node of the table; "" if unlabeled. graph: index of the graph of each node.
    """

    path: str
    graphs: list[Graph]
    labels: list[str]
    splits: list[str]
    lines: list[int]
    graph: np.ndarray
    notes: list[str] = field(default_factory=list)

    @property
    def name(self) -> str:
        """The name of the data."""
        return stem(self.path)


def read_graphs(nodes: str, edges: str, columns: NodeColumns, reading: Reading) -> GraphData:
    """Return the graphs of a table of nodes and a table of edges."""
    if nodes == edges == "-":
        raise UserError("standard input can be read only once: expected files for nodes and edges")
    table = read_table(nodes, "a row per node")
    chosen, header = _choose(table, columns, reading.labeled)
    rows = table.body(header)
    lines = [line for line, _ in rows]
    names = _names(table.path, rows, chosen["id"][0])
    if not chosen["source"]:
        raise UserError(f"{table.path}: no column of features", help="choose with --source-column")
    cells = [[cells[at] for at in chosen["source"]] for _, cells in rows]
    features = read_features(table.path, lines, cells, reading.features, table.notes)
    found = {
        side: [cells[chosen[side][0]].strip() if chosen[side] else "" for _, cells in rows]
        for side in ("target", "split", "graph")
    }
    if columns.split:
        bad = [
            (n, "expected a split, found nothing")
            for n, s in zip(lines, found["split"], strict=True)
            if not s
        ]
        raise_bad_lines(table.path, bad)
    labels = ["" if label.lower() in NO_LABEL else label for label in found["target"]]
    groups, group_names = _groups(table.path, lines, found["graph"], bool(columns.graph))
    ends, kind, relations, notes = read_edges(edges, names, groups, reading.directed)
    lone = len(names) - len(np.unique(ends))
    if lone:
        notes.append(f"{count_noun(lone, 'node')} without edges")
    graphs = _split(stem(nodes), (names, features, ends, kind, relations), groups, group_names)
    return GraphData(nodes, graphs, labels, found["split"], lines, groups, [*table.notes, *notes])


def _choose(
    table: Table, columns: NodeColumns, labeled: bool
) -> tuple[dict[str, tuple[int, ...]], bool]:
    """Return the column of each side, and whether the first row is a header."""
    found: dict[str, tuple[int, ...]] = {}
    named = False
    for side, column in columns._asdict().items():
        if side == "target" and not labeled and not table.has(column):
            continue  # a column of the training data, which new nodes lack
        if column is not None:
            found[side], is_named = table.column(side, column)
            named = named or is_named
    if "id" not in found:
        known = table.known(NODE_NAMES)
        named = named or known is not None
        found["id"] = (known or 0,)
    if "target" not in found and labeled:
        known = table.known(TARGETS)
        if known is None:
            raise UserError(
                f"{table.path}: which column has the labels? found {len(table.first[1])} columns",
                help="choose with --target-column",
            )
        found["target"], named = (known,), True
    used = {at for side, indices in found.items() if side != "source" for at in indices}
    for side, indices in found.items():
        if side != "source" and len(indices) > 1:
            raise UserError(f"--{side}-column {getattr(columns, side)}: expected one column")
    rest = tuple(at for at in range(len(table.first[1])) if at not in used)
    found.setdefault("source", rest)
    for at in found["source"]:
        if at in used:
            raise UserError(
                f"{table.path}: column {at + 1} has the features and something else",
                help="choose with --source-column, --target-column, --id-column and --split-column",
            )
    header = named or table.keyed or is_header(table, found)
    sides = ("id", "source", "target", "split", "graph")
    shown = {
        "features" if side == "source" else side: " + ".join(str(at + 1) for at in found[side])
        for side in sides
        if side in found and len(found[side]) <= MAX_LISTED
    }
    table.notes.append("columns: " + ", ".join(f"{side} {at}" for side, at in shown.items()))
    return {side: found.get(side, ()) for side in sides}, header


def _names(path: str, rows: list[Row], column: int) -> dict[str, int]:
    """Return the positions of the nodes by name; raise UserError if two have one name."""
    names: dict[str, int] = {}
    problems: Problems = []
    for line, cells in rows:
        name = cells[column].strip()
        if not name:
            problems.append((line, "expected the name of a node, found nothing"))
        elif name in names:
            first = rows[names[name]][0]
            problems.append((line, f"node {name!r} occurs twice: also in line {first}"))
        names.setdefault(name, len(names))
    raise_bad_lines(path, problems, help="give each node a name of its own (--id-column)")
    return names


def _groups(
    path: str, lines: list[int], names: list[str], several: bool
) -> tuple[np.ndarray, list[str]]:
    """Return the index of the graph of each node, and the names of the graphs."""
    if several:
        bad = [
            (n, "expected a graph, found nothing")
            for n, g in zip(lines, names, strict=True)
            if not g
        ]
        raise_bad_lines(path, bad)
    known = {name: index for index, name in enumerate(dict.fromkeys(names))}
    return np.array([known[name] for name in names], np.int64), list(known)


def _split(
    name: str,
    parts: tuple[dict[str, int], Features, np.ndarray, np.ndarray, tuple[str, ...]],
    groups: np.ndarray,
    group_names: list[str],
) -> list[Graph]:
    """Return one graph per group of nodes."""
    names, features, ends, kind, relations = parts
    nodes = tuple(names)
    if len(group_names) == 1:
        return [Graph(group_names[0] or name, nodes, features, ends, kind, relations)]
    position = np.zeros(len(nodes), np.int64)
    by_group = np.argsort(groups, kind="stable")
    bounds = np.searchsorted(groups[by_group], np.arange(len(group_names) + 1))
    edge_group = groups[ends[0]]
    edges = np.argsort(edge_group, kind="stable")
    edge_bounds = np.searchsorted(edge_group[edges], np.arange(len(group_names) + 1))
    graphs = []
    for index, group in enumerate(group_names):
        own = by_group[bounds[index] : bounds[index + 1]]
        position[own] = np.arange(len(own))
        some = edges[edge_bounds[index] : edge_bounds[index + 1]]
        graphs.append(
            Graph(
                group,
                tuple(nodes[i] for i in own),
                take_features(features, own),
                position[ends[:, some]],
                kind[some],
                relations,
            )
        )
    return graphs
