"""Answers to texts, in their order: from the command line, a file, or a stream as it comes."""

import contextlib
import io
import json
import os
import queue
import sys
import threading
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, TextIO, cast

from regard.data.read import read_lines
from regard.errors import UserError, say
from regard.estimators import load
from regard.tasks.base import Prediction

CHUNK = 4096  # lines answered together when they are all there


def predict_command(
    model: str,
    texts: list[str] | None,
    input: str,
    output: Path | None,
    beam: int | None,
    nbest: int,
    batch_size: int,
    json_lines: bool,
) -> None:
    """Answers texts in their order, as soon as they come."""
    _refuse_bytes(texts or [])
    estimator = load(model)
    chunks: Iterable[list[str]] = [texts] if texts else _chunks(_lines(input))
    odd = Oddities()
    with _answers(output) as file:
        for chunk in chunks:
            predictions = estimator.predictions(chunk, beam, nbest, batch_size)
            for text, found in zip(chunk, predictions, strict=True):
                odd.add(found)
                line = _json_line(text, found, nbest) if json_lines else _plain_line(found, nbest)
                file.write(line)
            file.flush()
    odd.say()


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
    """The answer, or with n-best each with its score and a tab before it."""
    if nbest == 1:
        return f"{found.text}\n"
    return "".join(f"{other.score:.4f}\t{other.text}\n" for other in found.alternatives)


def _json_line(text: str, found: Prediction, nbest: int) -> str:
    """One JSON object for a source."""
    answers = [{"text": other.text, "score": round(other.score, 6)} for other in found.alternatives]
    record: dict[str, Any] = {"source": text, "prediction": found.text, "score": found.score}
    record |= {"nbest": answers} if nbest > 1 else {}
    record |= {"unknown": list(found.unknown)} if found.unknown else {}
    return json.dumps(record, ensure_ascii=False) + "\n"


def _lines(input: str) -> Iterator[str]:
    """The lines of a file or of stdin, each as soon as it is there."""
    lines = read_lines(input)
    if input == "-":  # else Python, when it leaves while a thread waits for a line, would abort
        cast(io.TextIOWrapper, sys.stdin).detach()
    return lines


def _chunks(lines: Iterator[str]) -> Iterator[list[str]]:
    """Lines in groups: as many as are there already, so that a slow stream is answered at once."""
    waiting: queue.Queue[str | BaseException | None] = queue.Queue(maxsize=2 * CHUNK)

    def fill() -> None:
        try:
            for line in lines:
                waiting.put(line)
            waiting.put(None)
        except BaseException as error:
            waiting.put(error)

    threading.Thread(target=fill, daemon=True).start()
    while True:
        chunk: list[str] = []
        item = waiting.get()
        while isinstance(item, str):
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
