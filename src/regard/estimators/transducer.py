"""The Transducer: a sequence in, a sequence of its own length out."""

from collections.abc import Iterable, Sequence
from typing import Any

from regard.data.read import Pair
from regard.errors import UserError
from regard.estimators.base import Estimator


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
    ) -> list[Any]:
        """The answer to each source; with nbest > 1 a list of answers, best first."""
        found = self.predictions(X, nbest, batch_size, beam=beam)
        if nbest == 1:
            return [prediction.text for prediction in found]
        return [[other.text for other in prediction.alternatives] for prediction in found]


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
            pairs.append(Pair(str(source), str(target), number))
    return pairs
