"""Check graphs before training: nodes, edges, degrees, components, homophily, labels."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from regard.data.checks.check_frame import DataCheck, label_lines, label_warnings, table
from regard.data.checks.side_stats import percentiles
from regard.data.reading.graph import Graph
from regard.data.reading.read import Pair

MIN_HOMOPHILY = 2.0  # times the homophily of random edges; below, edges say little


@dataclass
class GraphCheck(DataCheck):
    """The result of checking graphs with a label per node.

    degrees: percentile to edges per node. components: connected parts of all graphs. homophily:
    fraction of edges between nodes with the same label, of those whose labels are both known;
    by_chance: the same if labels were random. features: per node.
    """

    graphs: int
    nodes: int
    edges: int
    relations: dict[str, int]
    degrees: dict[int, int]
    isolated: int
    components: int
    largest_component: int
    features: int
    labels: dict[str, int]
    labeled: int
    dev_labeled: int
    unseen_labels: dict[str, int]
    homophily: float | None
    by_chance: float

    def summary(self) -> list[str]:
        graphs = f"{self.graphs:,} graphs, " if self.graphs > 1 else ""
        return [
            f"{graphs}{self.nodes:,} nodes, {self.edges:,} edges, {len(self.labels):,} labels; "
            f"{self.labeled:,} nodes labeled for training, {self.dev_labeled:,} for validation"
        ]

    def sections(self) -> list[list[str]]:
        degrees = [(f"degree p{at}", f"{n:,}") for at, n in self.degrees.items() if at != 100]
        homophily = "no edge between labeled nodes"
        if self.homophily is not None:
            homophily = f"{self.homophily:.1%} of edges between labeled nodes have one label"
            homophily += f" ({self.by_chance:.1%} if labels were random)"
        rows = [
            ("graphs", f"{self.graphs:,}"),
            ("nodes", f"{self.nodes:,}, {self.isolated:,} without edges"),
            ("edges", f"{self.edges:,}"),
            *((f"relation {name}", f"{n:,}") for name, n in list(self.relations.items())[:20]),
            *degrees,
            ("degree max", f"{self.degrees.get(100, 0):,}"),
            (
                "components",
                f"{self.components:,}, the largest with {self.largest_component:,} nodes",
            ),
            ("features", f"{self.features:,}"),
            ("labeled for training", f"{self.labeled:,} nodes"),
            ("labeled for validation", f"{self.dev_labeled:,} nodes"),
            ("homophily", homophily),
        ]
        return [table(rows), label_lines("label", self.labels)]


def check_nodes(train: Sequence[Pair], dev: Sequence[Pair], features: int) -> GraphCheck:
    """Check graphs with a label per node. features: number of features."""
    graphs: list[Graph] = list({id(pair.source): pair.source for pair in [*train, *dev]}.values())
    labels = Counter(label for pair in train for label in pair.target if label is not None)
    dev_labels = Counter(label for pair in dev for label in pair.target if label is not None)
    degrees = np.concatenate([graph.degrees for graph in graphs])
    sizes = np.concatenate([component_sizes(graph) for graph in graphs])
    kinds = Counter(graph.relations[k] for graph in graphs if graph.relations for k in graph.kind)
    same, known = homophily([*train, *dev])
    total = (labels + dev_labels).total()
    found = GraphCheck(
        graphs=len(graphs),
        nodes=len(degrees),
        edges=sum(len(graph.kind) for graph in graphs),
        relations=dict(kinds.most_common()),
        degrees=percentiles(degrees.tolist()),
        isolated=int((degrees == 0).sum()),
        components=len(sizes),
        largest_component=int(sizes.max()),
        features=features,
        labels=dict(labels.most_common()),
        labeled=labels.total(),
        dev_labeled=dev_labels.total(),
        unseen_labels={k: n for k, n in dev_labels.most_common() if k not in labels},
        homophily=same / known if known else None,
        by_chance=sum((n / total) ** 2 for n in (labels + dev_labels).values()),
    )
    found.warnings = label_warnings("label", found.labels, found.unseen_labels)
    if found.isolated > 0.5 * found.nodes:
        found.warnings.append(
            f"{found.isolated:,} of {found.nodes:,} nodes have no edges: a graph adds little"
        )
    if (
        known >= 100
        and found.homophily is not None
        and found.homophily < MIN_HOMOPHILY * found.by_chance
    ):
        found.warnings.append(
            f"neighbors rarely have the same label ({found.homophily:.1%} of edges): compare with "
            "a model without edges (--set model.frontend.kind=nodes --set model.encoder.kind=mlp)"
        )
    return found


def homophily(pairs: Sequence[Pair]) -> tuple[int, int]:
    """Return how many edges connect equal labels, and how many connect two known labels."""
    merged: dict[int, tuple[Graph, list[str | None]]] = {}
    for pair in pairs:
        _, labels = merged.setdefault(id(pair.source), (pair.source, [None] * len(pair.source)))
        for index, label in enumerate(pair.target):
            labels[index] = labels[index] if label is None else label
    same = known = 0
    for graph, labels in merged.values():
        names = {label: number for number, label in enumerate(sorted(set(filter(None, labels))))}
        ids = np.array([-1 if label is None else names[label] for label in labels])
        a, b = ids[graph.ends]
        both = (a >= 0) & (b >= 0)
        known += int(both.sum())
        same += int((a == b)[both].sum())
    return same, known


def component_sizes(graph: Graph) -> np.ndarray:
    """Return the number of nodes of each connected component.

    Each round gives a node the smallest number among its neighbors' and that of its number.
    """
    parent = np.arange(len(graph))
    a, b = graph.ends
    while True:
        before = parent.copy()
        lowest = np.minimum(parent[a], parent[b])
        np.minimum.at(parent, a, lowest)
        np.minimum.at(parent, b, lowest)
        np.minimum.at(parent, before, parent)
        parent = parent[parent]
        if (parent == before).all():
            return np.bincount(parent)[np.unique(parent)]
