"""The contract of a Task: all that the loop, validation and prediction know of the data.

The options of a task make it: `options.open(place, dev)` reads its data, `options.fit(pairs)`
makes the task from them, `options.load(folder)` from a run.
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
from regard.data.tokenizers.tokenizer import Tokenizer
from regard.inputs.input import Input
from regard.metrics.numbers import WeightedScores
from regard.objectives import Objective
from regard.search.callbacks import PartialHypothesis
from regard.search.hypothesis import TokenConstraints
from regard.search.search import SearchRequest, SearchResult
from regard.tasks.inspection.forced_pass import ForcedPass, InspectionRequest
from regard.tasks.rows import InputRows, SourceRows
from regard.tasks.task_loss import losses
from regard.tasks.values import Constraints, Evaluation, InputItem, Prediction, plain

__all__ = [
    "DataCheck",
    "Evaluation",
    "Prediction",
    "Task",
]

SAMPLES = 5  # predictions shown at each validation
ONLY_TRANSDUCERS = "prefix, require, ban: only supported for task transduce"


class Task(ABC):
    """Data to batches, outputs to answers, and the measures that fit. source: what it reads."""

    kind: str
    source: Input
    metric: str  # the measure that decides which model is best
    unit = "examples"  # what examples are called
    usage_hint = "regard predict {run} TEXT"  # what a trained model is for
    # What a model can be asked for, of predict, nbest, constraints, alignment, alternatives,
    # stream, score pairs, score texts, continue (what follows a text). Commands, server and page
    # read it from the Predictor. stepwise: those that need a model that gives steps.
    abilities: frozenset[str] = frozenset({"predict"})
    step_abilities: frozenset[str] = frozenset()
    exportable = False  # whether other engines than torch can run its models
    uses_threads = False  # whether threads and processes share the batches of predictions
    empty_prediction: Prediction | None = (
        None  # of a source without any position, which no model reads
    )
    by_line = True  # whether each line of an input is a source; otherwise see `read_items`
    reads_source = True  # whether it predicts from a source; language models only continue
    writes_text = False  # whether targets are texts, or sequences of words
    is_aligned = False  # whether each target token belongs to a source position

    @property
    def output_tokenizer(self) -> Tokenizer | None:
        """The vocabulary of what the model generates; None where it gives labels or numbers."""
        return None

    def count_label(self, count: int) -> str:
        """So many examples, in words."""
        return f"{count:,} {self.unit if count != 1 else self.unit.removesuffix('s')}"

    @abstractmethod
    def corpus(self, pairs: Sequence[Pair]) -> Corpus:
        """The examples as numbers, ready for training."""

    @abstractmethod
    def stats(self, corpus: Corpus) -> DataStats:
        """What the choice of a model depends on."""

    @abstractmethod
    def build(self, options: Any) -> nn.Module:
        """The model of these options, with what only the data knows: vocabulary sizes."""

    def rows(self, sources: Sequence[Any]) -> SourceRows:
        """Return the sources as batches are made of them."""
        return InputRows(self.source, sources)

    def search_request(self, rows: Any, part: list[int], search: Any) -> SearchRequest:
        """Return what a search is asked about these of the rows."""
        return SearchRequest(rows.pad(part))

    @abstractmethod
    def make_prediction(
        self, source: Any, row: np.ndarray | None, found: SearchResult, search: Any, nbest: int
    ) -> Prediction:
        """Return the prediction for a source, from what the search found. row: its tokens."""

    def encode_constraints(self, constraints: Constraints) -> TokenConstraints:
        """Return what is asked of a prediction, as tokens."""
        raise UserError(ONLY_TRANSDUCERS)

    def partial_prediction(self, source: Any) -> Callable[[PartialHypothesis], Prediction]:
        """Return what makes a prediction of an output that is not complete yet."""
        raise UserError("only transducers and language models give an output token by token")

    def score_pairs(
        self, engine: Any, pairs: Sequence[Pair], rows: int
    ) -> list[tuple[dict[str, Any], Prediction]]:
        """Return how probable given outputs are: statistics, and the output as a prediction."""
        raise UserError(
            f"a {self.kind} model; only language models score texts, and transducers pairs"
        )

    @abstractmethod
    def check(self, train: Sequence[Pair], dev: Sequence[Pair]) -> DataCheck:
        """What is in the data, and what is odd."""

    @abstractmethod
    def save(self, folder: Path) -> None:
        """Writes all that `load` needs."""

    def compute_metrics(
        self, predictions: Sequence[Prediction], examples: Sequence[Example]
    ) -> WeightedScores | None:
        """What is measured of predictions; None where all comes from the loss."""
        return None

    def score(
        self, predictions: Sequence[Prediction], examples: Sequence[Example]
    ) -> dict[str, float]:
        """Measures by name."""
        measured = self.compute_metrics(predictions, examples)
        return {} if measured is None else measured.scores()

    def intervals(
        self, predictions: Sequence[Prediction], examples: Sequence[Example]
    ) -> dict[str, tuple[float, float]]:
        """95 % bootstrap intervals of the same measures."""
        measured = self.compute_metrics(predictions, examples)
        return {} if measured is None else measured.intervals()

    def parse(self, text: str) -> Any:
        """A source as it is written in a line."""
        return text

    def read_items(self, input: str, *columns: str | None) -> tuple[Iterator[InputItem], list[str]]:
        """Return the sources of an input, if they are not its lines, and notes on its format."""
        raise NotImplementedError

    @staticmethod
    def to_source(value: Any, number: int = 1) -> Any:
        """Return a source from what the user gives in place of a line. number: of the example."""
        raise UserError(f"a text expected, {value!r} found")

    def forced_pass(self, request: InspectionRequest) -> ForcedPass:
        """Return a repeatable pass over a source and its output; raise UserError by default."""
        raise UserError(f"a {self.kind} model cannot be inspected")

    def inspection_search(self, given: dict[str, Any]) -> dict[str, Any]:
        """Return the settings of the search for an inspection. given: by the user."""
        return given

    def examples(self, pairs: Iterable[Pair]) -> list[Example]:
        """What is evaluated: by default each pair."""
        return [Example(pair.source, (pair.target,)) for pair in pairs]

    def details(
        self, predictions: Sequence[Prediction], examples: Sequence[Example]
    ) -> dict[str, Any]:
        """What stands behind the scores: tables and figures, ready for JSON."""
        return {}

    def signatures(self, examples: Sequence[Example]) -> dict[str, str]:
        """How measures were computed, for those that have several ways."""
        return {}

    def loss_metrics(self, loss: float, parts: dict[str, float]) -> dict[str, float]:
        """Measures that follow from the loss."""
        return {}

    def calibrate(self, predictor: Any, examples: Sequence[Example]) -> bool:
        """Fits what is fitted after training, on dev; True where something was."""
        return False

    def reorder_for(self, corpus: Corpus, model: nn.Module) -> Corpus:
        """The corpus in the order that suits a model."""
        return corpus

    def samples(
        self, evaluation: "Evaluation", examples: Sequence[Example]
    ) -> list[dict[str, Any]]:
        """A few examples with their predictions, always the same ones, ready for JSON."""
        places = random.Random(0).sample(range(len(examples)), k=len(examples))
        return [
            {
                "source": self.source.text(examples[i].source),
                "prediction": evaluation.predictions[i].text,
                "references": [plain(reference) for reference in examples[i].references],
            }
            for i in sorted(places[:SAMPLES])
        ]

    def solve(self, model: nn.Module, corpus: Corpus, objective: Objective) -> None:
        """Trains a model in one step, by a formula."""
        raise UserError(
            "training.optimizer.kind=closed_form: only linear regression with loss mse and n-gram "
            "language models are solved by a formula; choose adamw"
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
        answers = predictor.predict(mine, search, rows=batch_size) if mine else []
        predictions = parallel.all_gather(answers)
        scores = self.score(predictions, examples)
        model = predictor.module
        if model is None:  # an engine that only predicts has no loss
            return Evaluation(scores, math.nan, predictions, self.details(predictions, examples))
        pairs = [Pair(e.source, reference, 0) for e in examples for reference in e.references]
        loss, parts = losses(model, self.corpus(pairs).passes(batch_size), objective)
        scores |= self.loss_metrics(loss, parts)
        return Evaluation(scores, loss, predictions, self.details(predictions, examples))
