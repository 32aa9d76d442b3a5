"""Opening large files: the pairs that stay in them, and their dev part."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from regard.core.cache import Facts, cached, make_key
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
    """Train and dev parts of large pairs: the same as `read.split_dev` gives for a list."""

    def build(folder: Path) -> Facts:
        hashes = pairs.hashes()
        different = np.unique(hashes)
        last = different[dev_size(len(pairs), len(different)) - 1]
        rows = np.flatnonzero(hashes <= last)
        np.save(folder / "rows.npy", rows)
        return {
            "pairs": [[pair.source, pair.target, pair.line] for pair in PairSubset(pairs, rows)]
        }

    folder, facts = cached("dev", make_key(pairs.key), build)
    train = np.ones(len(pairs), bool)
    train[np.load(folder / "rows.npy")] = False
    return PairSubset(pairs, np.flatnonzero(train)), [Pair(*pair) for pair in facts["pairs"]]


def read_large(paths: Sequence[str], names: Names = (None, None)) -> Pairs | None:
    """The pairs of large files, left in them; None where they are small or must be read whole."""
    if sum(map(text_size, paths)) <= memory_limit():
        return None
    shown = [show_path(path) for path in paths]
    files = [open_text(path) for path in paths]
    notes: list[str] = []
    if len(paths) > 1:
        kind: type[PairFormat] = AlignedPairs
    else:
        kind = recognize(paths[0], _beginning(files[0]), notes)
    key = make_key([file.digest for file in files], kind.__name__, names)
    try:
        folder, facts = cached("pairs", key, Scan(shown, files, kind, names).run)
    except Quoted:
        return None
    pairs = LargePairs(folder, facts, [file.path for file in files])
    own = [notes + ["byte order mark removed"] * file.marked for file in files]
    notes = note_files(shown, own, facts["returns"])
    total = size(sum(file.size for file in files))
    notes += [*facts["notes"], f"{total} of text, read in pieces; index in {folder}"]
    return Pairs(stem(paths[0]), " and ".join(shown), pairs, notes)


def _beginning(file: TextFile) -> str:
    """The first lines of a text."""
    with open(file.path, "rb") as stream:
        return (stream.read(BLOCK) + stream.readline()).decode().removeprefix(BOM)
