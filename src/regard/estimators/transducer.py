"""The Transducer: a sequence in, a sequence of its own length out."""

import math
from collections.abc import Iterable, Sequence
from typing import Any

from regard.core.errors import UserError
from regard.data.reading.read import Pair
from regard.data.tensors.special import EOS, SPECIALS
from regard.estimators.estimator import Estimator
from regard.inference.engine import Engine
from regard.search import Beam
from regard.tasks.answering import as_engine
from regard.tasks.task import Prediction
from regard.tasks.transduce import Transduce
from regard.tasks.values import Request


class Transducer(Estimator):
    """A sequence in, a sequence of its own length out.

    `fit` takes pairs `[(source, target), ...]`, or sources X and targets y; a target may be a list
    of alternatives.
    """

    task = "transduce"
    _kept: tuple[Any, Engine] | None = None

    def pairs(self, X: Any, y: Any) -> list[Pair]:
        """Examples from pairs, or from sources and targets."""
        return _pairs(X, y)

    def predict(
        self,
        X: Sequence[str],
        beam: int | None = None,
        nbest: int = 1,
        batch_size: int = 64,
        requests: Sequence[Request] | None = None,
        **search: Any,
    ) -> list[Any]:
        """The answer to each source; with nbest > 1 a list of answers, best first.

        requests: what is asked of each answer, `Request(prefix, must, ban)`. search: settings of
        the search, such as `alpha=1`; `kind="sample"` with `temperature=0.8` draws answers.
        """
        found = self.predictions(X, nbest, batch_size, requests, beam=beam, **search)
        if nbest == 1:
            return [prediction.text for prediction in found]
        return [[other.text for other in prediction.alternatives] for prediction in found]

    def predictions(
        self,
        X: Any,
        nbest: int = 1,
        batch_size: int = 64,
        requests: Sequence[Request] | None = None,
        align: bool = False,
        **search: Any,
    ) -> list[Prediction]:
        """The answers with scores, alternatives and unknown symbols; `align`: with alignments."""
        self._check_fitted()
        assert isinstance(self.task_, Transduce)
        sources, options = self.sources(X), self.search(**search)
        if requests is not None and len(requests) != len(sources):
            raise UserError(f"requests: {len(sources)} expected, {len(requests)} given")
        return self.task_.predict(
            self._engine(), sources, options, nbest, batch_size, requests=requests, align=align
        )

    def _engine(self) -> Engine:
        """What runs the model; made anew only where the model or its weights have changed."""
        if isinstance(self.model_, Engine):
            return self.model_
        weights = [(w._version, w.data_ptr(), w.dtype, w.device) for w in self.model_.parameters()]
        state = (self.model_, weights)
        if self._kept is None or self._kept[0] != state:
            self._kept = (state, as_engine(self.model_))
        return self._kept[1]

    def __getstate__(self) -> dict[str, Any]:
        """What a copy takes over: an engine is made anew."""
        return {name: value for name, value in vars(self).items() if name != "_kept"}

    def scores(self, X: Any, y: Any = None, batch_size: int = 64) -> list[dict[str, Any]]:
        """How probable given targets are: of each pair log_probability, perplexity, symbols.

        symbols: each symbol of the target with its log probability, the end among them.
        """
        self._check_fitted()
        pairs = self.pairs(X, y)
        return [row for row, _ in scored(self.task_, self.model_, pairs, batch_size)]


def scored(
    task: Any, model: Any, pairs: Sequence[Pair], batch_size: int
) -> list[tuple[dict[str, Any], Prediction]]:
    """The figures of each pair, and its target as if it had been predicted."""
    rows = []
    for found in task.forced(model, pairs, Beam(), batch_size):
        total = math.fsum(found.symbol_scores)
        symbols = [*found.symbols, SPECIALS[EOS]]
        row = {
            "log_probability": total,
            "perplexity": math.exp(min(-total / len(symbols), 700.0)),
            "symbols": list(zip(symbols, found.symbol_scores, strict=True)),
        }
        rows.append((row, found))
    return rows


def _pairs(X: Iterable[Any], y: Iterable[Any] | None) -> list[Pair]:
    """Pairs from pairs, or from sources and targets; a target may be a list of alternatives."""
    rows = list(X) if y is None else list(zip(X, y, strict=True))
    pairs = []
    for number, row in enumerate(rows, 1):
        if isinstance(row, str) or len(row) != 2:
            raise UserError(f"example {number}: a pair (source, target) expected, {row!r} found")
        source, targets = row
        if not isinstance(targets, str) and len(targets) == 0:
            raise UserError(f"example {number}: a target expected, an empty list found")
        for target in [targets] if isinstance(targets, str) else targets:
            pairs.append(Pair(_source(source), str(target), number))
    return pairs


def _source(source: Any) -> Any:
    """Sequences as they are, for inputs that read them; all else as a text."""
    return source if isinstance(source, tuple | list) else str(source)
