"""Options of the input `graph`: how features of nodes are read.

N nodes, F numbers per node.
"""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np
from pydantic import Field

from regard.core.errors import UserError
from regard.core.files import corrupted, read_fields
from regard.core.options import AutoSetting
from regard.data.reading.graph import Bags, Graph, NodeSet
from regard.inputs.graph_file import load_graph
from regard.inputs.graphs import (
    FIELDS,
    FeatureKind,
    GraphInput,
    Scaling,
    as_kind,
    bags_of,
    feature_kind,
    graph_of,
    words_of,
)
from regard.inputs.input import Input, InputOptions
from regard.inputs.vectors import standard

MIN_COUNT = 2  # nodes with a word, for words of texts as features; rarer words connect nothing


def _example(name: str, rows: list[list[int]], edges: list[tuple[int, int]]) -> Graph:
    """Return a graph with these indices of each node."""
    ends = np.array(edges, np.int64).reshape(-1, 2).T
    names = tuple(f"{name}{i}" for i in range(len(rows)))
    return Graph(name, names, bags_of(rows), ends, np.zeros(ends.shape[1], np.int64))


class GraphOptions(InputOptions):
    """Options of the input `graph`."""

    examples: ClassVar[tuple[Any, ...]] = (
        _example("a", [[0, 2], [1], [2, 3]], [(0, 1), (1, 2)]),
        _example("b", [[3]], []),
        _example("c", [[1, 2], [0], [], [2], [4]], [(0, 1), (0, 2), (1, 2), (3, 4)]),
    )
    kind: Literal["graph"] = "graph"
    features: FeatureKind | None = Field(
        None,
        description="features of a node: bag (indices), numbers or text (words); None: by the data",
    )
    scaling: Scaling | None = Field(
        None,
        description="rows: divide features by their sum per node; columns: standardize numbers; "
        "None: rows, or columns for numbers",
    )
    directed: bool = Field(
        False, description="whether messages along and against an edge have different weights"
    )

    @classmethod
    def accepts(cls, source: Any) -> bool:
        return isinstance(source, Graph | NodeSet)

    def fit(
        self,
        sources: Sequence[Any],
        path: str,
        auto_settings: list[AutoSetting],
        like: Input | None = None,
    ) -> tuple[Input, "GraphOptions"]:
        """Return the input fitted on all nodes of these graphs, whether labeled or not."""
        if like is not None:
            return GraphInput.like(like), self
        graphs = list({id(graph): graph for graph in map(graph_of, sources)}.values())
        kind = self.features or _common_kind(graphs)
        features: list[Any] = [as_kind(graph.features, kind) for graph in graphs]
        if others := {feature_kind(one) for one in features} - {kind}:
            raise UserError(f"features of nodes are {others.pop()} in a graph: expected {kind}")
        scaling = self.scaling or ("columns" if kind == "numbers" else "rows")
        if scaling == "columns" and kind != "numbers":
            raise UserError(f"{path}.scaling=columns: not supported for features {kind}; use rows")
        relations = list(dict.fromkeys(name for graph in graphs for name in graph.relations))
        size, fitted = self._sizes(features, scaling)
        known = graphs[0] if len(graphs) == 1 else None
        source = GraphInput(kind, scaling, size, self.directed, relations, graph=known, **fitted)
        return source, self.model_copy(update={"features": kind, "scaling": scaling})

    def _sizes(self, features: list[Any], scaling: Scaling) -> tuple[int, dict[str, Any]]:
        """Return the number of features, and what is fitted to them."""
        if isinstance(features[0], Bags):
            return max(
                [int(one.flat.max()) + 1 for one in features if len(one.flat)], default=1
            ), {}
        if isinstance(features[0], np.ndarray):
            if len({one.shape[1] for one in features}) > 1:
                raise UserError("graphs have different numbers of features per node")
            mean, std = standard(np.concatenate(features))
            if scaling != "columns":
                return len(mean), {}
            return len(mean), {"mean": mean.tolist(), "std": std.tolist()}
        counts = Counter(word for one in features for text in one for word in {*words_of(text)})
        words = sorted(word for word, count in counts.items() if count >= MIN_COUNT)
        if not words:
            raise UserError("the texts of the nodes have no word in common")
        return len(words), {"words": words}

    def load(self, folder: Path) -> GraphInput:
        path = folder / "input.json"
        types = FIELDS | {"graph": str | None}
        *found, digest = read_fields(path, **types)
        fields = dict(zip(FIELDS, found, strict=True))
        if fields["size"] < 1 or len(fields["mean"]) != len(fields["std"]):
            raise corrupted(path, "size, mean or std: expected the sizes of the features")
        graph = None if digest is None else load_graph(folder, digest)
        return GraphInput(**fields, graph=graph)


def _common_kind(graphs: Sequence[Graph]) -> FeatureKind:
    """Return the kind of features of all graphs: bags if one of them has bags."""
    kinds = [feature_kind(graph.features) for graph in graphs]
    return "bag" if "bag" in kinds else kinds[0]
