"""The first look at large files of pairs: checked as small ones are, and an index to read by."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np

from regard.core.cache import Facts
from regard.core.errors import UserError
from regard.core.progress import ProgressBar
from regard.data.reading.columns import (
    Columns,
    Row,
    choose_columns,
    csv_comma,
    refuse_single_column,
)
from regard.data.reading.json_lines import keys_of, objects_of, refuse_array
from regard.data.reading.lines import SHOWN, cut_lines, note_returns, refuse, refuse_old_mac
from regard.data.reading.read import hash_source, note_columns, refuse_sides, refuse_unequal
from regard.data.sources.layout import Aligned, Cut, Layout, Objects, TableLayout, table_rows
from regard.data.sources.textfile import TextFile, blocks

Names = tuple[str | None, str | None]  # columns of source and target, as the user gave them


class Quoted(Exception):
    """A CSV file with quotation marks: a field may hold line ends, so blocks cannot be cut."""


class Scan:
    """One pass over the blocks of a file or of two."""

    def __init__(self, shown: Sequence[str], files: Sequence[TextFile], kind: str, names: Names):
        self.shown, self.files, self.kind, self.names = shown, files, kind, names
        self.path = " and ".join(shown)
        self.layout: Layout | None = Aligned() if kind == "aligned" else None
        self.notes: list[str] = []
        self.comma = "\t"
        self.first: Row | None = None  # of a table
        self.index: list[list[int]] = []  # place and size in each file, first line, first row
        self.hashes: list[np.ndarray] = []  # of the sources
        self.hollow: list[int] = []  # rows with an empty side
        self.widths: Counter[int] = Counter()
        self.problems: list[tuple[int, str]] = []
        self.bad = self.rows = self.blank = 0
        self.returns = [0] * len(files)
        self.filled = [False, False]

    def run(self, folder: Path) -> Facts:
        """Reads everything, refuses what small files are refused for, and writes the index."""
        self._refuse_shape()
        with ProgressBar(f"scanning {self.path}", self.files[0].lines) as bar:
            for line, raw, texts in self._blocks():
                cut = self._cut(texts, line)
                places = [number for place, data in raw for number in (place, len(data))]
                self.index.append([*places, line, self.rows])
                self._add(cut)
                bar.advance(len(cut.sources) + cut.blank)
        self._refuse()
        np.save(folder / "index.npy", np.array(self.index, np.int64))
        np.save(folder / "hashes.npy", np.concatenate(self.hashes))
        np.save(folder / "hollow.npy", np.array(self.hollow, np.int64))
        assert self.layout is not None
        layout = {"layout": type(self.layout).__name__, **asdict(self.layout)}
        return {"rows": self.rows, "layout": layout, "notes": self.notes, "files": self._of_files()}

    def _blocks(self) -> Iterator[tuple[int, list[tuple[int, bytes]], list[str]]]:
        """First line, bytes and text of each block."""
        line = 1
        for raw in blocks(self.files):
            texts = [data.decode() for _, data in raw]
            yield line, raw, texts
            line += texts[0].count("\n")

    def _refuse_shape(self) -> None:
        """Raises an error for files whose lines cannot be pairs."""
        if self.kind != "CSV":
            for shown, file in zip(self.shown, self.files, strict=True):
                refuse_old_mac(shown, file.newlines, file.returns)
        if len({file.lines for file in self.files}) > 1:
            (source, target), (left, right) = self.shown, (file.lines for file in self.files)
            refuse_unequal(source, left, target, right)

    def _cut(self, texts: list[str], line: int) -> Cut:
        """The pairs of a block; the first row or object decides about the columns."""
        if self.kind == "CSV" and '"' in texts[0]:
            raise Quoted
        layout = self.layout
        if layout is None:
            begin = self._begin_objects if self.kind == "JSONL" else self._begin_table
            layout = begin(texts[0], line)
        return layout.cut(texts, line)

    def _begin_objects(self, text: str, line: int) -> Layout:
        if line == 1:
            refuse_array(self.path, text)
        records, _ = objects_of(cut_lines(text)[0], line)
        if not records:
            return Objects(("source",), ("target",))
        found = keys_of(list(records[0][1]), *self.names, self.notes)
        self.layout = Objects(*found)
        return self.layout

    def _begin_table(self, text: str, line: int) -> Layout:
        if line == 1 and self.kind == "CSV":
            self.comma = csv_comma(text.split("\n", 1)[0], self.notes)
        rows, *_ = table_rows(self.kind, self.comma, text, line)
        if not rows:
            return TableLayout(self.kind, self.comma, Columns((0,), (1,), False, False))
        self.first = rows[0]
        self.after = len(self.notes)  # notes on lines go before those on columns
        try:
            columns = choose_columns(self.path, rows[0][1], *self.names, self.notes)
        except UserError:
            self._refuse_narrow()
            raise
        header = rows[0][0] if columns.header else 0
        self.layout = TableLayout(self.kind, self.comma, columns, header)
        return self.layout

    def _refuse_narrow(self) -> None:
        """Raises an error if the whole table has a single column."""
        found = (table_rows(self.kind, self.comma, t[0], line)[0] for line, _, t in self._blocks())
        widths = Counter(len(cells) for rows in found for _, cells in rows)
        if max(widths) < 2:
            assert self.first is not None
            refuse_single_column(self.path, self.kind, self.first, widths.total())

    def _add(self, cut: Cut) -> None:
        """Counts what a block holds."""
        hashes = b"".join(map(hash_source, cut.sources))
        self.hashes.append(np.frombuffer(hashes, ">u8").astype(np.uint64))
        left, right = ([bool(t.strip()) for t in side] for side in (cut.sources, cut.targets))
        self.filled = [self.filled[0] or any(left), self.filled[1] or any(right)]
        if not (all(left) and all(right)):
            whole = zip(left, right, strict=True)
            self.hollow += [self.rows + at for at, sides in enumerate(whole) if not all(sides)]
        self.rows += len(cut.sources)
        self.blank += cut.blank
        self.widths.update(cut.widths)
        self.returns = [sum(pair) for pair in zip(self.returns, cut.returns, strict=True)]
        self.problems = [*self.problems, *cut.problems][:SHOWN]
        self.bad += len(cut.problems)

    def _refuse(self) -> None:
        """Raises an error for what is wrong with the whole, in the order of small files."""
        refuse(self.path, self.problems, count=self.bad)
        lines = [] if self.kind in ("CSV", "aligned") else note_returns(self.returns[0])
        lines += [f"blank lines skipped: {self.blank:,}"] if self.blank else []
        if isinstance(self.layout, TableLayout):
            if max(self.widths) < 2:
                assert self.first is not None
                refuse_single_column(self.path, self.kind, self.first, self.widths.total())
            self.notes[self.after : self.after] = lines
            self._refuse_widths(self.layout)
        elif isinstance(self.layout, Objects):
            self.notes[:0] = lines
        refuse_sides(self.path, self.rows, self.filled)

    def _refuse_widths(self, layout: TableLayout) -> None:
        """Raises an error for rows with too many or too few columns."""
        counts = Counter({width: count for width, count in self.widths.items() if width > 1})
        columns = layout.columns
        expected = columns.needed if columns.chosen else counts.most_common(1)[0][0]
        self.notes += note_columns(columns, expected)
        strict = replace(layout, expected=expected)
        most = expected if not columns.chosen else max(self.widths)
        if any(not expected <= width <= most for width in self.widths):
            problems: list[tuple[int, str]] = []
            count = 0
            for line, _, texts in self._blocks():
                found = strict.cut(texts, line).problems
                problems, count = [*problems, *found][:SHOWN], count + len(found)
            refuse(self.path, problems, count=count)

    def _of_files(self) -> list[list[str]]:
        """What there is to note on each file."""
        marks = [["byte order mark removed"] * file.marked for file in self.files]
        if self.kind != "aligned":
            return marks
        ends = map(note_returns, self.returns)
        return [mark + end for mark, end in zip(marks, ends, strict=True)]


def load_layout(facts: dict[str, Any]) -> Layout:
    """The layout that a scan found."""
    named = dict(facts)
    kind = named.pop("layout")
    if kind == "Aligned":
        return Aligned()
    if kind == "Objects":
        return Objects(tuple(named["source"]), tuple(named["target"]))
    columns = named.pop("columns")
    sides = {side: tuple(columns[side]) for side in ("source", "target")}
    return TableLayout(columns=Columns(**{**columns, **sides}), **named)
