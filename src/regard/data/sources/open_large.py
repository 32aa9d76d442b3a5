"""Open large files as pairs that stay on disk, and split off a dev set."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from regard.core.cache import Metadata, cached, make_key
from regard.core.formatting import size
from regard.core.limits import memory_limit
from regard.data.reading.lines import BOM, note_files, show_path, stem
from regard.data.reading.pair_format import AlignedPairs, Names, PairFormat
from regard.data.reading.pair_reader import recognize
from regard.data.reading.read import Pair, Pairs, dev_size
from regard.data.sources.large import LargePairs, PairSubset
from regard.data.sources.scan import Quoted, Scan
from regard.data.sources.textfile import BLOCK, TextFile, open_text, text_size


def split_large(pairs: LargePairs) -> tuple[PairSubset, list[Pair]]:
    """Split large pairs into a training and a dev set, as `read.split_dev` splits a list."""

    def build(folder: Path) -> Metadata:
        hashes = pairs.hashes()
        distinct = np.unique(hashes)
        last = distinct[dev_size(len(pairs), len(distinct)) - 1]
        rows = np.flatnonzero(hashes <= last)
        np.save(folder / "rows.npy", rows)
        return {
            "pairs": [[pair.source, pair.target, pair.line] for pair in PairSubset(pairs, rows)]
        }

    folder, metadata = cached("dev", make_key(pairs.key), build)
    train = np.ones(len(pairs), bool)
    train[np.load(folder / "rows.npy")] = False
    return PairSubset(pairs, np.flatnonzero(train)), [Pair(*pair) for pair in metadata["pairs"]]


def read_large(paths: Sequence[str], names: Names = (None, None)) -> Pairs | None:
    """Return the pairs of one file or two aligned files, which stay on disk.

    Return None if the files fit the memory limit or cannot be split into blocks.
    """
    limit = memory_limit()
    if sum(text_size(path, limit) for path in paths) <= limit:
        return None
    shown = [show_path(path) for path in paths]
    files = [open_text(path) for path in paths]
    notes: list[str] = []
    if len(paths) > 1:
        kind: type[PairFormat] = AlignedPairs
    else:
        kind = recognize(paths[0], _first_lines(files[0]), notes)
    key = make_key([file.digest for file in files], kind.__name__, names)
    try:
        folder, metadata = cached("pairs", key, Scan(shown, files, kind, names).run)
    except Quoted:
        return None
    pairs = LargePairs(folder, metadata, [file.path for file in files])
    file_notes = [notes + ["byte order mark removed"] * file.has_bom for file in files]
    notes = note_files(shown, file_notes, metadata["returns"])
    total = size(sum(file.size for file in files))
    notes += [*metadata["notes"], f"{total} of text, streamed; index in {folder}"]
    return Pairs(stem(paths[0]), " and ".join(shown), pairs, notes)


def _first_lines(file: TextFile) -> str:
    """Return the first block of a text, complete lines without byte order mark."""
    with open(file.path, "rb") as stream:
        return (stream.read(BLOCK) + stream.readline()).decode().removeprefix(BOM)
