"""The Transducer: a sequence in, a sequence of its own length out."""

from collections.abc import Iterable, Sequence
from typing import Any

from regard.core.errors import UserError
from regard.data.reading.read import Pair
from regard.estimators.estimator import Estimator
from regard.tasks.task import Prediction
from regard.tasks.values import Request


class Transducer(Estimator):
    """A sequence in, a sequence of its own length out.

    `fit` takes pairs `[(source, target), ...]`, or sources X and targets y; a target may be a list
    of alternatives.
    """

    task = "transduce"

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
        the search, such as `length_penalty=1`; `kind="sample"` with `temperature=0.8` samples.
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
        """The answers with scores, alternatives and unknown tokens; `align`: with alignments."""
        predictor, sources = self.predictor_, self.sources(X)
        options = predictor.search(**search)
        return predictor.predict(sources, options, nbest, requests, align, batch_size)

    def scores(self, X: Any, y: Any = None, batch_size: int = 64) -> list[dict[str, Any]]:
        """How probable given targets are: of each pair log_probability, perplexity, tokens.

        tokens: each token of the target with its log probability, the end among them.
        """
        return [row for row, _ in self.predictor_.score(self.pairs(X, y), batch_size)]


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
