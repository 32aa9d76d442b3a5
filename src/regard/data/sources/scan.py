"""Scan large files of pairs: read them once, check them like small files, and build an index.

The index has one entry per block of complete lines, so that blocks can be read separately.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from regard.core.cache import Metadata
from regard.core.progress import ProgressBar
from regard.data.reading.columns import Columns
from regard.data.reading.pair_format import Names, PairFormat, ParsedBlock
from regard.data.reading.pair_reader import LAYOUTS, Block, LineEnds, PairReader
from regard.data.reading.read import hash_source
from regard.data.sources.textfile import TextFile, raw_blocks


class Quoted(Exception):
    """Raised for a file with quotation marks: its cells may contain line ends."""


class Scan:
    """One pass over the blocks of one or two files that collects the index.

    shown: file names in messages. kind: format of the files. names: columns passed by the user.
    """

    def __init__(
        self, shown: Sequence[str], files: Sequence[TextFile], kind: type[PairFormat], names: Names
    ) -> None:
        self.files, self.quote = files, kind.quote
        ends = [LineEnds(file.lines, file.newlines, file.returns) for file in files]
        self.reader = PairReader(shown, kind, names, ends, self._read_blocks)
        # Per block: offset and size per file, first line, index of the first pair.
        self.index: list[list[int]] = []
        self.hashes: list[np.ndarray] = []  # 64-bit hashes of the sources
        self.empty_sides: list[int] = []  # indices of pairs with an empty source or target

    def run(self, folder: Path) -> Metadata:
        """Read the files, write the index to `folder`, and return the metadata.

        Raise UserError for the same problems as for small files.
        """
        reader = self.reader
        with ProgressBar(f"scanning {reader.path}", self.files[0].lines) as bar:
            for block in reader.blocks():
                self._add(block, reader.rows - len(block.sources))
                bar.advance(len(block.sources) + block.blank)
        np.save(folder / "index.npy", np.array(self.index, np.int64))
        np.save(folder / "hashes.npy", np.concatenate(self.hashes))
        np.save(folder / "empty_sides.npy", np.array(self.empty_sides, np.int64))
        layout = {"layout": type(reader.layout).__name__, **asdict(reader.layout)}
        return {
            **{"rows": reader.rows, "layout": layout},
            **{"notes": reader.notes, "returns": reader.returns},
        }

    def _read_blocks(self) -> Iterator[Block]:
        """Yield first line and texts of each block; store the block's location for the index."""
        line = 1
        for raw in raw_blocks(self.files):
            self.location = [n for offset, data in raw for n in (offset, len(data))] + [line]
            texts = [data.decode() for _, data in raw]
            if self.quote and self.quote in texts[0]:
                raise Quoted
            yield line, texts
            line += texts[0].count("\n")

    def _add(self, block: ParsedBlock, first: int) -> None:
        """Add a block to the index. first: index of the first pair of the block."""
        self.index.append([*self.location, first])
        hashes = b"".join(map(hash_source, block.sources))
        self.hashes.append(np.frombuffer(hashes, ">u8").astype(np.uint64))
        sides = enumerate(zip(block.sources, block.targets, strict=True), first)
        self.empty_sides += [
            row for row, (one, other) in sides if not (one.strip() and other.strip())
        ]


def load_layout(metadata: dict[str, Any]) -> PairFormat:
    """Return the format with its columns from the metadata that `Scan.run` returned."""
    named = dict(metadata)
    kind: Callable[..., PairFormat] = LAYOUTS[named.pop("layout")]
    if "columns" in named:
        named["columns"] = Columns(**named["columns"])
    return kind(**named)
