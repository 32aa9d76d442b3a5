"""From the questions of a window to the lines that answer them."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from regard.core.errors import UserError
from regard.data.reading.lines import show_path
from regard.inference.prediction.input_items import InputItem
from regard.inference.prediction.predict_options import Wanted
from regard.inference.prediction.prediction_warnings import Oddities
from regard.inference.predictor import Predictor
from regard.search.constrained import UNMET, Unmet
from regard.tasks.batches import Work
from regard.tasks.task import Prediction
from regard.tasks.values import Request


class Answerer:
    """A model that answers as it is wanted; what is odd about its answers is counted."""

    def __init__(self, predictor: Predictor, wanted: Wanted, search: Any, odd: Oddities) -> None:
        self.predictor, self.wanted, self.search, self.odd = predictor, wanted, search, odd
        self.form = replace(wanted.form, names=predictor.task.source.names)

    def __call__(
        self, window: list[InputItem], first: int, done: Callable[[int], None]
    ) -> list[str]:
        """The answers of a window whose first source is number `first` of all, line ends and all.

        done: is told how many more are answered.
        """
        try:
            return self._lines(window, Work(self.wanted.batch_tokens, first, done))
        except Unmet as error:
            text = repr(window[error.row].text)
            line = f"{show_path(self.wanted.input)} line {first + error.row + 1}"
            raise UserError(f"{text if self.wanted.texts else line}: {UNMET}") from error

    def _lines(self, window: list[InputItem], work: Work) -> list[str]:
        if self.form.alternatives:
            return [self._options(question, n, work.done) for n, question in enumerate(window)]
        found = self._predict(window, work)
        for prediction in found:
            self.odd.add(prediction)
        return [self.form.line(q, p) for q, p in zip(window, found, strict=True)]

    def _predict(self, window: list[InputItem], work: Work) -> list[Prediction]:
        sources = [question.source for question in window]
        asked = [self._request(question) for question in window]
        requests = None if all(request == Request() for request in asked) else asked
        form, size = self.form, self.wanted.batch_size
        return self.predictor.predict(
            sources, self.search, form.nbest, requests, form.alignment, size, work
        )

    def _request(self, question: InputItem) -> Request:
        return question.request or self.wanted.request

    def _options(self, question: InputItem, row: int, done: Callable[[int], None]) -> str:
        """How the answer to one source may go on behind its prefix."""
        wish = self._request(question)
        count, source = self.form.alternatives, question.source
        try:
            found = self.predictor.alternatives(source, wish, count, self.search)
        except Unmet as error:  # there the rows are the alternatives
            raise Unmet(row) from error
        for prediction in [found[0][2]] if found else []:
            self.odd.add(prediction)
        done(1)
        return self.form.options(source, wish.prefix, found)
