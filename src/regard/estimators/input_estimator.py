"""The base class of Classifier and Regressor, whose sources are texts, vectors or images."""

from collections.abc import Sequence
from typing import Any

from regard.config.load import Config
from regard.core.errors import UserError
from regard.data.reading.graph import Graph
from regard.data.reading.read import Pair
from regard.estimators.estimator import Estimator
from regard.estimators.graphs import is_graph, to_graph
from regard.estimators.media_rows import check_kind
from regard.estimators.rows import to_columns
from regard.inputs.input import Input
from regard.tasks.labeled_data import text_or_vector


class InputEstimator(Estimator):
    """Base class of Classifier and Regressor.

    Vectors follow the conventions of scikit-learn, and so do the words of their errors. The tags
    describe vectors: scikit-learn has no tag for an estimator that reads texts or vectors.
    """

    @property
    def n_features_in_(self) -> int:
        """The numbers per vector. Models of texts or images do not have this attribute."""
        source: Input = self.predictor_.task.source
        if source.sequential or source.media:
            raise AttributeError("n_features_in_")
        return source.shape.size

    def _to_sources(self, X: Any) -> list[Any]:
        """Return texts unchanged, vectors as tuples of floats, and images as `Image`."""
        rows = super()._to_sources(X)
        if rows and is_graph(rows[0]):
            return [to_graph(row, number) for number, row in enumerate(rows, 1)]
        if (media := self._media(rows)) is not None:
            return media
        _check_vectors(rows)
        sources = [text_or_vector(row, number) for number, row in enumerate(rows, 1)]
        for number, source in enumerate(sources, 1):
            if _shape(source) != _shape(sources[0]):
                raise UserError(
                    f"example {number}: expected {_shape(sources[0])} as in example 1, "
                    f"found {_shape(source)}"
                )
        return sources

    def _check_sources(self, sources: Sequence[Any]) -> None:
        """Raise UserError if vectors do not have as many numbers as in training."""
        check_kind(sources, self.predictor_.task.source)
        expected = getattr(self, "n_features_in_", None)
        if expected is None or not sources or isinstance(sources[0], str | Graph):
            return
        if len(sources[0]) != expected:
            raise UserError(
                f"X has {len(sources[0])} features, but {type(self).__name__} is expecting "
                f"{expected} features as input"
            )

    def _to_pairs(self, X: Any, y: Any) -> list[Pair]:
        """Convert sources X and targets y, or pairs (source, target), to training examples."""
        X, y = to_columns(X, y)
        sources = self._to_sources(X)
        targets = [self._to_target(value, number) for number, value in enumerate(y, 1)]
        both = zip(sources, targets, strict=True)
        return [Pair(source, target, n) for n, (source, target) in enumerate(both, 1)]

    def _to_target(self, value: Any, number: int) -> tuple[Any, ...]:
        """Return the target of an example as a tuple."""
        raise NotImplementedError

    def _hold_out(self, config: Config, pairs: list[Pair]) -> tuple[list[Pair], list[Pair]]:
        if len(pairs) == 1:
            raise UserError(
                "X has 1 sample: at least 2 are needed, because one is held out as the dev set",
                help="pass more examples, or dev=pairs to fit",
            )
        return super()._hold_out(config, pairs)


def _check_vectors(rows: list[Any]) -> None:
    """Raise UserError if rows are numbers instead of vectors, or vectors without numbers."""
    if not rows or isinstance(rows[0], str):
        return
    if isinstance(rows[0], complex | float | int) or getattr(rows[0], "shape", None) == ():
        raise UserError(
            "X: expected texts or a 2D array (samples, features), found a 1D array of numbers",
            help="Reshape your data: X.reshape(-1, 1) if it has a single feature, or "
            "X.reshape(1, -1) if it is a single sample",
        )
    if hasattr(rows[0], "__len__") and len(rows[0]) == 0:
        raise UserError(
            f"X has 0 feature(s) (shape=({len(rows)}, 0)) while a minimum of 1 is required."
        )


def _shape(source: Any) -> str:
    return "a text" if isinstance(source, str) else f"{len(source)} numbers"
