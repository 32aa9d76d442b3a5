"""The LanguageModel: text that goes on, and how probable a text is."""

from collections.abc import Iterator, Sequence
from typing import Any

from regard.core.errors import UserError
from regard.data.reading.read import Pair
from regard.estimators.estimator import Estimator


class LanguageModel(Estimator):
    """Learns running text, a text or a list of documents, and writes on."""

    task = "language-model"

    def pairs(self, X: Any, y: Any) -> list[Pair]:
        """Documents from a text or a list of texts."""
        if y is not None:
            raise UserError("a LanguageModel learns from texts alone: fit(texts)")
        texts = [X] if isinstance(X, str) else list(X)
        if not texts:
            raise UserError("no text: at least one document is expected")
        for number, text in enumerate(texts, 1):
            if not isinstance(text, str) or not text:
                raise UserError(f"document {number}: a text expected, {text!r} found")
        return [Pair("", text, number) for number, text in enumerate(texts, 1)]

    def predict(
        self, X: Sequence[str], nbest: int = 1, batch_size: int = 64, **search: Any
    ) -> list[Any]:
        """Each text with what follows it; with nbest > 1 a list of such texts.

        search: temperature, top_k, top_p, length, seed.
        """
        found = self.predictions(X, nbest, batch_size, **search)
        if nbest == 1:
            return [prediction.text for prediction in found]
        return [[other.text for other in prediction.alternatives] for prediction in found]

    def generate(self, prompt: str = "", row: int = 0, **search: Any) -> Iterator[str]:
        """What follows the prompt, piece by piece as it is written; another `row`, another text."""
        predictor = self.predictor_
        return predictor.stream(prompt, predictor.search(**search), row)

    def unknown(self, text: str) -> tuple[str, ...]:
        """The tokens of a text that training never saw."""
        return self.predictor_.task.source.unknown(text)

    def scores(self, X: Sequence[str], batch_size: int = 64) -> list[dict[str, float]]:
        """For each text: nats, tokens, characters, loss, perplexity, bits_per_character."""
        pairs = [Pair("", text, 0) for text in self.sources(X)]
        return [row for row, _ in self.predictor_.score(pairs, batch_size)]
