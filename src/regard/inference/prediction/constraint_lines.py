"""What is asked of answers: for all of them, or in a JSON object for each."""

from collections.abc import Iterator
from typing import Any

from regard.core.errors import UserError
from regard.data.reading.json_lines import name_of, parse_object, text_of
from regard.data.reading.lines import show_path
from regard.inference.prediction.input_items import InputItem, lines_of
from regard.tasks.values import Request

KEYS = ("source", "prefix", "must", "ban")


def check_wishes(task: Any, asked: Request, given: bool) -> None:
    """Refuses wishes that no answer of this model can meet. given: something like a wish was."""
    if not given and asked == Request():
        return
    if "constraints" not in task.abilities:
        raise UserError(
            "--prefix, --must, --ban, --input-json, --alternatives, --alignments: only for "
            "transducers, whose answers are sequences of their own"
        )
    task.constraints(asked)


def json_questions(task: Any, input: str, asked: Request) -> Iterator[InputItem]:
    """The objects of an input, one a line, each with its own wishes behind those for all."""
    for number, line in enumerate(lines_of(input), 1):
        try:
            source, request = _read(line, asked)
            task.constraints(request)
        except ValueError as error:  # also a UserError
            raise UserError(f"{show_path(input)} line {number}: {error}") from error
        yield InputItem(source, line, request=request)


def _read(line: str, asked: Request) -> tuple[str, Request]:
    """The source of an object and what is asked of its answer."""
    record = parse_object(line)
    for key in record:
        if key not in KEYS:
            raise ValueError(f"the keys {', '.join(KEYS)} expected, {key!r} found")
    if "source" not in record:
        raise ValueError("the key 'source' is missing")
    prefix = text_of(record.get("prefix", asked.prefix), "prefix")
    must, ban = (_words(record.get(key, []), key) for key in ("must", "ban"))
    return text_of(record["source"], "source"), Request(
        prefix, (*asked.must, *must), (*asked.ban, *ban)
    )


def _words(value: Any, key: str) -> tuple[str, ...]:
    if not isinstance(value, list):
        raise ValueError(f"'{key}' must be a list of strings, {name_of(value)} found")
    return tuple(text_of(word, key) for word in value)
