"""Which format a file of tagged sentences has: by its name, its first lines, the columns named."""

from __future__ import annotations

import difflib
from collections import Counter
from pathlib import Path

from regard.core.errors import UserError
from regard.data.reading.json_lines import parse_object
from regard.data.reading.lines import show_path
from regard.data.reading.tagged_formats import (
    BETWEEN,
    CELL,
    CONLLU,
    DOCUMENT,
    NAMES,
    WORD,
    Kind,
    Layout,
)

SAID: dict[str, Kind] = {
    ".conllu": "conllu",
    ".conll-u": "conllu",
    ".jsonl": "jsonl",
    ".json": "jsonl",
}
ONE_TOKEN = (".conll", ".conll2003", ".conll03", ".bio", ".iob", ".iob2", ".bioes", ".col")
TOKENS = ("tokens", "words", "sentence", "text")
TAGS = ("tags", "labels")
CHOOSE = "choose with --source-column and --target-column"


def is_conllu(lines: list[str]) -> bool:
    """Whether the first line that is no comment is a word of CoNLL-U."""
    words = (line for line in lines if line.strip() and not line.startswith("#"))
    first = next(words, "")
    return first.count("\t") == len(CONLLU) - 1 and bool(WORD.match(first) or BETWEEN.match(first))


def kind_of_name(path: str) -> Kind | None:
    """The format that the name of a file tells."""
    return None if path == "-" else SAID.get(Path(path.removesuffix(".gz")).suffix.lower())


def recognise(path: str, lines: list[str], tags: bool, ended: bool) -> Kind | None:
    """The format by the name and the lines; None if more lines are needed to tell."""
    real = [line for line in lines if line.strip()]
    if not real:
        return None
    if said := kind_of_name(path):
        return said
    if is_conllu(lines):
        return "conllu"
    if not ended and all(line.startswith(("#", DOCUMENT)) for line in real):
        return None
    if is_object(real[0]):
        return "jsonl"
    one_token = Path(path.removesuffix(".gz")).suffix.lower() in ONE_TOKEN
    if one_token or real[0].startswith(DOCUMENT):
        return "columns"
    if any("\t" in line for line in real):
        return _tab_kind(lines, ended)
    if tags or (path != "-" and _same_width(lines)):
        return "columns"
    return "text"


def _tab_kind(lines: list[str], ended: bool) -> Kind | None:
    """TSV if spaces part the words within two cells; with blank lines else one token a line.

    Without either a single line is a sentence, several are the tokens of one sentence, or TSV if
    a cell has spaces.
    """
    real = [line.split("\t") for line in lines if line.strip()]
    spaced = [cells for cells in real if any(" " in cell.strip() for cell in cells)]
    if any(sum(" " in cell.strip() or not cell for cell in cells) > 1 for cells in spaced):
        return "tsv"
    start = next(place for place, line in enumerate(lines) if line.strip())
    if not all(line.strip() for line in lines[start:]):
        return "columns"
    if not ended:
        return None
    return "tsv" if spaced or len(real) == 1 else "columns"


def _same_width(lines: list[str]) -> bool:
    """Whether blank lines part the lines, and all others have the same number of words."""
    widths = {len(CELL.findall(line)) for line in lines}
    return 0 in widths and len(widths) == 2 and len(lines) > 3


def is_object(line: str) -> bool:
    """Whether a line is a JSON object, or begins as one."""
    try:
        return bool(parse_object(line))
    except ValueError:
        return line.startswith('{"')


def choose_layout(
    path: str, kind: Kind, lines: list[str], source: str | None, target: str | None, tags: bool
) -> Layout:
    """The layout of a file with these first lines; with `tags` it must have a column of tags."""
    known = kind_of_name(path) == kind
    note = f"read as {NAMES[kind]}{'' if known else ', guessed from the first lines'}"
    shown = show_path(path)
    if kind == "text":
        return Layout(kind, tabs=False, notes=(note,))
    if kind == "jsonl":
        return _json_layout(note, lines, source, target)
    if kind == "conllu":
        start = conllu_place(shown, "--source-column", source or "FORM")
        end = conllu_place(shown, "--target-column", target or "UPOS")
        return _table_layout(shown, kind, (start, end), list(CONLLU), note)
    return _column_layout(shown, kind, lines, (source, target), tags, note)


def _json_layout(note: str, lines: list[str], source: str | None, target: str | None) -> Layout:
    first = next(line for line in lines if line.strip())
    try:
        names = parse_object(first)
    except ValueError:
        names = {}  # the line will be refused when it is read
    tokens = source or next((name for name in TOKENS if name in names), TOKENS[0])
    tags = target or next((name for name in TAGS if name in names), TAGS[0])
    notes = (note, f"tokens are under the key {tokens}, tags under {tags}")
    return Layout("jsonl", keys=(tokens, tags), notes=notes)


def conllu_place(path: str, option: str, column: str) -> int:
    """The place of a column of CoNLL-U by its number or name."""
    if column.isdecimal() and 0 < int(column) <= len(CONLLU):
        return int(column) - 1
    if column.upper() in CONLLU:
        return CONLLU.index(column.upper())
    near = difflib.get_close_matches(column.upper(), CONLLU, n=1, cutoff=0.5)
    hint = f"; did you mean {near[0]}?" if near else ""
    raise UserError(
        f"{path}: {option}: no column '{column}' in CoNLL-U; a number from 1 to 10 or "
        f"one of {', '.join(CONLLU)} is expected{hint}"
    )


def _column_layout(
    path: str,
    kind: Kind,
    lines: list[str],
    columns: tuple[str | None, str | None],
    tags: bool,
    note: str,
) -> Layout:
    """The layout of a table: the first column to the last, unless chosen by number or header."""
    words = [line for line in lines if line.strip() and not line.startswith(DOCUMENT)]
    tabs = any("\t" in line for line in words)
    rows = [line.split("\t") if tabs else CELL.findall(line) for line in words]
    width = _width(path, lines, [len(cells) for cells in rows], tabs, tags)
    names = [name.strip() for name in rows[0]] if kind == "tsv" else []
    source, target = columns
    if set(names) & set(TOKENS) and set(names) & set(TAGS):
        source = source or next(name for name in names if name in TOKENS)
        target = target or next(name for name in names if name in TAGS)
    header = source in names or target in names

    start = _place(path, "source", source or "1", width, names)
    # A column of tags is missing where none is needed: it will be added.
    end = _place(path, "target", target, width + (not tags), names) if target else width - 1
    if end == width or (end == start and not (tags or target)):
        notes = (note, f"tokens are column {start + 1}, tags become column {width + 1}")
        return Layout(kind, start, None, width, tabs, header, notes=notes)
    labels = names if header else [str(place + 1) for place in range(width)]
    return _table_layout(path, kind, (start, end), labels, note, tabs, header)


def _width(path: str, lines: list[str], widths: list[int], tabs: bool, tags: bool) -> int:
    """The number of columns: the commonest where tags are needed, else that of the first line."""
    if not tags or not widths:
        return widths[0] if widths else 1
    width, found = Counter(widths).most_common(1)[0]
    if width == 1 or (not tabs and found * 2 <= len(widths)):
        number = next(number for number, line in enumerate(lines, 1) if line.strip())
        raise UserError(
            f"{path} line {number}: no tags found, neither here nor below; a token and its tag "
            f"in each line are expected, or in each line tokens, a tab and their tags"
        )
    return width


def _place(path: str, side: str, column: str, width: int, names: list[str]) -> int:
    if column in names:
        return names.index(column)
    if column.isdecimal() and 0 < int(column) <= width:
        return int(column) - 1
    near = difflib.get_close_matches(column, names, n=1)
    hint = f"; did you mean '{near[0]}'?" if near else ""
    raise UserError(
        f"{path}: --{side}-column: no column '{column}'; a number from 1 to {width} is expected"
        f"{hint}"
    )


def _table_layout(
    path: str,
    kind: Kind,
    places: tuple[int, int],
    names: list[str],
    note: str,
    tabs: bool = True,
    header: bool = False,
) -> Layout:
    start, end = places
    if start == end:
        raise UserError(f"{path}: tokens and tags are the same column ({names[start]}); {CHOOSE}")
    notes = [note, f"tokens are column {names[start]}, tags are column {names[end]}"]
    if header:
        notes.append(f"first line is a header: {', '.join(names)}")
    return Layout(kind, start, end, len(names), tabs, header, notes=tuple(notes))
