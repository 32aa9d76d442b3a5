"""JSON lines: one object per line, with the keys `source` and `target` or other known keys."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from typing_extensions import Self

from regard.core.errors import UserError
from regard.data.reading.columns import known_header
from regard.data.reading.lines import check_line_ends, note_blank, note_crlf, split_line_ends
from regard.data.reading.pair_format import Names, PairFormat, ParsedBlock, Problems, Row

Record = tuple[int, dict[str, Any]]  # line, object


@dataclass(frozen=True)
class JsonPairs(PairFormat):
    """Pairs in JSON lines.

    source, target: keys, whose texts are joined by a space. raw: whether targets stay JSON values.
    """

    name = "JSONL"
    suffixes = (".jsonl", ".json")
    pair_per_line = False

    source: Sequence[str] = ("source",)
    target: Sequence[str] = ("target",)
    raw: bool = False

    @classmethod
    def open(cls, path: str, text: str, notes: list[str]) -> Self:
        check_not_array(path, text)
        return cls()

    def first(self, text: str, line: int) -> Row | None:
        for number, one in enumerate(text.split("\n"), line):
            try:
                return number, list(parse_object(one))
            except ValueError:
                continue
        return None

    def choose(self, path: str, first: Row, names: Names, notes: list[str]) -> Self:
        known = known_header(first[1]) or ("source", "target")
        source, target = (find_keys(n or k, first[1]) for n, k in zip(names, known, strict=True))
        if self.raw or (source, target) != (("source",), ("target",)):
            notes.append(f"source is {' + '.join(source)}, target is {' + '.join(target)}")
        return replace(self, source=source, target=target)

    def peek(self, text: str, first: Row) -> tuple[str, list[str]]:
        if len(self.source) > 1:
            return "", []
        values = [record.get(self.source[0]) for _, record in objects_of(text.split("\n"))[0]]
        return self.source[0], [value for value in values if isinstance(value, str)]

    def parse(self, texts: Sequence[str], line: int) -> ParsedBlock:
        lines, returns = split_line_ends(texts[0])
        records, problems = objects_of(lines, line)
        blank = len(lines) - len(records) - len(problems)
        found: list[tuple[Any, ...]] = []  # source, target, line
        for number, record in records:
            try:
                source = _joined(record, self.source)
                found += [(source, target, number) for target in self._targets(record)]
            except ValueError as error:
                problems.append((number, str(error)))
        sources, targets, numbers = ([one[at] for one in found] for at in range(3))
        return ParsedBlock(sources, targets, numbers, blank, (returns,), problems=sorted(problems))

    def _targets(self, record: dict[str, Any]) -> list[Any]:
        """Return the targets of an object: several if its only target key has a list of texts."""
        values = pick(record, self.target)
        alone = values[0] if len(values) == 1 else values
        if self.raw:
            return [alone]
        if alone is not values and isinstance(alone, list) and alone:
            return [text_of(value, self.target[0]) for value in alone]
        return [_joined(record, self.target)]

    @classmethod
    def values(
        cls, path: str, text: str, names: Names, notes: list[str], problems: Problems, apart: bool
    ) -> tuple[ParsedBlock, list[str]]:
        check_not_array(path, text)
        check_line_ends(path, text.count("\n"), text.count("\r"))
        column_notes: list[str] = []
        layout = cls(raw=True)
        layout = layout.choose(path, layout.first(text, 1) or (1, []), names, column_notes)
        block = layout.parse([text], 1)
        notes += [*note_crlf(*block.returns), *note_blank(block.blank), *column_notes]
        problems += block.problems
        if len(layout.target) > 1 and not apart:
            raise UserError(f"--target-column {names[1]}: expected one key of labels")
        return block, list(layout.target)

    @classmethod
    def read_rows(cls, path: str, text: str, notes: list[str]) -> list[Row]:
        raise UserError(f"{path}: vectors of numbers cannot be read from JSONL; use CSV or TSV")


def check_not_array(path: str, text: str) -> None:
    """Raise UserError if the text is one JSON array instead of an object per line."""
    if text.lstrip().startswith("["):
        raise UserError(
            f"{path}: expected one JSON object per line, found one array",
            help=f"convert it: jq -c '.[]' {path} > new.jsonl",
        )


def objects_of(lines: list[str], first: int = 1) -> tuple[list[Record], Problems]:
    """Return the (line, object) records and the problems of lines numbered from `first`."""
    records: list[Record] = []
    problems: Problems = []
    for number, line in enumerate(lines, first):
        if not line.strip():
            continue
        try:
            records.append((number, parse_object(line)))
        except ValueError as error:
            problems.append((number, str(error)))
    return records, problems


def parse_object(line: str) -> dict[str, Any]:
    """Return the JSON object in a line; raise ValueError if it is not a JSON object."""
    try:
        record = json.loads(line, object_pairs_hook=_distinct)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"invalid JSON: {error}") from None
    if not isinstance(record, dict):
        raise ValueError(f"expected a JSON object, found {name_of(record)}")
    return record


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return a JSON object; raise ValueError if a key occurs twice."""
    record = dict(pairs)
    if len(record) < len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for key in keys if keys.count(key) > 1)
        raise ValueError(f"key '{twice}' occurs twice in an object")
    return record


def find_keys(column: str, names: list[str]) -> tuple[str, ...]:
    """Return `column` as the only key if it is in `names`; otherwise split it at commas."""
    return (column,) if column in names else tuple(part.strip() for part in column.split(","))


def pick(record: dict[str, Any], keys: Sequence[str]) -> list[Any]:
    """Return the values of the keys; raise ValueError if a key is missing."""
    for key in keys:
        if key not in record:
            raise ValueError(
                f"expected key '{key}', found {', '.join(record) or 'no keys'}; "
                "choose with --source-column and --target-column"
            )
    return [record[key] for key in keys]


def _joined(record: dict[str, Any], keys: Sequence[str]) -> str:
    """Return the strings under the keys, joined by a space."""
    found = zip(keys, pick(record, keys), strict=True)
    return " ".join(text_of(value, key) for key, value in found)


def text_of(value: object, key: str) -> str:
    """Return the value of a key; raise ValueError if it is not a valid Unicode string."""
    if not isinstance(value, str):
        raise ValueError(f"'{key}': expected a string, found {name_of(value)}")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise ValueError(f"'{key}': unpaired surrogate") from None
    return value


def name_of(value: object) -> str:
    """Return the type of a JSON value for messages, such as "a list"."""
    names = {dict: "an object", list: "a list", str: "a string", bool: "true or false"}
    return "null" if value is None else names.get(type(value), "a number")


def is_object(line: str) -> bool:
    """Return whether a line is a nonempty JSON object, or starts like one."""
    try:
        return bool(parse_object(line))
    except ValueError:
        return line.startswith('{"')
