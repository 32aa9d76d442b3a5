"""Which data a command means: a file, two files, or something built in."""

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from regard.core.errors import UserError
from regard.data.reading.read import Pair, Pairs, read_aligned, read_pairs, split_dev
from regard.data.sources.builtin import builtin, is_builtin, unknown_data
from regard.data.sources.open_large import read_large


@dataclass(frozen=True)
class DataSpec:
    """Where pairs lie: `data`, or `source` and `target`; the columns, where they matter."""

    data: str | None = None
    source: str | None = None
    target: str | None = None
    source_column: str | None = None
    target_column: str | None = None
    option: str = "--"  # what its options begin with: --source, --dev-source

    def is_given(self) -> bool:
        """Whether the user named any data."""
        return any((self.data, self.source, self.target))

    def read(self) -> Pairs:
        """The pairs of the file or files."""
        if self.source and self.target:
            return read_aligned(self.source, self.target)
        if not self.data:
            raise UserError("no data: name a file, built-in data, or --source and --target")
        if self.data != "-" and not os.path.exists(self.data) and "." not in self.data:
            raise UserError(unknown_data(self.data))
        return read_pairs(self.data, self.source_column, self.target_column)

    def read_large(self) -> Pairs | None:
        """The pairs of large files, which are not read into memory; None where they are small."""
        if self.source and self.target:
            return read_large([self.source, self.target])
        columns = self.source_column, self.target_column
        return read_large([self.data], columns) if self.data else None

    def file(self) -> str:
        """The one file, where two make no sense."""
        if self.source or self.target:
            raise UserError("one file expected, with a sequence and its answer in each line")
        if not self.data:
            raise UserError("no data: name a file")
        return self.data

    def builtin_name(self) -> str | None:
        """The name of the built-in data meant, or None for files, which come first."""
        self._check_options()
        named = self.data is not None and is_builtin(self.data) and not os.path.exists(self.data)
        if named and self.option == "--" and (self.source_column or self.target_column):
            raise UserError(f"{self.data} is built in and has no columns to choose")
        return self.data if named else None

    def _check_options(self) -> None:
        """Two files go together, exclude a third, and have no columns."""
        if not (self.source or self.target):
            return
        both = f"{self.option}source and {self.option}target"
        if self.data:
            raise UserError(f"give either {self.data} or {both}, not both")
        if not (self.source and self.target):
            missing = self.option + ("target" if self.source else "source")
            raise UserError(f"{both} go together: {missing} is missing")
        if self.option == "--" and (self.source_column or self.target_column):
            raise UserError(f"{both} are whole lines: they have no columns to choose")

    def absolute(self) -> "DataSpec":
        """The same place, to be found again from any folder."""
        files = {
            name: os.path.abspath(path)
            for name in ("data", "source", "target")
            if (path := getattr(self, name)) and path != "-" and os.path.exists(path)
        }
        return replace(self, **files)


@dataclass
class TrainDev:
    """Training and dev pairs, their name, and what to tell the user about them."""

    name: str
    train: Sequence[Pair]
    dev: list[Pair]
    notes: list[str] = field(default_factory=list)


Read = Callable[[DataSpec], Pairs]
Split = Callable[[Any], tuple[Sequence[Pair], list[Pair]]]


def open_pairs(
    spec: DataSpec, dev: DataSpec, read: Read, task: str = "transduce", split: Split = split_dev
) -> TrainDev:
    """What to train on and the dev part: the one given, or a part held back."""
    name = _builtin_name(spec, task)
    if name:
        splits = builtin(name)
        data = TrainDev(name, splits.train, splits.dev, splits.notes)
    else:
        pairs = read(spec)
        data = TrainDev(pairs.name, pairs.pairs, [], list(pairs.notes))
    if dev.is_given():
        name = _builtin_name(dev, task)
        held = Pairs(name, name, builtin(name).dev) if name else read(dev)
        data.dev, data.notes = list(held.pairs), [*data.notes, *held.notes]
    elif not data.dev:
        data.train, data.dev = split(data.train)
        data.notes.append(
            f"held back as the dev part, by a hash of the source: {len(data.dev):,} of "
            f"{len(data.train) + len(data.dev):,} examples; --dev names your own"
        )
    return data


def open_test(
    spec: DataSpec, read: Read, task: str = "transduce"
) -> tuple[Sequence[Pair], list[str]]:
    """The examples to evaluate on; of built-in data the test part."""
    name = _builtin_name(spec, task)
    if name:
        test = builtin(name).test
        return test, [f"the test part of {name}: {len(test):,} pairs, none of them in training"]
    pairs = read(spec)
    return pairs.pairs, pairs.notes


def _builtin_name(spec: DataSpec, task: str) -> str | None:
    """The name of the built-in data meant, which only one task can use; None for files."""
    name = spec.builtin_name()
    if name and task != "transduce":
        raise UserError(f"{name}: built-in data are pairs for --task transduce; name a file")
    return name
