"""Survey pairs block by block: characters, issues and duplicates.

Only 20 bytes per pair are kept, so that large files can be surveyed.
"""

from __future__ import annotations

import contextlib
import unicodedata
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from regard.core.progress import ProgressBar
from regard.data.reading.pair_format import ParsedBlock
from regard.data.reading.read import Pair
from regard.data.sources.large import blocks, large_base
from regard.data.tokenizers.amount import count_characters

INVISIBLE = frozenset("\u00ad\u200b\u2028\u2029\u202a\u202b\u202c\u202d\u202e\u2060\ufeff")
ISSUES = ("empty", "edge_whitespace", "double_spaces", "control", "replacement", "not_nfc")


@dataclass(frozen=True, slots=True)
class IssueCount:
    """The number of texts with an issue, and the line of the first of them."""

    count: int
    line: int | None

    def add(self, count: int, line: int | None) -> IssueCount:
        """Return the total after a later block with `count` issues, the first in `line`."""
        return IssueCount(self.count + count, line if self.line is None else self.line)


class SideSurvey:
    """The characters of all sources or all targets, and the number of texts per issue."""

    def __init__(self) -> None:
        self.characters: Counter[str] = Counter()
        self.issues = dict.fromkeys(ISSUES, IssueCount(0, None))

    def add(self, texts: list[str], lines: Sequence[int]) -> None:
        """Count the characters and issues of more texts. lines: the line of each text."""
        joined = "".join(texts)
        marks = count_characters(joined, self.characters)
        control = [m for m in marks if m in INVISIBLE or unicodedata.category(m) == "Cc"]
        stripped = [text.strip() for text in texts]
        self._count("empty", [not text for text in stripped], lines)
        edges = [one != text and bool(one) for one, text in zip(stripped, texts, strict=True)]
        self._count("edge_whitespace", edges, lines)
        tests: list[tuple[str, bool, Callable[[str], bool]]] = [
            ("double_spaces", "  " in joined, lambda text: "  " in text),
            ("control", bool(control), lambda text: any(mark in text for mark in control)),
            ("replacement", "\ufffd" in joined, lambda text: "\ufffd" in text),
            (
                "not_nfc",
                not joined.isascii(),
                lambda text: not unicodedata.is_normalized("NFC", text),
            ),
        ]
        for name, possible, has_issue in tests:
            if possible:
                self._count(name, list(map(has_issue, texts)), lines)

    def _count(self, name: str, hits: list[bool], lines: Sequence[int]) -> None:
        if count := sum(hits):
            self.issues[name] = self.issues[name].add(count, lines[hits.index(True)])


class Survey:
    """The survey of all sources and targets, with duplicate pairs and copied sources."""

    def __init__(self, pairs: Sequence[Pair]) -> None:
        self.source, self.target = SideSurvey(), SideSurvey()
        self.copies = IssueCount(0, None)
        # Lines, hashes of sources, and hashes of pairs, one array per block.
        self.found: list[list[np.ndarray]] = [[], [], []]
        large = large_base(pairs) is not None
        with ProgressBar("checking", len(pairs)) if large else contextlib.nullcontext() as bar:
            for block in blocks(pairs):
                self._add(block)
                if bar:
                    bar.advance(len(block.sources))
        none = [np.zeros(0, np.int64)]
        self.lines, sources, both = (np.concatenate(part or none) for part in self.found)
        del self.found
        self._repeats(sources, both)

    def _add(self, block: ParsedBlock) -> None:
        """Add the pairs of a block."""
        count = len(block.sources)
        both = map(hash, zip(block.sources, block.targets, strict=True))
        self.found[0].append(np.fromiter(block.lines, np.uint32, count))
        self.found[1].append(np.fromiter(map(hash, block.sources), np.int64, count))
        self.found[2].append(np.fromiter(both, np.int64, count))
        self.source.add(block.sources, block.lines)
        self.target.add(block.targets, block.lines)
        self._copies(block)

    def _copies(self, block: ParsedBlock) -> None:
        """Count targets that equal the source."""
        sides = zip(block.sources, block.targets, strict=True)
        same = [at for at, (one, other) in enumerate(sides) if one == other and one.strip()]
        if same:
            self.copies = self.copies.add(len(same), block.lines[same[0]])

    def _repeats(self, sources: np.ndarray, pairs: np.ndarray) -> None:
        """Count duplicate pairs and sources with several targets by 64-bit hashes."""
        order = np.argsort(pairs, kind="stable")
        pairs = pairs[order]
        again = np.append(False, pairs[1:] == pairs[:-1])[: len(pairs)]
        repeats = order[again]
        first = int(self.lines[repeats.min()]) if len(repeats) else None
        self.duplicates = IssueCount(len(repeats), first)
        self.sources, targets = np.unique(sources[order[~again]], return_counts=True)
        self.multi_target_sources = int((targets > 1).sum())

    def count_known(self, sources: set[str]) -> int:
        """Return how many of these sources occur in the surveyed pairs."""
        hashes = np.fromiter(map(hash, sources), np.int64, len(sources))
        return int(np.isin(hashes, self.sources).sum())
