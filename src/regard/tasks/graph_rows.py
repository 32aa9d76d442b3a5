"""Nodes of graphs as sources: all nodes of one graph share one row of a batch."""

from collections.abc import Sequence
from typing import Any

from regard.data.reading.graph import NodeSet
from regard.data.tensors.padded import Padded
from regard.inputs.graphs import GraphInput, graph_of
from regard.search.search import SearchResult
from regard.tasks.batches import plan
from regard.tasks.rows import InputRows


class NodeRows(InputRows):
    """Graphs, or nodes of graphs. The length of a source does not matter: see `batches`."""

    def __init__(self, source: GraphInput, sources: Sequence[Any]) -> None:
        self.source, self.sources = source, sources
        self.lengths = [1] * len(sources)

    def batches(self, rows: int | None, max_tokens: int, workers: int) -> list[list[int]]:
        """Return the sources of each batch. All sources of one graph are in the same batch."""
        groups: dict[int, list[int]] = {}
        for index, source in enumerate(self.sources):
            groups.setdefault(id(graph_of(source)), []).append(index)
        members = list(groups.values())
        sizes = [len(graph_of(self.sources[some[0]])) for some in members]
        parts = plan(sizes, rows, max_tokens, min(workers, len(members)))
        return [[index for group in part for index in members[group]] for part in parts]

    def graphs(self, rows: Sequence[int]) -> list[Any]:
        """Return the distinct graphs of these sources."""
        return list({id(g): g for g in (graph_of(self.sources[i]) for i in rows)}.values())

    def pad(self, rows: Sequence[int]) -> Padded:
        """Return the graphs of these sources as one batch."""
        return self.source.batch(self.graphs(rows))

    def results(self, rows: Sequence[int], found: Sequence[SearchResult]) -> list[SearchResult]:
        """Return the result of each source from those of the graphs."""
        by_graph = dict(zip(map(id, self.graphs(rows)), found, strict=True))
        return [_of_nodes(self.sources[i], by_graph[id(graph_of(self.sources[i]))]) for i in rows]


def _of_nodes(source: Any, found: SearchResult) -> SearchResult:
    """Return the labels and probabilities of the nodes that a source names."""
    if not isinstance(source, NodeSet):
        return found
    return tuple([part[i] for i in source.at] for part in found)
