"""Read graphs: a table of nodes and a table of edges.

N nodes, E edges.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from regard.core.errors import UserError
from regard.core.formatting import count_noun
from regard.data.reading.columns import TARGETS
from regard.data.reading.graph import Features, Graph, take_features
from regard.data.reading.graph_tables import (
    END_NAMES,
    NODE_NAMES,
    RELATION_NAMES,
    Table,
    is_header,
    read_table,
)
from regard.data.reading.lines import raise_bad_lines, stem
from regard.data.reading.node_features import read_features
from regard.data.reading.pair_format import Problems, Row

NO_LABEL = ("", "?", "-", "none", "null", "nan", "na", "n/a")
MAX_RELATIONS = 1000
MAX_LISTED = 8  # columns of features in a note
MAX_NOTED = 3  # examples of a kind of edge or node in a note


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
    ends, kind, relations, notes = _read_edges(edges, names, groups, reading.directed)
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
    header = named or table.keyed or is_header(table, [*found["id"], *found["source"]])
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


def _read_edges(
    path: str, names: dict[str, int], groups: np.ndarray, directed: bool
) -> tuple[np.ndarray, np.ndarray, tuple[str, ...], list[str]]:
    """Return the ends (2, E) and kinds of all edges, each edge once, relations and notes."""
    table = read_table(path, "a row per edge")
    ends, relation = _edge_columns(table, names)
    named = not table.keyed and table.rows[0][1][ends[0]].strip() not in names
    rows = table.body(named and table.known(END_NAMES[0]) is not None)
    problems: Problems = []
    found = []
    kinds: dict[str, int] = {}
    for line, cells in rows:
        pair = [names.get(cells[at].strip()) for at in ends]
        for at, node in zip(ends, pair, strict=True):
            if node is None:
                problems.append((line, f"no node {cells[at].strip()!r} in the table of nodes"))
        if None not in pair and groups[pair[0]] != groups[pair[1]]:
            one, other = (cells[at].strip() for at in ends)
            problems.append((line, f"nodes {one!r} and {other!r} are in different graphs"))
        kind = cells[relation].strip() if relation is not None else ""
        if relation is not None and not kind:
            problems.append((line, "expected a relation, found nothing"))
        found.append((pair[0], pair[1], kinds.setdefault(kind, len(kinds))))
    raise_bad_lines(table.path, problems, help="add the nodes, or remove the edges")
    if len(kinds) > MAX_RELATIONS:
        raise UserError(
            f"{table.path}: column 3 has {len(kinds):,} different values: expected at most "
            f"{MAX_RELATIONS:,} relations; weights of edges are not supported",
            help="remove the column",
        )
    kept, notes = _distinct(np.array(found, np.int64).reshape(-1, 3), list(names), directed)
    relations = tuple(kinds) if relation is not None else ()
    edges = count_noun(len(kept), "edge")
    counts = Counter(kept[:, 2].tolist())
    many = [f"{name} ({counts[at]:,})" for at, name in enumerate(relations)]
    shown = f"; relations: {', '.join(many[:10])}{', ...' * (len(many) > 10)}" if many else ""
    notes = [f"{table.path}: {edges}{shown}", *table.notes, *notes]
    return kept[:, :2].T, kept[:, 2], relations, notes


def _edge_columns(table: Table, names: dict[str, int]) -> tuple[list[int], int | None]:
    """Return the columns of both ends and of the relation, if there is one."""
    known = [table.known(one) for one in END_NAMES]
    count = len(table.first[1])
    if None not in known:
        found = [at for at in known if at is not None]
        relation = table.known(RELATION_NAMES)
        if count > 2 and relation is None:
            rest = next(at for at in range(count) if at not in found)
            raise UserError(
                f"{table.path}: column {table.first[1][rest]!r}: expected two nodes and a relation"
            )
        return found, relation
    if table.keyed or not 2 <= count <= 3:
        raise UserError(
            f"{table.path} line {table.first[0]}: expected two nodes and perhaps a relation, "
            f"found {count} {'keys' if table.keyed else 'columns'}"
            + (f": {', '.join(table.first[1])}" if table.keyed else ""),
            help="write a tab between the two nodes of an edge"
            + (", or the keys source and target" if table.keyed else ""),
        )
    return [0, 1], 2 if count == 3 else None


def _distinct(edges: np.ndarray, names: list[str], directed: bool) -> tuple[np.ndarray, list[str]]:
    """Return the edges (E, 3) without loops and repetitions, and notes that count them."""
    notes = []
    loops = edges[:, 0] == edges[:, 1]
    if loops.any():
        some = ", ".join(names[i] for i in edges[loops][:MAX_NOTED, 0])
        notes.append(
            f"skipped: {count_noun(int(loops.sum()), 'edge')} from a node to itself ({some}): "
            "models connect each node with itself"
        )
    edges = edges[~loops]
    if not len(edges):
        raise UserError("the table of edges has no edge between two nodes")
    key = edges if directed else np.concatenate([np.sort(edges[:, :2], 1), edges[:, 2:]], 1)
    _, first = np.unique(key, axis=0, return_index=True)
    if more := len(edges) - len(first):
        reversed_too = "" if directed else ", or the other way round"
        notes.append(f"skipped: {count_noun(more, 'edge')} that occur twice{reversed_too}")
    return edges[np.sort(first)], notes


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
