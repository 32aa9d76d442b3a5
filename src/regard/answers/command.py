"""What `regard predict` does, without the parsing of its words."""

import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

from regard import parallel
from regard.answers.asked import model_digest
from regard.answers.lines import Form
from regard.answers.oddities import Oddities
from regard.answers.progress import Progress
from regard.answers.questions import Question, count_lines, is_whole, questions, texts_asked
from regard.answers.shares import Share
from regard.answers.sink import Sink, Stream, check_output, opened
from regard.answers.windows import fixed_windows, live_windows
from regard.data.lines import show_path
from regard.errors import UserError
from regard.estimators import Estimator, LanguageModel, load
from regard.tasks.batches import TOKENS, Work
from regard.tasks.tag import Tag

COUNTED = 1 << 30  # bytes of a file whose lines are counted to say how long it will take


@dataclass(frozen=True)
class Wanted:
    """What is asked, how answers are wanted, and where they go."""

    model: str
    texts: tuple[str, ...] = ()
    input: str = "-"
    output: Path | None = None
    form: Form = field(default_factory=Form)
    search: dict[str, Any] = field(default_factory=dict)
    batch_size: int = 64
    batch_tokens: int = TOKENS
    columns: tuple[str | None, str | None] = (None, None)
    shard: str | None = None
    force: bool = False


def predict_command(wanted: Wanted) -> None:
    """Answers texts in their order, as soon as they come."""
    with parallel.processes():
        check_output(wanted.output)
        share = Share.of(wanted.shard)
        estimator = load(wanted.model)
        search = estimator.search(**wanted.search)
        if wanted.form.nbest > 1 and not estimator.task_.nbest:
            raise UserError(f"--nbest: a {estimator.task} model gives one answer to each source")
        bare = not wanted.form.json_lines and not wanted.output and share.parts == 1
        if isinstance(estimator, LanguageModel) and wanted.texts and bare:
            return _write_on(estimator, wanted)
        odd = Oddities()
        bounds = _bounds(estimator, wanted, share)
        asked = islice(_questions(estimator, wanted), *bounds)

        def facts() -> dict[str, Any]:
            return _facts(wanted, share, search)

        with opened(wanted.output, facts, odd, wanted.force) as sink:
            rest = sink.unanswered(asked, show_path(wanted.input))
            _answer(Asked(estimator, search, wanted, bounds), rest, sink, odd)
        odd.of_all().say()


def _questions(estimator: Estimator, wanted: Wanted, quiet: bool = False) -> Iterator[Question]:
    """All that is asked, whatever the share."""
    if wanted.texts:
        return texts_asked(estimator.task_, wanted.texts)
    return questions(estimator, wanted.input, wanted.columns, quiet)


def _bounds(estimator: Estimator, wanted: Wanted, share: Share) -> tuple[int, int | None]:
    """The first source of the share and the one behind its last; None: to the end."""
    if share.parts == 1:
        return 0, None
    if not wanted.texts and not is_whole(wanted.input):
        why = "--shard" if wanted.shard else "several processes"
        raise UserError(
            f"{why}: {show_path(wanted.input)} cannot be divided, since nobody knows how long it "
            "is; give --input FILE"
        )
    if wanted.texts or isinstance(estimator.task_, Tag):
        return share.bounds(sum(1 for _ in _questions(estimator, wanted, quiet=True)))
    return share.bounds(count_lines(wanted.input))


def _facts(wanted: Wanted, share: Share, search: Any) -> dict[str, Any]:
    """All that answers depend on but the sources. The size of batches is not among it."""
    form = {"nbest": wanted.form.nbest, "json": wanted.form.json_lines}
    form |= {"symbols": wanted.form.symbols}
    return {
        "model": model_digest(Path(wanted.model)),
        "search": search.model_dump(mode="json"),
        "form": form,
        "columns": list(wanted.columns),
        "share": f"{share.number}/{share.parts}",
    }


@dataclass(frozen=True)
class Asked:
    """A model, how it searches, what is wanted of it, and which sources."""

    estimator: Estimator
    search: Any
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
        return count_lines(path) if short and not isinstance(self.estimator.task_, Tag) else None


def _answer(asked: Asked, rest: Iterator[Question], sink: Sink, odd: Oddities) -> None:
    """Answers window after window."""
    wanted, task = asked.wanted, asked.estimator.task_
    fixed = not isinstance(sink, Stream) or wanted.texts or is_whole(wanted.input)
    windows = fixed_windows(rest, sink.answered) if fixed else live_windows(rest)
    first = asked.bounds[0] + sink.answered
    unit = "sentences" if isinstance(task, Tag) else "lines"
    with Progress(asked.count, unit, sink.answered, not parallel.first()) as progress:
        for window in windows:
            work = Work(wanted.batch_tokens, first, progress.advance)
            sources = [question.source for question in window]
            size = wanted.batch_size
            found = task.predict(
                asked.estimator.model_, sources, asked.search, wanted.form.nbest, size, work
            )
            for prediction in found:
                odd.add(prediction)
            lines = [wanted.form.line(q, p) for q, p in zip(window, found, strict=True)]
            sink.write(window, lines)
            first += len(window)


def _write_on(estimator: LanguageModel, wanted: Wanted) -> None:
    """Prints each text and what follows it, symbol by symbol."""
    odd = Oddities()
    for place, question in enumerate(texts_asked(estimator.task_, wanted.texts)):
        odd.add_unknown(estimator.unknown(question.text))
        for row in range(wanted.form.nbest):
            number = place * wanted.form.nbest + row
            pieces = estimator.generate(question.text, number, **wanted.search)
            sys.stdout.write(question.text)
            for piece in pieces:
                sys.stdout.write(piece)
                sys.stdout.flush()
            sys.stdout.write("\n")
    odd.say()
