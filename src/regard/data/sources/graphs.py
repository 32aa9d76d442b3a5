"""Open graphs with a label per node, or with a label per graph.

All nodes of a graph are always part of the example, whatever their split: only labels are split.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from typing import Any

import numpy as np

from regard.core.errors import UserError
from regard.core.suggest import did_you_mean
from regard.data.reading.graphs import GraphData, NodeColumns, Reading, read_graphs
from regard.data.reading.lines import raise_bad_lines
from regard.data.reading.read import Pair, Pairs
from regard.data.reading.splits import DEV, TRAIN, show_counts
from regard.data.sources.communities import communities
from regard.data.sources.open import DataSpec, TrainDev

DEV_EVERY = 10  # without splits, one of this many labeled nodes or graphs is held out
ToTarget = Callable[[str], Any]  # a cell as the target of a graph


def open_graphs(
    spec: DataSpec, dev: DataSpec, reading: Reading, to_target: ToTarget | None
) -> TrainDev:
    """Return graphs with the labels of the training set, and with those of the dev set.

    to_target: converts the label of a graph; None: each node has a label.
    """
    if dev.is_given():
        raise UserError(
            "--dev: not supported for graphs, which are in one table of nodes",
            help="pass --split-column COLUMN: train, val or test per node",
        )
    data = _read(spec, reading, to_target)
    notes, counts = list(data.notes), _counts(data, to_target is None)
    if any(data.splits):
        sides = [[s.lower() in names for s in data.splits] for names in (TRAIN, DEV)]
        if not any(sides[0]):
            raise UserError(
                f"{data.path}: --split-column: no row has the split train; found "
                f"{show_counts(counts)}",
                help=f"training reads {' or '.join(TRAIN)}, validation {', '.join(DEV)}",
            )
    else:
        held = _held_out(data, to_target is None)
        sides = [[not one for one in held], held]
    train, held_pairs = (_pairs(data, np.array(side), to_target) for side in sides)
    if not train:
        raise UserError(f"{data.path}: no node of the training set has a label")
    unit = "nodes" if to_target is None else "graphs"
    sizes = [_labeled(pairs, to_target is None) for pairs in (train, held_pairs)]
    if any(data.splits):
        unused = Counter({k: n for k, n in counts.items() if k.lower() not in (*TRAIN, *DEV)})
        rest = f"; labels not used: {show_counts(unused)}" if unused else ""
        notes.append(
            f"split column: labels of {sizes[0]:,} {unit} for training, {sizes[1]:,} for "
            f"validation{rest}"
        )
    else:
        notes.append(
            f"dev set: labels of {sizes[1]:,} of {sum(sizes):,} labeled {unit} held out by a hash "
            "of the name (--split-column overrides)"
        )
    return TrainDev(data.name, train, held_pairs, notes)


def read_graph_pairs(spec: DataSpec, reading: Reading, to_target: ToTarget | None) -> Pairs:
    """Return graphs with the labels of one split or, without one, with all labels."""
    data = _read(spec, reading, to_target)
    notes, counts = list(data.notes), _counts(data, to_target is None)
    unit = "nodes" if to_target is None else "graphs"
    chosen = np.ones(len(data.splits), bool)
    wanted = spec.split or ("test" if not spec.edges else None)
    if wanted is not None:
        if wanted not in counts:
            raise UserError(
                f"{data.path}: --split {wanted}: no row has this split; found "
                f"{show_counts(counts)}{did_you_mean(wanted, counts)}"
            )
        chosen = np.array([split == wanted for split in data.splits])
        notes.append(f"split {wanted}: {counts[wanted]:,} of {counts.total():,} {unit}")
    elif spec.split_column:
        notes.append(f"{unit} of all splits: {show_counts(counts)}; --split NAME selects one")
    pairs = _pairs(data, chosen, to_target)
    if not pairs:
        raise UserError(f"{data.path}: no label to compare with; choose with --target-column")
    return Pairs(data.name, data.path, pairs, notes)


def read_unlabeled(spec: DataSpec, reading: Reading) -> GraphData:
    """Return the graphs of tables without labels."""
    return read_graphs(
        spec.data or "-", _edges(spec), _columns(spec), reading._replace(labeled=False)
    )


def _read(spec: DataSpec, reading: Reading, to_target: ToTarget | None) -> GraphData:
    if spec.source or spec.target:
        raise UserError(
            "--source, --target: not supported for graphs", help="pass a table of nodes"
        )
    if not spec.data:
        raise UserError("no data", help="pass a table of nodes")
    if not spec.edges and to_target is None:
        return communities()
    if to_target is not None and not spec.graph_column:
        raise UserError(
            "--edges without --graph-column: the table of nodes is a single graph",
            help="pass --graph-column COLUMN (a label per graph), or --task tag (a label per node)",
        )
    return read_graphs(spec.data, _edges(spec), _columns(spec), reading)


def _edges(spec: DataSpec) -> str:
    if not spec.edges:
        raise UserError("--edges: missing: graphs need a table of edges", help="add --edges FILE")
    return spec.edges


def _columns(spec: DataSpec) -> NodeColumns:
    return NodeColumns(
        spec.id_column, spec.source_column, spec.target_column, spec.split_column, spec.graph_column
    )


def _counts(data: GraphData, by_node: bool) -> Counter[str]:
    """Return the number of nodes per split, or of graphs with a node in it."""
    if by_node:
        return Counter(data.splits)
    return Counter(split for _, split in set(zip(data.graph.tolist(), data.splits, strict=True)))


def _held_out(data: GraphData, by_node: bool) -> list[bool]:
    """Return which rows are in the dev set: about a tenth of those with a label."""
    labeled = [bool(label) for label in data.labels]
    if not by_node:
        known = np.zeros(len(data.graphs), bool)
        known[data.graph[labeled]] = True
        held = held_out_nodes([graph.name for graph in data.graphs], known.tolist())
        return np.array(held)[data.graph].tolist()
    # nodes of a graph are in the order of the table, but graphs may alternate
    names = np.empty(len(labeled), object)
    order = np.argsort(data.graph, kind="stable")
    names[order] = [name for graph in data.graphs for name in graph.nodes]
    return held_out_nodes(names.tolist(), labeled)


def held_out_nodes(names: Sequence[str], labeled: Sequence[bool]) -> list[bool]:
    """Return which nodes to hold out: about a tenth of those with a label, at least one."""
    held = [known and _hash(name) for name, known in zip(names, labeled, strict=True)]
    if not any(held) and sum(labeled) > 1:
        held[len(labeled) - 1 - list(labeled)[::-1].index(True)] = True
    return held


def _hash(name: str) -> bool:
    return hashlib.sha256(name.encode("utf-8", "replace")).digest()[0] % DEV_EVERY == 0


def _pairs(data: GraphData, chosen: np.ndarray, to_target: ToTarget | None) -> list[Pair]:
    """Return the graphs with at least one label among the chosen rows."""
    order = np.argsort(data.graph, kind="stable")
    bounds = np.searchsorted(data.graph[order], np.arange(len(data.graphs) + 1))
    pairs, problems = [], []
    for index, graph in enumerate(data.graphs):
        rows = order[bounds[index] : bounds[index + 1]]
        line = data.lines[rows[0]]
        if to_target is None:
            target: Any = tuple((data.labels[i] or None) if chosen[i] else None for i in rows)
            if any(label is not None for label in target):
                pairs.append(Pair(graph, target, line))
            continue
        labels = {data.labels[i] for i in rows} - {""}
        splits = {bool(chosen[i]) for i in rows}
        if len(labels) > 1 or len(splits) > 1:
            what = "labels " + ", ".join(sorted(labels)) if len(labels) > 1 else "several splits"
            problems.append((line, f"graph {graph.name!r} has {what}: expected one"))
        elif labels and splits == {True}:
            try:
                pairs.append(Pair(graph, to_target(labels.pop()), line))
            except ValueError as error:
                problems.append((line, str(error)))
    raise_bad_lines(data.path, problems)
    return pairs


def _labeled(pairs: Collection[Pair], by_node: bool) -> int:
    if not by_node:
        return len(pairs)
    return sum(label is not None for pair in pairs for label in pair.target)
