"""Read the table of edges of graphs.

E edges.
"""

from __future__ import annotations

from collections import Counter

import numpy as np

from regard.core.errors import UserError
from regard.core.formatting import count_noun
from regard.data.reading.graph_tables import END_NAMES, RELATION_NAMES, Table, read_table
from regard.data.reading.lines import raise_bad_lines
from regard.data.reading.pair_format import Problems

MAX_RELATIONS = 1000
MAX_NOTED = 3  # examples of a kind of edge in a note


def read_edges(
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
    header = "; in a header, the nodes are named source and target" if named else ""
    raise_bad_lines(table.path, problems, help=f"add the nodes, or remove the edges{header}")
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
    is_edge = not table.keyed and all(cell.strip() in names for cell in table.first[1][:2])
    if None not in known and not is_edge:
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
            f"found {count_noun(count, 'key' if table.keyed else 'column')}"
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
