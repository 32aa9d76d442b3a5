"""The generated graph `communities`: a stochastic block model (Holland et al. 1983).

Each node has a group, its label, and a few words. Words say little of the group and edges say a
lot, so that a model needs the graph.
"""

from __future__ import annotations

import random

import numpy as np

from regard.data.reading.graph import Bags, Graph
from regard.data.reading.graphs import GraphData
from regard.data.sources.builtin import GRAPH

SEED, GROUPS, SIZE = 1, 4, 60  # nodes per group
INSIDE, OUTSIDE = 0.08, 0.006  # probability of an edge
WORDS, OWN, PER_NODE, RATE = 80, 12, 6, 0.3  # vocabulary; words of a group; rate of those
TRAIN, DEV = 5, 15  # labeled nodes per group; all others are for testing


def communities() -> GraphData:
    """Return the graph, the same on every machine."""
    generator = random.Random(SEED)
    groups = [group for group in range(GROUPS) for _ in range(SIZE)]
    generator.shuffle(groups)
    rows = []
    for group in groups:
        own = range(group * OWN, (group + 1) * OWN)
        found = [
            generator.choice(own) if generator.random() < RATE else generator.randrange(WORDS)
            for _ in range(PER_NODE)
        ]
        rows.append(sorted(set(found)))
    edges = [
        (a, b)
        for a in range(len(groups))
        for b in range(a + 1, len(groups))
        if generator.random() < (INSIDE if groups[a] == groups[b] else OUTSIDE)
    ]
    seen = [0] * GROUPS
    splits = []
    for group in groups:
        seen[group] += 1
        splits.append(
            "train" if seen[group] <= TRAIN else "dev" if seen[group] <= TRAIN + DEV else "test"
        )
    lengths = np.array([len(row) for row in rows], np.int64)
    features = Bags(np.array([word for row in rows for word in row], np.int64), lengths)
    names = tuple(f"n{i}" for i in range(len(groups)))
    ends = np.array(edges, np.int64).T
    graph = Graph(GRAPH, names, features, ends, np.zeros(len(edges), np.int64))
    labels = [f"group{group}" for group in groups]
    none = np.zeros(len(groups), np.int64)
    notes = [f"{GRAPH}: a generated graph of {len(groups)} nodes and {len(edges)} edges"]
    return GraphData(GRAPH, [graph], labels, splits, list(range(1, len(groups) + 1)), none, notes)
