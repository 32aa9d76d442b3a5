"""The Transducer estimator: sequence-to-sequence models."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from regard.core.argument_names import names_arguments
from regard.core.errors import UserError
from regard.data.reading.media_source import MediaSource
from regard.data.reading.read import Pair
from regard.estimators.estimator import Estimator
from regard.estimators.media_rows import check_kind
from regard.estimators.rows import check_present, to_columns
from regard.tasks.task import Prediction
from regard.tasks.values import Constraints

REFERENCES = (list, tuple, np.ndarray)  # types of a target with several references


class Transducer(Estimator):
    """Sequence-to-sequence model.

    `fit` takes pairs `[(source, target), ...]`, or sources X and targets y. A target may be a list
    of references.
    """

    task = "transduce"

    def _to_pairs(self, X: Any, y: Any) -> list[Pair]:
        """Convert pairs X, or sources X and targets y, to training examples."""
        X, y = to_columns(X, y)
        return _pairs(self._media(X) or X, y)

    def _to_sources(self, X: Any) -> list[Any]:
        rows = super()._to_sources(X)
        for number, row in enumerate(rows, 1):
            check_present(row, number, "a source")
        return self._media(rows) or rows

    def _check_sources(self, sources: Sequence[Any]) -> None:
        check_kind(sources, self.predictor_.task.source)

    @names_arguments
    def predict(
        self,
        X: Sequence[str],
        beam: int | None = None,
        nbest: int = 1,
        batch_size: int = 64,
        constraints: Sequence[Constraints] | None = None,
        **search: Any,
    ) -> list[Any]:
        """Return the output for each source; with nbest > 1, a list of outputs, best first.

        X: source texts. beam: beam size (1 = greedy). nbest: outputs per source. batch_size:
        sources per batch; it does not change predictions.
        constraints: one `Constraints(prefix, require, ban)` per source. search: search options,
        such as `length_penalty=1`, or `kind="sample", temperature=0.8` for random sampling.
        """
        found = self.predict_detailed(X, nbest, batch_size, constraints, beam=beam, **search)
        if nbest == 1:
            return [prediction.text for prediction in found]
        return [[one.text for one in prediction.nbest] for prediction in found]

    @names_arguments
    def predict_detailed(
        self,
        X: Any,
        nbest: int = 1,
        batch_size: int = 64,
        constraints: Sequence[Constraints] | None = None,
        return_alignment: bool = False,
        **search: Any,
    ) -> list[Prediction]:
        """Return the predictions with scores, tokens, n-best lists and unknown tokens.

        X, nbest, batch_size, constraints, search: as for `predict`. return_alignment: add the
        attention of each output token to the source.
        """
        predictor, sources = self.predictor_, self._to_sources(X)
        self._check_sources(sources)
        options = predictor.search_options(**search)
        return predictor.predict(sources, options, nbest, constraints, return_alignment, batch_size)

    @names_arguments
    def log_likelihoods(self, X: Any, y: Any = None, batch_size: int = 64) -> list[dict[str, Any]]:
        """Return the log probability of each target, EOS included (teacher forcing).

        X, y: sources and targets, or pairs X. batch_size: pairs per batch.
        Each dict has the keys log_probability, perplexity, tokens and token_logprobs.
        """
        if "score pairs" not in self.predictor_.abilities:
            raise UserError(
                "log_likelihoods: expected a model that decodes token by token, this one outputs "
                f"{self.config_.model.gives}"
            )
        return [row for row, _ in self.predictor_.score(self._to_pairs(X, y), batch_size)]


def _pairs(X: Any, y: Any) -> list[Pair]:
    """Convert pairs X, or X and y, to examples. A list of references gives several examples."""
    pairs = []
    for number, (source, target) in enumerate(zip(*to_columns(X, y), strict=True), 1):
        check_present(source, number, "a source")
        references = list(target) if isinstance(target, REFERENCES) else [target]
        if not references:
            raise UserError(f"example {number}: expected a target, found an empty list")
        for reference in references:
            check_present(reference, number, "a target")
            pairs.append(Pair(_source(source), str(reference), number))
    return pairs


def _source(source: Any) -> Any:
    """Return lists, tuples, images and sounds unchanged, and other values as strings."""
    return source if isinstance(source, tuple | list | MediaSource) else str(source)
