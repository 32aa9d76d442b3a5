"""Answers to texts, in their order: from the command line, a file, or a stream as it comes."""

import contextlib
import io
import json
import os
import queue
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO, cast

from regard.data.lines import read_lines, show_path
from regard.data.tagged import Sentence, read_sentences
from regard.errors import UserError, say
from regard.estimators import Estimator, LanguageModel, load
from regard.tasks.base import Prediction, Task
from regard.tasks.tag import Tag
from regard.training.run import trained_on

COLUMNS = ("source_column", "target_column")
CHUNK = 4096  # lines answered together when they are all there


@dataclass(frozen=True)
class Question:
    """A source, and how its answer is written where it is not simply a line."""

    source: Any
    render: Callable[[Prediction], str] | None = None


@dataclass(frozen=True)
class Wanted:
    """How answers are wanted."""

    nbest: int
    batch_size: int
    json_lines: bool
    search: dict[str, Any]
    columns: tuple[str | None, str | None] = (None, None)


def predict_command(
    model: str, texts: list[str] | None, input: str, output: Path | None, wanted: Wanted
) -> None:
    """Answers texts in their order, as soon as they come."""
    _refuse_bytes(texts or [])
    estimator = load(model)
    task, search = estimator.task_, estimator.search(**wanted.search)
    if wanted.nbest > 1 and not task.nbest:
        raise UserError(f"--nbest: a {estimator.task} model gives one answer to each source")
    if isinstance(estimator, LanguageModel) and texts and not wanted.json_lines and not output:
        return _write_on(estimator, texts, wanted)
    chunks: Iterable[list[Question]]
    if texts:
        chunks = [[Question(task.parse(text)) for text in texts]]
    else:
        chunks = _chunks(questions(estimator, input, wanted.columns))
    odd = Oddities()
    with _answers(output) as file:
        for chunk in chunks:
            sources = [question.source for question in chunk]
            found = task.predict(estimator.model_, sources, search, wanted.nbest, wanted.batch_size)
            for question, prediction in zip(chunk, found, strict=True):
                odd.add(prediction)
                file.write(_line(question, prediction, wanted))
            file.flush()
    odd.say()


def _write_on(estimator: LanguageModel, texts: list[str], wanted: Wanted) -> None:
    """Prints each text and what follows it, symbol by symbol."""
    odd = Oddities()
    for place, text in enumerate(texts):
        odd.unknown.update(estimator.unknown(text))
        for row in range(wanted.nbest):
            pieces = estimator.generate(text, place * wanted.nbest + row, **wanted.search)
            sys.stdout.write(text)
            for piece in pieces:
                sys.stdout.write(piece)
                sys.stdout.flush()
            sys.stdout.write("\n")
    odd.say()


def questions(
    estimator: Estimator, input: str, columns: tuple[str | None, str | None]
) -> Iterator[Question]:
    """What is asked, as soon as it is there: lines, or sentences in the format of the input."""
    task = estimator.task_
    if not isinstance(task, Tag):
        if any(columns):
            raise UserError("--source-column, --target-column: only taggers read columns; cut them")
        return (_question(task, input, *row) for row in enumerate(_lines(input), 1))
    trained = trained_on(estimator.folder_)
    given = [one or trained.get(name) for one, name in zip(columns, COLUMNS, strict=True)]
    sentences, layout = read_sentences(input, *given)
    for note in layout.notes:
        say(note)

    def render(sentence: Sentence) -> Callable[[Prediction], str]:
        return lambda found: layout.render(sentence, found.value)

    return (Question(sentence.tokens, render(sentence)) for sentence in sentences)


def _question(task: Task, input: str, number: int, line: str) -> Question:
    """A line as a question; where it cannot be read, its number is said."""
    try:
        return Question(task.parse(line))
    except UserError as error:
        raise UserError(f"{show_path(input)} line {number}: {error}") from error


def _line(question: Question, found: Prediction, wanted: Wanted) -> str:
    """An answer as it is printed."""
    if wanted.json_lines:
        between = question.render is not None and not question.source  # no sentence: a blank line
        return "" if between else _json_line(question.source, found, wanted.nbest)
    if question.render is not None:
        return question.render(found)
    return _plain_line(found, wanted.nbest)


def _refuse_bytes(texts: list[str]) -> None:
    """Words on the command line that are no UTF-8 arrive as half surrogate pairs."""
    for text in texts:
        if any("\ud800" <= character <= "\udfff" for character in text):
            raise UserError(f"{text!r}: not UTF-8, which is expected on the command line")


class Oddities:
    """What is odd about answers, counted as they come and said at the end."""

    def __init__(self) -> None:
        self.unknown: Counter[str] = Counter()
        self.cut = 0

    def add(self, found: Prediction) -> None:
        """Counts one answer."""
        self.unknown.update(found.unknown)
        self.cut += found.cut

    def say(self) -> None:
        """A line for each thing that was odd."""
        if self.unknown:
            shown = " ".join(f"{symbol!r}" for symbol, _ in self.unknown.most_common(10))
            count = sum(self.unknown.values())
            say(f"{count:,} symbols that training never saw were read as unknown: {shown}")
        if self.cut:
            say(f"{self.cut:,} answers came to their limit of length and were ended there")


@contextlib.contextmanager
def _answers(output: Path | None) -> Iterator[TextIO]:
    """Where answers go: stdout, or a file that takes its name when it is whole."""
    if output is None:
        yield sys.stdout
        return
    if output.is_dir():
        raise UserError(f"{output}: a folder, where a file for the answers is expected")
    if not output.parent.is_dir():
        raise UserError(f"{output}: the folder {output.parent} does not exist")
    if output.exists() and not output.is_file():  # /dev/null or a pipe
        with open(output, "w", encoding="utf-8", newline="\n") as file:
            yield file
        return
    beside = output.with_name(output.name + ".part")
    try:
        with open(beside, "w", encoding="utf-8", newline="\n") as file:
            yield file
    except BaseException:
        say(f"the answers so far are in {beside}")
        raise
    os.replace(beside, output)


def _plain_line(found: Prediction, nbest: int) -> str:
    """The answer, or with n-best each, with its score, where it has one, and a tab before it."""
    if nbest == 1:
        return f"{found.text}\n"
    scores = ["" if other.score is None else f"{other.score:.4f}\t" for other in found.alternatives]
    pairs = zip(scores, found.alternatives, strict=True)
    return "".join(f"{score}{other.text}\n" for score, other in pairs)


def _json_line(source: Any, found: Prediction, nbest: int) -> str:
    """One JSON object for a source."""
    record: dict[str, Any] = {"source": source, "prediction": found.shown()} | _score(found.score)
    if nbest > 1:
        others = found.alternatives
        record["nbest"] = [{"text": o.text} | _score(o.score and round(o.score, 6)) for o in others]
    record |= {"probabilities": found.probabilities} if found.probabilities else {}
    record |= {"confidence": found.confidence} if found.confidence is not None else {}
    tagged = isinstance(source, tuple) and found.symbol_scores
    record |= {"confidences": found.symbol_scores} if tagged else {}
    record |= {"unknown": list(found.unknown)} if found.unknown else {}
    return json.dumps(record, ensure_ascii=False) + "\n"


def _score(score: float | None) -> dict[str, float]:
    return {} if score is None else {"score": score}


def _lines(input: str) -> Iterator[str]:
    """The lines of a file or of stdin, each as soon as it is there."""
    lines = read_lines(input)
    if input == "-":  # else Python, when it leaves while a thread waits for a line, would abort
        cast(io.TextIOWrapper, sys.stdin).detach()
    return lines


def _chunks(lines: Iterator[Question]) -> Iterator[list[Question]]:
    """Lines in groups: as many as are there already, so that a slow stream is answered at once."""
    waiting: queue.Queue[Question | BaseException | None] = queue.Queue(maxsize=2 * CHUNK)

    def fill() -> None:
        try:
            for line in lines:
                waiting.put(line)
            waiting.put(None)
        except BaseException as error:
            waiting.put(error)

    threading.Thread(target=fill, daemon=True).start()
    while True:
        chunk: list[Question] = []
        item = waiting.get()
        while isinstance(item, Question):
            chunk.append(item)
            if len(chunk) == CHUNK or waiting.empty():
                break
            item = waiting.get()
        if chunk:
            yield chunk
        if isinstance(item, BaseException):
            raise item
        if item is None:
            return
