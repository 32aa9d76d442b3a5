"""Labels of the nodes of a graph. A graph is one example; predictions are for its nodes.

N nodes.
"""

import random
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import torch

from regard.baselines import BaselineFit, MostFrequentTag
from regard.core import parallel
from regard.core.data_stats import DataStats
from regard.core.errors import UserError
from regard.data.checks.check_graph import GraphCheck, check_nodes
from regard.data.corpus.corpora import Corpus, NodeCorpus
from regard.data.corpus.ragged import Ragged
from regard.data.reading.graph import Graph, NodeSet
from regard.data.reading.graphs import Reading
from regard.data.reading.read import Example, Pair
from regard.data.sources.graphs import read_unlabeled
from regard.data.sources.open import DataSpec
from regard.inputs.graphs import GraphInput
from regard.metrics.label_metrics import class_table, confusion, measure_labels
from regard.metrics.numbers import WeightedScores
from regard.models.encoder_model import EncoderModel, TaggerOptions
from regard.objectives import Objective
from regard.search.search import SearchRequest
from regard.tasks.graph_rows import NodeRows
from regard.tasks.inspection.forced_pass import InspectionRequest
from regard.tasks.inspection.node_pass import NodePass, node_pass
from regard.tasks.labeled_data import source_stats
from regard.tasks.tag_task import TagTask
from regard.tasks.task import NUM_SAMPLES, Evaluation, Prediction
from regard.tasks.task_loss import device_of
from regard.tasks.values import InputItem

Labels = list[tuple[str]]


class NodeTask(TagTask):
    """The task of labeling nodes. Labels are tags; an unlabeled node has the label None."""

    source: GraphInput
    unit = "graphs"
    by_line = True
    writes_text = False
    empty_prediction = None
    usage_hint = "regard predict {run} NODE"

    def build(self, options: TaggerOptions) -> EncoderModel:
        """Return an encoder model with one output per label."""
        if options.head == "crf":
            raise UserError(
                "model.head=crf: not supported for graphs: it needs an order of the nodes",
                help="use --set model.head=softmax",
            )
        return super().build(options)

    def corpus(self, pairs: Sequence[Pair]) -> NodeCorpus:  # type: ignore[override]
        """Return the graphs as tensors. Unknown labels do not count in the loss."""
        ids = self.tag_ids
        target = [
            [-1 if label is None else ids.get(label, -1) for label in self.of_graph(pair)]
            for pair in pairs
        ]
        return NodeCorpus(self.source.encode([pair.source for pair in pairs]), Ragged.of(target))

    @staticmethod
    def of_graph(pair: Pair) -> Sequence[str | None]:
        """Return a label, or None, for each node of the graph."""
        if not isinstance(pair.source, NodeSet):
            labels_of_all: Sequence[str | None] = pair.target
            return labels_of_all
        labels: list[str | None] = [None] * len(pair.source.graph)
        for index, label in zip(pair.source.at, pair.target, strict=True):
            labels[index] = label
        return labels

    def stats(self, corpus: Corpus) -> DataStats:
        """Return the data statistics from which default settings are chosen."""
        return source_stats(self.source, corpus, len(self.tags), labels=True)

    def parse(self, text: str) -> Any:
        """Return the node of the training graph with this name, or several."""
        return self.source.parse(text)

    def read_items(self, input: str, *columns: str | None) -> tuple[Iterator[InputItem], list[str]]:
        raise NotImplementedError

    def graph_items(self, spec: DataSpec) -> tuple[Iterator[InputItem], list[str]]:
        """Return one item per node of a table of nodes, and notes."""
        reading = Reading(self.source.features, self.source.directed, labeled=False)
        data = read_unlabeled(spec, reading)
        places = np.zeros(len(data.graph), np.int64)
        for index in range(len(data.graphs)):
            rows = data.graph == index
            places[rows] = np.arange(rows.sum())

        def items() -> Iterator[InputItem]:
            for index, at in zip(data.graph.tolist(), places.tolist(), strict=True):
                graph = data.graphs[index]
                yield InputItem(NodeSet(graph, (at,)), graph.nodes[at], name=graph.nodes[at])

        return items(), data.notes

    @staticmethod
    def to_source(value: Any, number: int = 1) -> Any:
        """Return a graph or nodes unchanged."""
        if isinstance(value, Graph | NodeSet):
            return value
        raise UserError(f"example {number}: expected a graph or nodes, found {value!r:.80}")

    def rows(self, sources: Sequence[Any]) -> NodeRows:
        """Return the sources, of which those of one graph share a row."""
        return NodeRows(self.source, sources)

    def forced_pass(self, request: InspectionRequest) -> NodePass:  # type: ignore[override]
        """Return the forced pass over nodes and their neighbors, with their labels."""
        return node_pass(request)

    def evaluate(
        self,
        predictor: Any,
        examples: Sequence[Example],
        objective: Objective,
        search: Any,
        batch_size: int,
    ) -> Evaluation:
        """Return the metrics of a predictor on graphs. A single graph is computed only once."""
        model = predictor.module
        if len(examples) != 1 or model is None or parallel.world_size() > 1:
            return super().evaluate(predictor, examples, objective, search, batch_size)
        (example,) = examples
        pairs = [Pair(example.source, reference, 0) for reference in example.references]
        with torch.inference_mode():
            batch = self.corpus(pairs[:1]).batch(np.zeros(1, np.int64)).to(device_of(model))
            outputs = model.eval()(batch)
            loss = objective(lambda _: outputs, batch)  # type: ignore[arg-type]
            (found,) = search.run(lambda _: outputs, SearchRequest(batch.source))
        predictions = [self.make_prediction(example.source, None, found, search, 1)]
        scores = self.score(predictions, examples)
        mean = float(loss.sum) / loss.count if loss.count else 0.0
        return Evaluation(scores, mean, predictions, self.details(predictions, examples))

    def compute_metrics(
        self, predictions: Sequence[Prediction], examples: Sequence[Example]
    ) -> WeightedScores:
        """Return accuracy and macro-F1 over all labeled nodes."""
        return measure_labels(*labeled_nodes(predictions, examples), multilabel=False)

    def baseline_fits(self) -> list[BaselineFit]:
        """Return the most frequent label."""
        return [BaselineFit(MostFrequentTag.name, MostFrequentTag.fit)]

    def baseline_sample(self, pairs: Sequence[Pair]) -> tuple[list[Pair], str]:
        """Return the labels of all labeled nodes."""
        return [
            Pair((), tuple(label for label in pair.target if label is not None), pair.line)
            for pair in pairs
        ], ""

    def details(
        self, predictions: Sequence[Prediction], examples: Sequence[Example]
    ) -> dict[str, Any]:
        """Return metrics per label and the confusion matrix, over all labeled nodes."""
        both = labeled_nodes(predictions, examples)
        return {"classes": class_table(*both), "confusion": confusion(*both)}

    def samples(self, evaluation: Evaluation, examples: Sequence[Example]) -> list[dict[str, Any]]:
        """Return a fixed random sample of labeled nodes with their predictions, ready for JSON."""
        nodes = [
            (example.source, at, prediction.value, label)
            for example, prediction in zip(examples, evaluation.predictions, strict=True)
            for at, label in enumerate(example.references[0])
            if label is not None
        ]
        indices = random.Random(0).sample(range(len(nodes)), k=min(NUM_SAMPLES, len(nodes)))
        return [
            {
                "source": self.source.names(source)[at],
                "prediction": predicted[at],
                "references": [label],
            }
            for source, at, predicted, label in (nodes[i] for i in sorted(indices))
        ]

    def check(self, train: Sequence[Pair], dev: Sequence[Pair]) -> GraphCheck:  # type: ignore[override]
        """Return statistics of the graphs, and warnings about them."""
        return check_nodes(train, dev, self.source.shape.size)


def labeled_nodes(
    predictions: Sequence[Prediction], examples: Sequence[Example]
) -> tuple[Labels, Labels]:
    """Return the predicted and the expected labels of all labeled nodes."""
    both = [
        (predicted, expected)
        for prediction, example in zip(predictions, examples, strict=True)
        for predicted, expected in zip(prediction.value, example.references[0], strict=True)
        if expected is not None
    ]
    return [(predicted,) for predicted, _ in both], [(expected,) for _, expected in both]
