"""The estimator that predicts a label per position: Tagger."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, cast

from regard.core.argument_names import names_arguments
from regard.core.errors import UserError, info
from regard.core.files import write_json
from regard.core.formatting import count_noun
from regard.data.reading.graph import NodeSet
from regard.data.reading.read import Example, Pair
from regard.estimators.estimator import Estimator
from regard.estimators.graphs import (
    graph_of_arrays,
    is_whole,
    node_pairs,
    nodes_of,
    to_labels,
)
from regard.estimators.rows import check_present, to_columns
from regard.tasks.tag import TagTask

if TYPE_CHECKING:
    from typing_extensions import Self

CLASSES = "vocabulary/classes.json"  # file with the labels of nodes, if they are numbers


class Tagger(Estimator):
    """Sequence tagger. X: sentences as lists of words, or as strings. y: tags per sentence.

    With edges, it labels the nodes of a graph instead. X: features of all nodes: an array (N, F), a
    sparse matrix of zeros and ones, lists of indices, or texts. y: a label per node, or None.
    """

    task = "tag"

    @names_arguments
    def fit(
        self,
        X: Any,
        y: Any = None,
        dev: Any = None,
        init_from: Any = None,
        unlabeled: Any = None,
        edges: Any = None,
    ) -> "Self":
        """Train on sentences X and tags y, or on pairs X = [(words, tags), ...].

        edges: (E, 2) positions of nodes, or (E, 3) with a relation. Then y has a label or None per
        node, and dev, if given, the labels for validation, None for all other nodes.
        X, y, dev, init_from, unlabeled: otherwise as for `Estimator.fit`.
        """
        if edges is None:
            return super().fit(X, y, dev, init_from, unlabeled)
        if unlabeled is not None:
            raise UserError(
                "unlabeled: not supported for graphs: give unlabeled nodes the label None"
            )
        config = self._config()
        directed = bool(getattr(config.task.source, "directed", False))
        graph = graph_of_arrays(X, edges, directed=directed)
        if self.verbose and (skipped := len(edges) - graph.ends.shape[1]):
            count = count_noun(skipped, "edge")
            info(f"skipped: {count} repeated, reversed or from a node to itself")
        if y is None:
            raise UserError("y: missing: expected a label or None per node")
        self._train(config, *node_pairs(graph, y, dev), init_from)
        known = [label for label in y if label is not None and label == label]  # NaN: no label
        if all(map(is_whole, known)):
            write_json(self.folder_ / CLASSES, sorted({int(one) for one in known}))
        return self

    def _label(self, name: str) -> Any:
        """Return a label as it was passed to fit: a number, or a text."""
        return int(name) if (self.folder_ / CLASSES).exists() else name

    def _graph(self, X: Any, edges: Any) -> NodeSet | None:
        """Return the nodes to label; None if the model reads sentences."""
        source: Any = self.task_.source
        if not source.unordered:
            if edges is not None:
                raise UserError("edges: not supported: this model reads sentences")
            return None
        if edges is not None:
            return nodes_of(graph_of_arrays(X, edges, directed=source.directed), None)
        return nodes_of(source.known_graph(), X)

    def _to_pairs(self, X: Any, y: Any) -> list[Pair]:
        """Convert sentences X and tags y, or pairs (words, tags), to training examples."""
        pairs = []
        for number, row in enumerate(zip(*to_columns(X, y), strict=True), 1):
            check_present(row[0], number, "a sentence")
            check_present(row[1], number, "tags")
            words, tags = TagTask.to_source(row[0], number), tuple(map(str, _split(row[1])))
            if len(words) != len(tags):
                raise UserError(
                    f"example {number}: expected one tag per word, found {len(words)} words and "
                    f"{len(tags)} tags"
                )
            pairs.append(Pair(words, tags, number))
        return pairs

    def _to_sources(self, X: Any) -> list[Any]:
        """Convert sentences to tuples of words. Strings are split at whitespace."""
        rows = super()._to_sources(X)
        for number, row in enumerate(rows, 1):
            check_present(row, number, "a sentence")
        return [TagTask.to_source(row, number) for number, row in enumerate(rows, 1)]

    @names_arguments
    def predict(self, X: Any = None, batch_size: int = 64, edges: Any = None) -> list[list[str]]:
        """Return the tags of each sentence, or the label of each node.

        X: sentences as lists of words, or as strings. For graphs: positions of nodes in the
        training graph (None: all) or, with edges, the features of another graph.
        batch_size: sentences per batch.
        """
        nodes = self._graph(X, edges)
        if nodes is not None:
            (prediction,) = self.predictor_.predict([nodes])
            return cast(Any, [self._label(label) for label in prediction.value])
        return [list(found.value) for found in self.predict_detailed(X, batch_size=batch_size)]

    @names_arguments
    def evaluate(
        self,
        X: Any = None,
        y: Any = None,
        batch_size: int = 64,
        edges: Any = None,
        **search: Any,
    ) -> dict[str, float]:
        """Return all metrics by name.

        X, y: sentences and tags, or pairs X. For graphs: X is None, and y has a label or None per
        node; with edges, X has the features of another graph. batch_size: sentences per batch.
        search: search options by name.
        """
        if self._graph(None if edges is None else X, edges) is None:
            return super().evaluate(X, y, batch_size, **search)
        source: Any = self.task_.source
        graph = source.known_graph()
        if edges is not None:
            graph = graph_of_arrays(X, edges, directed=source.directed)
        labels = to_labels(graph, X if y is None else y, "y")
        return self.predictor_.evaluate([Example(graph, (labels,))]).scores

    @names_arguments
    def score(self, X: Any = None, y: Any = None) -> float:
        """Return the accuracy per word or node, from 0 to 1. X, y: as for `evaluate`."""
        return self.evaluate(X, y)["accuracy"] / 100


def _split(row: Any) -> Sequence[Any]:
    return row.split() if isinstance(row, str) else row
