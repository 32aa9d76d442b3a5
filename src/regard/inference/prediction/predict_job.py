"""Predictions for many texts, in their order, as soon as they come."""

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from regard.core import parallel
from regard.core.errors import UserError, info
from regard.data.reading.lines import show_path
from regard.inference.prediction.input_items import (
    count_lines,
    file_items,
    is_whole,
    json_items,
    text_items,
)
from regard.inference.prediction.partial_file import PartFile
from regard.inference.prediction.predict_options import PredictOptions, Share, search_changes
from regard.inference.prediction.prediction_progress import PredictionProgress
from regard.inference.prediction.prediction_warnings import Oddities
from regard.inference.prediction.sink import Stream, opened
from regard.inference.prediction.windows import fixed_windows, live_windows
from regard.inference.predictor import Predictor
from regard.search.constrained import ConstraintsNotMet
from regard.tasks.batches import Work
from regard.tasks.values import Constraints, InputItem

COUNTED = 1 << 30  # bytes of a file whose lines are counted to say how long it will take


def predict_job(predictor: Predictor, asked: PredictOptions, share: Share) -> None:
    """Write the predictions of a model, or of the share of this process."""
    changes = search_changes(asked.search, asked.settings)
    job = PredictJob(predictor, asked, predictor.search_options(**changes))
    asked.check_model(predictor)
    bare = not asked.form.json_lines and not asked.output and share.parts == 1
    if "continue" in predictor.abilities and asked.texts and bare:
        job.write_on()
        job.odd.say()
        return
    first, end = job.bounds(share) if share.parts > 1 else (0, None)
    items = islice(job.items(), first, end)
    facts = lambda: asked.facts(share, job.search)  # noqa: E731 -- slow: only where it is needed
    with opened(asked.output, facts, job.odd, asked.force, predictor.engine) as sink:
        if isinstance(sink, PartFile):
            sink.skip(items, show_path(asked.input))
        job.run(items, sink, first, end)
    job.odd.of_all().say()


@dataclass(frozen=True)
class PredictJob:
    """A model, what is asked of it, the search; what is odd about its predictions is counted."""

    predictor: Predictor
    asked: PredictOptions
    search: Any
    odd: Oddities = field(default_factory=Oddities)

    def items(self, quiet: bool = False) -> Iterator[InputItem]:
        """Return all that is asked, whatever the share."""
        asked, task = self.asked, self.predictor.task
        if asked.texts:
            return text_items(task, asked.texts)
        if asked.input_json:
            return json_items(task, asked.input, asked.constraints)
        return file_items(self.predictor, asked.input, asked.columns, quiet)

    def bounds(self, share: Share) -> tuple[int, int]:
        """Return the first source of a share and the one after its last."""
        asked = self.asked
        if not asked.texts and not is_whole(asked.input):
            why = "--shard" if asked.shard else "several processes"
            raise UserError(
                f"{why}: {show_path(asked.input)} cannot be divided, since nobody knows how long "
                "it is; give --input FILE"
            )
        if asked.texts or not self.predictor.task.by_line:
            return share.bounds(sum(1 for _ in self.items(quiet=True)))
        return share.bounds(count_lines(asked.input))

    def count(self) -> int | None:
        """Return how many sources there are; None where it would take long to find out."""
        path = self.asked.input
        if self.asked.texts:
            return len(self.asked.texts)
        short = is_whole(path) and os.path.getsize(path) <= COUNTED
        return count_lines(path) if short and self.predictor.task.by_line else None

    def run(
        self, items: Iterator[InputItem], sink: Stream | PartFile, first: int, end: int | None
    ) -> None:
        """Predict window after window. first, end: numbers of the sources of this share."""
        asked, printed = self.asked, isinstance(sink, Stream)
        fixed = not printed or asked.texts or is_whole(asked.input)
        windows = fixed_windows(items, sink.answered) if fixed else live_windows(items)
        number = first + sink.answered
        unit = "lines" if self.predictor.task.by_line else "sentences"
        count = self.count if end is None else lambda: end - first
        quiet = parallel.rank() > 0
        shown = PredictionProgress(count, unit, sink.answered, quiet, printed)
        with closing(shown) as progress:
            for window in windows:
                sink.write(window, self.lines(window, number, progress.advance))
                number += len(window)
        if not number and asked.input != "-" and end is None:  # a pipe may well be empty
            info(f"{asked.input}: empty, so there are no answers")

    def lines(self, window: list[InputItem], first: int, done: Callable[[int], None]) -> list[str]:
        """Return the predictions of a window as they are written, line ends and all.

        first: the number of its first source among all. done: is told how many more are there.
        """
        asked, form = self.asked, self.asked.form
        try:
            if form.alternatives:
                return [self._alternatives(item, n, done) for n, item in enumerate(window)]
            constraints = None
            if asked.input_json or asked.constraints != Constraints():
                constraints = [item.constraints or asked.constraints for item in window]
            found = self.predictor.predict(
                [item.source for item in window],
                self.search,
                form.nbest,
                constraints,
                form.alignment,
                asked.batch_size,
                Work(asked.batch_tokens, first, done),
            )
        except ConstraintsNotMet as error:
            text = repr(window[error.row].text)
            line = f"{show_path(asked.input)} line {first + error.row + 1}"
            raise ConstraintsNotMet(error.row, text if asked.texts else line) from error
        for prediction in found:
            self.odd.add(prediction)
        tokens = self.predictor.task.source.names
        return [form.line(item, one, tokens) for item, one in zip(window, found, strict=True)]

    def _alternatives(self, item: InputItem, row: int, done: Callable[[int], None]) -> str:
        """Return how the prediction for one source may continue after its prefix."""
        constraints, form = item.constraints or self.asked.constraints, self.asked.form
        try:
            found = self.predictor.alternatives(
                item.source, constraints, form.alternatives, self.search
            )
        except ConstraintsNotMet as error:  # there the rows are the alternatives
            raise ConstraintsNotMet(row) from error
        for _, _, prediction in found[:1]:
            self.odd.add(prediction)
        done(1)
        return form.format_alternatives(item.source, constraints.prefix, found)

    def write_on(self) -> None:
        """Print each text and what follows it, piece by piece."""
        task, nbest = self.predictor.task, self.asked.form.nbest
        for place, item in enumerate(text_items(task, self.asked.texts)):
            self.odd.add_unknown(task.source.unknown(item.text))
            for number in range(place * nbest, (place + 1) * nbest):
                pieces = self.predictor.stream(item.text, self.search, number)
                sys.stdout.write(item.text)
                for piece in pieces:
                    sys.stdout.write(piece)
                    sys.stdout.flush()
                sys.stdout.write("\n")
