"""JSON lines: one object a line, with the keys `source` and `target` or those of the user."""

from __future__ import annotations

import json
from typing import Any

from regard.core.errors import UserError
from regard.data.reading.columns import known_header
from regard.data.reading.lines import refuse, split_lines

Found = tuple[str, str, int]  # source, target, line
Record = tuple[int, dict[str, Any]]  # line, object
Problem = tuple[int, str]  # line, what is wrong


def read_json(
    path: str, text: str, source: str | None, target: str | None, notes: list[str]
) -> list[Found]:
    """Source, target and line of each object; a list of targets gives one entry each."""
    records, problems = parse_objects(path, text, notes)
    names = list(records[0][1]) if records else []
    source_keys, target_keys = keys_of(names, source, target, notes)
    found, odd = values_of(records, source_keys, target_keys)
    refuse(path, sorted(problems + odd))
    return found


def keys_of(
    names: list[str], source: str | None, target: str | None, notes: list[str]
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The keys of source and target, where the first object has these names; it is noted."""
    known = known_header(names) or ("source", "target")
    source_keys = find_keys(source or known[0], names)
    target_keys = find_keys(target or known[1], names)
    if (source_keys, target_keys) != (("source",), ("target",)):
        notes.append(f"source is {' + '.join(source_keys)}, target is {' + '.join(target_keys)}")
    return source_keys, target_keys


def values_of(
    records: list[Record], source: tuple[str, ...], target: tuple[str, ...]
) -> tuple[list[Found], list[Problem]]:
    """Source, target and line of each object, and the lines where one is missing."""
    found: list[Found] = []
    problems: list[Problem] = []
    for line, record in records:
        try:
            (left,) = _values(record, source, several=False)
            found += [(left, right, line) for right in _values(record, target, several=True)]
        except ValueError as error:
            problems.append((line, str(error)))
    return found, problems


def parse_objects(path: str, text: str, notes: list[str]) -> tuple[list[Record], list[Problem]]:
    """The objects with their lines, and the lines that are none."""
    refuse_array(path, text)
    lines = split_lines(path, text, notes)
    records, problems = objects_of(lines)
    blank = len(lines) - len(records) - len(problems)
    if blank:
        notes.append(f"blank lines skipped: {blank:,}")
    return records, problems


def refuse_array(path: str, text: str) -> None:
    """Raises an error for a JSON file that is one array."""
    if text.lstrip().startswith("["):
        raise UserError(
            f"{path}: one JSON array; one object a line is expected: jq -c '.[]' {path} > new.jsonl"
        )


def objects_of(lines: list[str], first: int = 1) -> tuple[list[Record], list[Problem]]:
    """The objects of these lines, numbered from `first`, and the lines that are none."""
    records, problems = [], []
    for number, line in enumerate(lines, first):
        if not line.strip():
            continue
        try:
            records.append((number, parse_object(line)))
        except ValueError as error:
            problems.append((number, str(error)))
    return records, problems


def parse_object(line: str) -> dict[str, Any]:
    """The object of a line; a ValueError says what is wrong."""
    try:
        record = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"bad JSON: {error}") from None
    if not isinstance(record, dict):
        raise ValueError(f"a JSON object expected, {name_of(record)} found")
    return record


def find_keys(column: str, names: list[str]) -> tuple[str, ...]:
    """The key of that name, or else the keys of a comma list."""
    return (column,) if column in names else tuple(part.strip() for part in column.split(","))


def pick(record: dict[str, Any], keys: tuple[str, ...]) -> list[Any]:
    """What is under the keys; a ValueError says which key is missing."""
    for key in keys:
        if key not in record:
            raise ValueError(
                f"key '{key}' expected, {', '.join(record) or 'no key'} found; "
                f"choose with --source-column and --target-column"
            )
    return [record[key] for key in keys]


def _values(record: dict[str, Any], keys: tuple[str, ...], several: bool) -> list[str]:
    """The strings under the keys: alternatives if one key holds a list, else joined by a space."""
    values = pick(record, keys)
    if several and len(values) == 1 and isinstance(values[0], list) and values[0]:
        return [text_of(value, keys[0]) for value in values[0]]
    return [" ".join(text_of(value, key) for key, value in zip(keys, values, strict=True))]


def text_of(value: object, key: str) -> str:
    """The value itself, if it is a string of whole characters."""
    if not isinstance(value, str):
        raise ValueError(f"'{key}' must be a string, {name_of(value)} found")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise ValueError(f"'{key}' holds half a surrogate pair, which is no character") from None
    return value


def name_of(value: object) -> str:
    """What a JSON value is called in messages."""
    names = {dict: "an object", list: "a list", str: "a string", bool: "true or false"}
    return "null" if value is None else names.get(type(value), "a number")
