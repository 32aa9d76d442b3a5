"""The interface of a task: all that training, validation and prediction know about the data.

The options of a task create it. `options.open(spec, dev)` reads the data. `options.fit(pairs)`
builds vocabularies and returns the task. `options.load(folder)` loads the task of a run folder.
"""

import math
import random
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from torch import nn

from regard.core import parallel
from regard.core.data_stats import DataStats
from regard.core.errors import UserError
from regard.data.checks.check_frame import DataCheck
from regard.data.corpus.corpora import Corpus
from regard.data.reading.read import Example, Pair
from regard.data.sources.open import DataSpec
from regard.data.tokenizers.tokenizer import Tokenizer
from regard.inputs.input import Input
from regard.objectives import Objective
from regard.search.callbacks import PartialHypothesis
from regard.search.hypothesis import TokenConstraints
from regard.search.search import SearchRequest, SearchResult
from regard.tasks.inspection.forced_pass import ForcedPass, InspectionRequest
from regard.tasks.label_pictures import picture_url
from regard.tasks.rows import InputRows, SourceRows
from regard.tasks.scoring import Scoring
from regard.tasks.task_loss import losses
from regard.tasks.values import Constraints, Evaluation, InputItem, Prediction, to_text

__all__ = ["DataCheck", "Evaluation", "Prediction", "Task"]

NUM_SAMPLES = 5  # predictions shown at each validation
ONLY_TRANSDUCERS = "prefix, require, ban: only supported for task transduce"


class Task(Scoring, ABC):
    """Base class of tasks, which encode data, decode model outputs and compute metrics."""

    kind: str
    source: Input
    metric: str  # the metric that selects the best checkpoint
    unit = "examples"  # plural noun for examples in messages
    usage_hint = "regard predict {run} {source}"  # command shown after training
    # What the models of this task can do: a subset of predict, nbest, constraints, alignment,
    # alternatives, stream, score pairs, score texts and continue (generate text). Commands, server
    # and web UI read `Predictor.abilities`.
    # step_abilities: the abilities that only models with step-by-step decoding have.
    abilities: frozenset[str] = frozenset({"predict"})
    step_abilities: frozenset[str] = frozenset()
    exportable = False  # whether engines other than torch can run the models of this task
    uses_threads = False  # whether batches are divided among threads and processes
    empty_prediction: Prediction | None = None  # for empty sources, if models cannot read them
    by_line = True  # whether each input line is one source; otherwise `read_items` reads the input
    reads_source = True  # False for language models
    writes_text = False  # whether targets are texts or sequences of words
    is_aligned = False  # whether each target token belongs to one source position

    @property
    def output_tokenizer(self) -> Tokenizer | None:
        """The tokenizer of generated text; None if the model predicts labels or numbers."""
        return None

    def count_label(self, count: int) -> str:
        """Return a count of examples with the noun `unit`, such as "3 sentences"."""
        return f"{count:,} {self.unit if count != 1 else self.unit.removesuffix('s')}"

    @abstractmethod
    def corpus(self, pairs: Sequence[Pair]) -> Corpus:
        """Return the examples as tensors, ready for training."""

    @abstractmethod
    def stats(self, corpus: Corpus) -> DataStats:
        """Return the data statistics from which default settings are chosen."""

    @abstractmethod
    def build(self, options: Any) -> nn.Module:
        """Return an untrained model with these options and the vocabulary sizes of the data."""

    def rows(self, sources: Sequence[Any]) -> SourceRows:
        """Return the encoded sources, from which batches are built."""
        return InputRows(self.source, sources)

    def search_request(self, rows: Any, part: list[int], search: Any) -> SearchRequest:
        """Return the search request for one batch. part: indices of the sources in the batch."""
        return SearchRequest(rows.pad(part))

    @abstractmethod
    def make_prediction(
        self, source: Any, row: np.ndarray | None, found: SearchResult, search: Any, nbest: int
    ) -> Prediction:
        """Return the prediction for a source from the result of the search.

        row: token ids of the source, if known. found: the search result for this source.
        """

    def encode_constraints(self, constraints: Constraints) -> TokenConstraints:
        """Return the constraints as token ids."""
        raise UserError(ONLY_TRANSDUCERS)

    def partial_prediction(self, source: Any) -> Callable[[PartialHypothesis], Prediction]:
        """Return a function that turns an unfinished output into a prediction."""
        raise UserError("streaming: only supported for tasks transduce and language-model")

    def score_pairs(
        self, engine: Any, pairs: Sequence[Pair], rows: int
    ) -> list[tuple[dict[str, Any], Prediction]]:
        """Return the scores of each given target, and the target as a prediction.

        rows: sources per batch.
        """
        raise UserError(
            f"task {self.kind}: scoring is only supported for transduce (pairs) and language-model "
            "(texts)"
        )

    def rewards(
        self, metric: str, outputs: Sequence[Sequence[int]], references: Sequence[Sequence[int]]
    ) -> list[float]:
        """Return the reward of each output, given as token ids, for training on a metric."""
        raise UserError(f"objective: rewards are not supported for task {self.kind}")

    @abstractmethod
    def check(self, train: Sequence[Pair], dev: Sequence[Pair]) -> DataCheck:
        """Return statistics of the data, and warnings about the data."""

    @abstractmethod
    def save(self, folder: Path) -> None:
        """Write the files that `TaskOptions.load` reads."""

    def parse(self, text: str) -> Any:
        """Parse an input line into a source."""
        return text

    def read_items(self, input: str, *columns: str | None) -> tuple[Iterator[InputItem], list[str]]:
        """Return the items of an input file, and notes on its format.

        Only tasks with `by_line = False` implement this.
        """
        raise NotImplementedError

    def graph_items(self, spec: DataSpec) -> tuple[Iterator[InputItem], list[str]]:
        """Return the items of a table of nodes with a table of edges, and notes."""
        spec.check_no_graph()
        raise UserError(f"--edges: not supported for task {self.kind}")

    @staticmethod
    def to_source(value: Any, number: int = 1) -> Any:
        """Convert a Python value to a source. number: example number, for error messages."""
        raise UserError(f"expected a string, found {value!r}")

    def forced_pass(self, request: InspectionRequest) -> ForcedPass:
        """Return a repeatable forward pass over a source with a fixed output, for inspection."""
        raise UserError(f"inspection is not supported for task {self.kind}")

    def inspection_search(self, options: dict[str, Any]) -> dict[str, Any]:
        """Return the search options of an inspection, given the options that the user set."""
        return options

    def examples(self, pairs: Iterable[Pair]) -> list[Example]:
        """Return the examples to evaluate, by default one per pair."""
        return [Example(pair.source, (pair.target,)) for pair in pairs]

    def details(
        self, predictions: Sequence[Prediction], examples: Sequence[Example]
    ) -> dict[str, Any]:
        """Return tables and data for figures that explain the metrics, ready for JSON."""
        return {}

    def signatures(self, examples: Sequence[Example]) -> dict[str, str]:
        """Return a description of each metric that has several variants (sacrebleu signature)."""
        return {}

    def loss_metrics(self, loss: float, parts: dict[str, float]) -> dict[str, float]:
        """Return the metrics that are computed from the loss. parts: terms of the loss by name."""
        return {}

    def calibrate(self, predictor: Any, examples: Sequence[Example]) -> bool:
        """Calibrate confidences on the dev set after training; return whether anything changed."""
        return False

    def reorder_for(self, corpus: Corpus, model: nn.Module) -> Corpus:
        """Return the corpus with its batches in the order that the model needs."""
        return corpus

    def samples(
        self, evaluation: "Evaluation", examples: Sequence[Example]
    ) -> list[dict[str, Any]]:
        """Return a fixed random sample of examples with their predictions, ready for JSON."""
        indices = random.Random(0).sample(range(len(examples)), k=len(examples))
        return [
            {
                "source": self.source.text(examples[i].source),
                "prediction": evaluation.predictions[i].text,
                "references": [to_text(reference) for reference in examples[i].references],
                **({"image": url} if (url := picture_url(examples[i].source, self.source)) else {}),
            }
            for i in sorted(indices[:NUM_SAMPLES])
        ]

    def solve(self, model: nn.Module, corpus: Corpus, objective: Objective) -> None:
        """Set the weights of a model to the closed-form solution."""
        raise UserError(
            "training.optimizer.kind=closed_form: only supported for linear regression with loss "
            "mse and n-gram language models",
            help="use --set training.optimizer.kind=adamw",
        )

    def evaluate(
        self,
        predictor: Any,
        examples: Sequence[Example],
        objective: Objective,
        search: Any,
        batch_size: int,
    ) -> Evaluation:
        """Return the metrics of a predictor on examples."""
        sources = [example.source for example in examples]
        mine = parallel.shard_items(sources)
        local = predictor.predict(mine, search, rows=batch_size) if mine else []
        predictions = parallel.all_gather(local)
        scores = self.score(predictions, examples)
        model = predictor.module
        if model is None:  # an engine that only predicts has no loss
            return Evaluation(scores, math.nan, predictions, self.details(predictions, examples))
        pairs = [Pair(e.source, reference, 0) for e in examples for reference in e.references]
        loss, parts = losses(model, self.corpus(pairs).passes(batch_size), objective)
        scores |= self.loss_metrics(loss, parts)
        return Evaluation(scores, loss, predictions, self.details(predictions, examples))
