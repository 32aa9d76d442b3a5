"""Open the data of a command: a file, two files, or a built-in dataset."""

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any

from regard.core.errors import UserError
from regard.core.limits import check_text_length, text_limit
from regard.data.reading.read import Pair, Pairs, read_aligned, read_pairs, split_dev
from regard.data.reading.splits import keep_split, read_splits, train_and_dev
from regard.data.sources.builtin import GRAPH, builtin, builtin_task, is_builtin, unknown_data
from regard.data.sources.open_large import read_large


@dataclass(frozen=True)
class DataSpec:
    """The location of pairs, as the user passed it.

    Either `data` (a file or a built-in dataset), or the aligned files `source` and `target`.
    split_column: column that assigns rows to splits. split: the split to read; None: all rows.
    edges: table of the edges of a graph, whose nodes are the rows of `data`. id_column: column of
    the names of nodes. graph_column: column of the names of graphs, if there are several.
    speaker_column: column of the speakers of sounds.
    """

    data: str | None = None
    source: str | None = None
    target: str | None = None
    source_column: str | None = None
    target_column: str | None = None
    option: str = "--"  # prefix of the options in messages: "--" or "--dev-"
    split_column: str | None = None
    split: str | None = None
    edges: str | None = None
    id_column: str | None = None
    graph_column: str | None = None
    speaker_column: str | None = None

    @classmethod
    def from_record(cls, record: Any) -> "DataSpec":
        """Return the location that `run.json` stores; raise UserError if it is corrupted."""
        names = {one.name for one in fields(cls)}
        is_valid = isinstance(record, dict) and all(
            name in names and isinstance(value, str | None) for name, value in record.items()
        )
        if not is_valid:
            raise UserError("run.json: corrupted: it does not name the data files")
        return cls(**record)

    def is_given(self) -> bool:
        """Return whether the user passed any data."""
        return any((self.data, self.source, self.target))

    @property
    def is_graph(self) -> bool:
        """Return whether the user passed edges, or the built-in graph."""
        named = self.data == GRAPH and not os.path.exists(GRAPH)
        return bool(self.edges) or named

    def read(self) -> Pairs:
        """Return the pairs of the file or files."""
        self.check_no_graph()
        if self.source and self.target:
            return read_aligned(self.source, self.target)
        if not self.data:
            raise UserError(
                "no data", help="pass a file, a built-in dataset, or --source and --target"
            )
        self.check_known()
        return read_pairs(self.data, self.source_column, self.target_column)

    def read_large(self) -> Pairs | None:
        """Return the pairs of large files without reading them into memory; None if small."""
        if self.source and self.target:
            return read_large([self.source, self.target])
        if self.split_column:  # rows are selected in memory
            return None
        columns = self.source_column, self.target_column
        return read_large([self.data], columns) if self.data else None

    @property
    def other_columns(self) -> list[str]:
        """Return the columns that are neither source nor target."""
        named = self.split_column, self.id_column, self.graph_column, self.speaker_column
        return [column for column in named if column]

    def file(self) -> str:
        """Return the path `data`; raise UserError if the user passed two files or none."""
        self.check_no_graph()
        if self.source or self.target:
            raise UserError(
                f"{self.option}source, {self.option}target: not supported for this task",
                help="pass one file with inputs and targets",
            )
        if not self.data:
            raise UserError("no data", help="pass a file")
        return self.data

    def check_no_graph(self) -> None:
        """Raise UserError if the user passed options of graphs."""
        options = {
            "--edges": self.edges,
            "--id-column": self.id_column,
            "--graph-column": self.graph_column,
        }
        if named := [name for name, value in options.items() if value]:
            raise UserError(
                f"{', '.join(named)}: only supported for graphs",
                help="pass --edges FILE and --task tag (a label per node), or --task classify "
                "with --graph-column (a label per graph)",
            )

    def check_known(self) -> None:
        """Raise UserError if `data` is neither a file nor looks like the name of one."""
        data = self.data
        if data and data != "-" and not os.path.exists(data) and "." not in data:
            raise UserError(unknown_data(data))

    def builtin_name(self) -> str | None:
        """Return the name of the built-in dataset; None if `data` is a file or is missing."""
        self._check_options()
        if self.split_column and self.data == "-":
            raise UserError(
                "--split-column: standard input can be read only once", help="pass a file"
            )
        named = self.data is not None and is_builtin(self.data) and not os.path.exists(self.data)
        if named and self.option == "--" and self._names_columns():
            raise UserError(f"{self.data}: a built-in dataset has no columns to choose")
        return self.data if named else None

    def _names_columns(self) -> bool:
        return bool(self.source_column or self.target_column or self.other_columns)

    def _check_options(self) -> None:
        """Raise UserError if only one aligned file is passed, or both with `data` or columns."""
        if not (self.source or self.target):
            return
        both = f"{self.option}source and {self.option}target"
        if self.data:
            raise UserError(f"{self.data}: cannot be combined with {both}")
        if not (self.source and self.target):
            missing = self.option + ("target" if self.source else "source")
            raise UserError(f"{missing}: missing; {both} must be passed together")
        if self.option == "--" and self._names_columns():
            raise UserError(f"{both} have one text per line: no columns to choose")

    def absolute(self) -> "DataSpec":
        """Return the same location with absolute paths."""
        files = {
            name: os.path.abspath(path)
            for name in ("data", "source", "target", "edges")
            if (path := getattr(self, name)) and path != "-" and os.path.exists(path)
        }
        return replace(self, **files)


@dataclass
class TrainDev:
    """The training and dev set, the name of the data, and notes for the user."""

    name: str
    train: Sequence[Pair]
    dev: list[Pair]
    notes: list[str] = field(default_factory=list)


Read = Callable[[DataSpec], Pairs]
Split = Callable[[Any], tuple[Sequence[Pair], list[Pair]]]


def open_pairs(
    spec: DataSpec, dev: DataSpec, read: Read, task: str = "transduce", split: Split = split_dev
) -> TrainDev:
    """Return the training and the dev set.

    Without a dev set, `split` holds out a part of the training set. read: reads the pairs of files.
    """
    name = _builtin_name(spec, task)
    if name:
        splits = builtin(name)
        data = TrainDev(name, splits.train, splits.dev, splits.notes)
    else:
        data = read_train_dev(spec, dev, read)
    if dev.is_given():
        name = _builtin_name(dev, task)
        held = Pairs(name, name, builtin(name).dev) if name else read(dev)
        data.dev, data.notes = list(held.pairs), [*data.notes, *held.notes]
    elif not data.dev:
        data.train, data.dev = split(data.train)
        data.notes.append(
            f"dev set: {len(data.dev):,} of {len(data.train) + len(data.dev):,} examples held out "
            "by source hash (--dev FILE overrides)"
        )
    return data


def read_train_dev(spec: DataSpec, dev: DataSpec, read: Read) -> TrainDev:
    """Return the rows of a file for training and, if it has a column of splits, for validation."""
    pairs = read(spec)
    if not spec.split_column:
        return TrainDev(pairs.name, pairs.pairs, [], list(pairs.notes))
    if dev.is_given():
        raise UserError(
            f"--split-column {spec.split_column}: cannot be combined with --dev",
            help="omit --dev, or the column of splits",
        )
    train, held, notes = train_and_dev(pairs, read_splits(spec.data or "-", spec.split_column))
    return TrainDev(pairs.name, train, held, [*pairs.notes, *notes])


def open_test(
    spec: DataSpec, read: Read, task: str = "transduce"
) -> tuple[Sequence[Pair], list[str]]:
    """Return the pairs of a file, or the test set of a built-in dataset, and notes."""
    name = _builtin_name(spec, task)
    if name:
        test = builtin(name).test
        return test, [f"test set of {name}: {len(test):,} pairs, none of them in the training set"]
    if spec.split and not spec.split_column and not spec.is_graph:
        raise UserError(
            f"--split {spec.split}: no column of splits", help="add --split-column COLUMN"
        )
    pairs = read(spec)
    if spec.split_column and not spec.is_graph:  # graphs are read with their splits
        pairs = keep_split(pairs, read_splits(spec.data or "-", spec.split_column), spec.split)
    check_line_lengths(pairs)
    return pairs.pairs, pairs.notes


def check_line_lengths(pairs: Pairs) -> None:
    """Raise UserError for a line that no model can be scored on in reasonable time and memory."""
    limit = text_limit()
    for pair in pairs.pairs:
        for side, text in (("source", pair.source), ("target", pair.target)):
            if not isinstance(text, str) or len(text) <= limit:
                continue
            for number, line in enumerate(text.split("\n"), pair.line):
                where = f"{pairs.path} line {number}: "
                check_text_length(where, side, len(line), limit, "characters")


def _builtin_name(spec: DataSpec, task: str) -> str | None:
    """Return the built-in dataset, None for files; raise UserError if `task` has no such data."""
    name = spec.builtin_name()
    if name and task != (expected := builtin_task(name)):
        message = f"{name}: built-in data for --task {expected}, found --task {task}"
        raise UserError(message, help=f"pass --task {expected}, or a file")
    return name
