"""Graphs: the input `graph`. Its options are in `graph_options.py`, its frontends in
`graph_frontends.py`.

N nodes, F numbers per node.
"""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np

from regard.core.errors import UserError
from regard.core.files import write_json
from regard.data.corpus.graph_rows import GraphArrays, GraphRows, connect
from regard.data.reading.graph import Bags, Features, Graph, NodeSet
from regard.inputs.graph_file import save_graph
from regard.inputs.graph_json import EXAMPLE, graph_of_json
from regard.inputs.input import Input, InputShape

WORD = re.compile(r"\w+")
FeatureKind = Literal["bag", "numbers", "text"]
Scaling = Literal["rows", "columns", "none"]
FIELDS = {  # fields of input.json and their types
    "features": FeatureKind,
    "scaling": Scaling,
    "size": int,
    "directed": bool,
    "relations": list[str],
    "words": list[str],
    "mean": list[float],
    "std": list[float],
}


class GraphInput(Input):
    """Graphs. A position of a graph is a node.

    features: what describes a node: indices (bag), numbers, or the words of a text. scaling:
    whether features are divided by their sum per node (rows), or standardized (columns). size:
    number of features. directed: whether messages along and against an edge differ. words: the
    vocabulary of texts. mean, std: of each number. graph: the graph of the training data, if
    predictions are for nodes of one graph.
    """

    kind = "graph"
    unordered = True
    written = False
    placeholder = "--input NODES --edges EDGES"
    plural = "graphs"

    def __init__(
        self,
        features: FeatureKind,
        scaling: Scaling,
        size: int,
        directed: bool = False,
        relations: Sequence[str] = (),
        words: Sequence[str] = (),
        mean: Sequence[float] = (),
        std: Sequence[float] = (),
        graph: Graph | None = None,
    ) -> None:
        self.features, self.scaling, self.size = features, scaling, size
        self.directed, self.relations = directed, tuple(relations)
        self.words, self.mean, self.std = list(words), list(mean), list(std)
        self.graph = graph
        self.word_ids = {word: id for id, word in enumerate(words)}
        self._last: tuple[Graph, GraphArrays] | None = None  # a large graph is encoded once

    @property
    def shape(self) -> InputShape:
        bag = {"rows": "mean"}.get(self.scaling, "sum") if self.features != "numbers" else ""
        kinds = max(1, len(self.relations)) * (1 + self.directed)
        return InputShape("graph", self.size, bag=bag, relations=1 + kinds if kinds > 1 else 0)

    def encode(self, sources: Sequence[Any]) -> GraphRows:
        """Return the graphs as rows. Of some nodes, the graph that contains them."""
        return GraphRows([self.arrays(graph_of(source)) for source in sources])

    def arrays(self, graph: Graph) -> GraphArrays:
        """Return a graph as arrays."""
        if self._last is None or self._last[0] is not graph:
            data = self.encode_features(graph)
            self._last = graph, GraphArrays(data, *connect(self.renamed(graph), self.directed))
        return self._last[1]

    def renamed(self, graph: Graph) -> Graph:
        """Return the graph with the relations of the training data."""
        if graph.relations == self.relations:
            return graph
        if unknown := [name for name in graph.relations if name not in self.relations]:
            known = ", ".join(self.relations) or "edges without a relation"
            raise UserError(
                f"{graph}: unknown relation {unknown[0]!r}: expected {known}, as in training"
            )
        if not graph.relations and len(graph.kind):
            raise UserError(
                f"{graph}: edges without a relation: expected {', '.join(self.relations)}, as in "
                "training",
                help="add the relation as third column of the edges",
            )
        now = np.array([self.relations.index(name) for name in graph.relations], np.int64)
        kind = now[graph.kind] if len(graph.kind) else graph.kind
        return Graph(graph.name, graph.nodes, graph.features, graph.ends, kind, self.relations)

    def encode_features(self, graph: Graph) -> np.ndarray:
        """Return the numbers (N, F) of all nodes, or their indices, from 1, padded with zeros."""
        features = self.checked_features(graph)
        if isinstance(features, np.ndarray):
            found = features.astype(np.float64)
            if self.scaling == "rows":
                total = np.abs(found).sum(1, keepdims=True)
                found = found / np.where(total > 0, total, 1)
            if self.scaling == "columns":
                with np.errstate(over="ignore"):
                    found = (found - self.mean) / self.std
            if not np.isfinite(found.astype(np.float32)).all():
                raise UserError(f"{graph}: expected numbers like those in training: too large")
            return found.astype(np.float32)
        bags = features
        if not isinstance(bags, Bags):
            rows = [[self.word_ids[w] for w in words_of(t) if w in self.word_ids] for t in bags]
            bags = bags_of(rows)
        return padded_bags(bags)

    def checked_features(self, graph: Graph) -> Features:
        """Return the features of a graph. Raise UserError if they are not as in training."""
        features = as_kind(graph.features, self.features)
        found = feature_kind(features)
        if found != self.features:
            raise UserError(
                f"{graph}: features are {found}: expected {self.features}, as in training"
            )
        if isinstance(features, np.ndarray) and features.shape[1] != self.size:
            raise UserError(
                f"{graph}: expected {self.size} numbers per node, as in training, found "
                f"{features.shape[1]}"
            )
        if isinstance(features, Bags) and len(features.flat):
            largest = int(features.flat.max())
            if largest >= self.size:
                at = np.repeat(np.arange(len(graph)), features.lengths)
                node = graph.nodes[at[features.flat.argmax()]]
                raise UserError(
                    f"node {node}: index {largest}: expected less than {self.size}, as in training"
                )
        return features

    def names(self, source: Any) -> list[str]:
        """Return the names of the nodes."""
        return list(graph_of(source).nodes)

    def parse(self, text: str) -> Any:
        """Return nodes of the training graph by name, separated by blanks, or a graph as JSON."""
        if text.lstrip().startswith("{"):
            return graph_of_json(text, self.features, self.directed)
        graph = self.known_graph()
        names = [text] if graph.index(text) is not None else text.split()
        found = [graph.index(name) for name in names]
        for name, index in zip(names, found, strict=True):
            if index is None:
                raise UserError(
                    f"{name!r}: no such node in the training graph, which has {len(graph):,}: "
                    f"{', '.join(graph.nodes[:5])}, ...",
                    help="pass a node, or new nodes as a table with --edges",
                )
        if not names:
            raise UserError("expected the name of a node, found nothing")
        return NodeSet(graph, tuple(index for index in found if index is not None))

    def known_graph(self) -> Graph:
        """Return the graph of the training data; raise UserError if the run has several."""
        if self.graph is None:
            raise UserError(
                "this model reads entire graphs, which one line cannot contain",
                help=f"pass a graph as JSON: '{EXAMPLE}', or a table of nodes with --edges FILE",
            )
        return self.graph

    def blank(self) -> Any:
        """Return a graph of one node without features."""
        features: Features = (" ",)
        if self.features != "text":
            bag = Bags(np.zeros(0, np.int64), np.zeros(1, np.int64))
            features = bag if self.features == "bag" else np.zeros((1, self.size))
        none = np.zeros((2, 0), np.int64)
        return Graph("blank", ("0",), features, none, none[0], self.relations)

    def display_name(self, text: str) -> str:
        """Return the names of nodes; empty for a graph as JSON, which is the entire source."""
        return "" if text.lstrip().startswith("{") else text

    def text(self, source: Any) -> str:
        return str(source)

    def length(self, source: Any) -> int:
        return len(graph_of(source))

    def unknown(self, source: Any, row: np.ndarray | None = None) -> tuple[str, ...]:
        """Return the words of some nodes that are not in the vocabulary."""
        if self.features != "text" or not isinstance(source, NodeSet):
            return ()
        texts: Any = source.graph.features
        words = [word for i in source.at for word in words_of(texts[i])]
        return tuple(dict.fromkeys(word for word in words if word not in self.word_ids))

    def content(self) -> bytes:
        own = {name: getattr(self, name) for name in FIELDS}
        return repr((own, self.graph)).encode("utf-8", "replace")

    def save(self, folder: Path) -> None:
        """Write the settings and, if there is one, the graph of the training data."""
        tree = {name: getattr(self, name) for name in FIELDS}
        digest = None if self.graph is None else self.graph.digest
        write_json(folder / "input.json", tree | {"relations": [*self.relations], "graph": digest})
        if self.graph is not None:
            save_graph(self.graph, folder)


def graph_of(source: Any) -> Graph:
    """Return the graph of a source: itself, or that of some nodes."""
    if isinstance(source, NodeSet):
        return source.graph
    if not isinstance(source, Graph):
        raise UserError(f"expected a graph, found {source!r:.80}")
    return source


def feature_kind(features: Features) -> FeatureKind:
    """Return the kind of the features of a graph."""
    if isinstance(features, Bags):
        return "bag"
    return "numbers" if isinstance(features, np.ndarray) else "text"


def as_kind(features: Features, kind: FeatureKind) -> Features:
    """Return lists of whole numbers, which are arrays of integers, as bags; others unchanged."""
    if kind != "bag" or not isinstance(features, np.ndarray):
        return features
    if features.dtype.kind != "i" or (features < 0).any():
        return features
    return bags_of(features.tolist())


def words_of(text: str) -> list[str]:
    """Return the words of a text in lower case."""
    return WORD.findall(text.lower())


def bags_of(rows: Sequence[Sequence[int]]) -> Bags:
    """Return lists of indices as bags."""
    lengths = np.fromiter(map(len, rows), np.int64, len(rows))
    flat = np.fromiter((index for row in rows for index in row), np.int64, int(lengths.sum()))
    return Bags(flat, lengths)


def padded_bags(bags: Bags) -> np.ndarray:
    """Return the indices of each node plus one (N, L), followed by zeros."""
    width = max(1, int(bags.lengths.max(initial=0)))
    found = np.zeros((len(bags), width), np.int64)
    found[np.arange(width) < bags.lengths[:, None]] = bags.flat + 1
    return found
