"""The LanguageModel estimator, which generates and scores text."""

from collections.abc import Iterator, Sequence
from typing import Any

from regard.core.argument_names import names_arguments
from regard.core.errors import UserError
from regard.data.reading.read import Pair
from regard.estimators.estimator import Estimator
from regard.estimators.rows import to_rows


class LanguageModel(Estimator):
    """Language model. `fit` takes one text, or a list of documents."""

    task = "language-model"

    def _to_pairs(self, X: Any, y: Any) -> list[Pair]:
        """Convert a text, or a list of documents, to training examples."""
        if y is not None:
            raise UserError("y: a LanguageModel is trained on texts only: fit(texts)")
        texts = [X] if isinstance(X, str) else to_rows(X)
        if not texts:
            raise UserError("X: expected at least one document, found none")
        for number, text in enumerate(texts, 1):
            if not isinstance(text, str) or not text:
                raise UserError(f"document {number}: expected a string, found {text!r}")
        return [Pair("", text, number) for number, text in enumerate(texts, 1)]

    @names_arguments
    def predict(
        self, X: Sequence[str], nbest: int = 1, batch_size: int = 64, **search: Any
    ) -> list[Any]:
        """Return each text with its continuation; with nbest > 1, a list of texts per prompt.

        X: prompts. nbest: continuations per prompt. batch_size: prompts per batch; it does not
        change predictions. search: search options such as temperature, top_k, top_p, max_length
        and seed.
        """
        found = self.predict_detailed(X, nbest, batch_size, **search)
        if nbest == 1:
            return [prediction.text for prediction in found]
        return [[one.text for one in prediction.nbest] for prediction in found]

    @names_arguments
    def generate(self, prompt: str = "", sample_index: int = 0, **search: Any) -> Iterator[str]:
        """Yield a continuation of the prompt, piece by piece.

        prompt: the text to continue. sample_index: number of the random sample. search: search
        options by name.
        """
        predictor = self.predictor_
        return predictor.stream(prompt, predictor.search_options(**search), sample_index)

    @names_arguments
    def unknown_tokens(self, text: str) -> tuple[str, ...]:
        """Return the tokens of a text that are not in the vocabulary. text: any text."""
        return self.predictor_.task.source.unknown(text)

    @names_arguments
    def log_likelihoods(self, X: Sequence[str], batch_size: int = 64) -> list[dict[str, float]]:
        """Return nats, tokens, characters, loss, perplexity and bits_per_character of each text.

        X: texts. batch_size: texts per batch.
        """
        pairs = [Pair("", text, 0) for text in self._to_sources(X)]
        return [row for row, _ in self.predictor_.score(pairs, batch_size)]
