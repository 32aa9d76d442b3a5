"""Many texts, answered in their order, as soon as they come."""

import os
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any

from regard.core import parallel
from regard.core.errors import UserError, say
from regard.data.reading.lines import show_path
from regard.inference.prediction.answerer import Answerer
from regard.inference.prediction.constraint_lines import check_wishes, json_questions
from regard.inference.prediction.ensembles import joined
from regard.inference.prediction.input_items import (
    InputItem,
    count_lines,
    is_whole,
    questions,
    texts_asked,
)
from regard.inference.prediction.predict_options import Wanted, search_changes
from regard.inference.prediction.prediction_progress import PredictionProgress
from regard.inference.prediction.prediction_warnings import Oddities
from regard.inference.prediction.shard_files import Share
from regard.inference.prediction.sink import Sink, Stream, check_output, opened
from regard.inference.prediction.windows import fixed_windows, live_windows
from regard.inference.predictor import Predictor
from regard.tasks.tag import Tag

Load = Callable[..., Predictor]
COUNTED = 1 << 30  # bytes of a file whose lines are counted to say how long it will take


def predict_job(wanted: Wanted, load: Load) -> None:
    """Answers texts in their order, as soon as they come. load: opens a model."""
    with parallel.processes():
        check_output(wanted.output)
        wanted.form.check()
        share = Share.of(wanted.shard)
        predictor = _load(wanted, load)
        changes = search_changes(predictor.config, wanted.search, wanted.settings)
        search = predictor.search(**changes)
        _check(predictor, wanted)
        bare = not wanted.form.json_lines and not wanted.output and share.parts == 1
        if "continue" in predictor.task.abilities and wanted.texts and bare:
            return _write_on(predictor, wanted, search)
        odd = Oddities()
        asked = PredictJob(predictor, wanted, _bounds(predictor, wanted, share))
        mine = islice(_questions(predictor, wanted), *asked.bounds)
        answerer = Answerer(predictor, wanted, search, odd)
        facts = lambda: wanted.facts(share, search)  # noqa: E731 -- slow: only where it is needed
        with opened(wanted.output, facts, odd, wanted.force, predictor.engine) as sink:
            rest = sink.unanswered(mine, show_path(wanted.input))
            _answer(asked, answerer, rest, sink)
        odd.of_all().say()


def _load(wanted: Wanted, load: Load) -> Predictor:
    """The model that answers."""
    if wanted.shortlist and wanted.others:
        raise UserError("--shortlist: not for several models that answer together (--with)")
    how = (wanted.engine, wanted.quantize, wanted.shortlist)
    predictor = load(wanted.model, *how)
    return joined(predictor, {other: load(other, *how) for other in wanted.others})


def _check(predictor: Predictor, wanted: Wanted) -> None:
    """Refuses what this model does not do."""
    form = wanted.form
    if form.nbest > 1 and "nbest" not in predictor.task.abilities:
        raise UserError(f"--nbest: a {predictor.task.kind} model gives one answer to each source")
    special = wanted.input_json or form.alignment or form.alternatives > 0
    check_wishes(predictor.task, wanted.request, special)
    if wanted.texts and wanted.input_json:
        raise UserError("--input-json: reads JSON lines from --input or a pipe, no texts")


def _questions(predictor: Predictor, wanted: Wanted, quiet: bool = False) -> Iterator[InputItem]:
    """All that is asked, whatever the share."""
    task = predictor.task
    if wanted.texts:
        return texts_asked(task, wanted.texts)
    if wanted.input_json:
        return json_questions(task, wanted.input, wanted.request)
    return questions(predictor, wanted.input, wanted.columns, quiet)


def _bounds(predictor: Predictor, wanted: Wanted, share: Share) -> tuple[int, int | None]:
    """The first source of the share and the one behind its last; None: to the end."""
    if share.parts == 1:
        return 0, None
    if not wanted.texts and not is_whole(wanted.input):
        why = "--shard" if wanted.shard else "several processes"
        raise UserError(
            f"{why}: {show_path(wanted.input)} cannot be divided, since nobody knows how long it "
            "is; give --input FILE"
        )
    if wanted.texts or isinstance(predictor.task, Tag):
        return share.bounds(sum(1 for _ in _questions(predictor, wanted, quiet=True)))
    return share.bounds(count_lines(wanted.input))


@dataclass(frozen=True)
class PredictJob:
    """A model, what is wanted of it, and which sources."""

    predictor: Predictor
    wanted: Wanted
    bounds: tuple[int, int | None]

    def count(self) -> int | None:
        """How many sources there are; None where it would take long to find out."""
        first, end = self.bounds
        if end is not None:
            return end - first
        if self.wanted.texts:
            return len(self.wanted.texts)
        path = self.wanted.input
        short = is_whole(path) and os.path.getsize(path) <= COUNTED
        return count_lines(path) if short and not isinstance(self.predictor.task, Tag) else None


def _answer(asked: PredictJob, answerer: Answerer, rest: Iterator[InputItem], sink: Sink) -> None:
    """Answers window after window."""
    wanted = asked.wanted
    fixed = not isinstance(sink, Stream) or wanted.texts or is_whole(wanted.input)
    windows = fixed_windows(rest, sink.answered) if fixed else live_windows(rest)
    first = asked.bounds[0] + sink.answered
    unit = "sentences" if isinstance(asked.predictor.task, Tag) else "lines"
    quiet, printed = not parallel.first(), isinstance(sink, Stream)
    with PredictionProgress(asked.count, unit, sink.answered, quiet, printed) as progress:
        for window in windows:
            sink.write(window, answerer(window, first, progress.advance))
            first += len(window)
    if not first and wanted.input != "-" and asked.bounds == (0, None):  # a pipe may well be empty
        say(f"{wanted.input}: empty, so there are no answers")


def _write_on(predictor: Predictor, wanted: Wanted, search: Any) -> None:
    """Prints each text and what follows it, symbol by symbol."""
    odd = Oddities()
    for place, question in enumerate(texts_asked(predictor.task, wanted.texts)):
        odd.add_unknown(predictor.task.source.unknown(question.text))
        for row in range(wanted.form.nbest):
            number = place * wanted.form.nbest + row
            pieces = predictor.stream(question.text, search, number)
            sys.stdout.write(question.text)
            for piece in pieces:
                sys.stdout.write(piece)
                sys.stdout.flush()
            sys.stdout.write("\n")
    odd.say()
