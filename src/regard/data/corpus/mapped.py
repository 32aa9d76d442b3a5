"""A corpus whose tokens lie in a mapped file: twelve bytes an example are in memory."""

import mmap
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from regard.core.cache import cached, make_key
from regard.data.corpus.corpora import Corpus, PairCorpus
from regard.data.corpus.encode import SIDES, tokens
from regard.data.corpus.ragged import Ragged
from regard.data.sources.large import LargePairs
from regard.data.tensors.padded import Batch
from regard.data.tokenizers.tokenizer import Tokenizer

TOUCHED = 1 << 14  # rows read before the pages they lie on are given back: at most some 130 MB


class MappedCorpus(Corpus):
    """Pairs whose tokens stay in a file until a batch needs them. mark: their fingerprint."""

    def __init__(self, pairs: PairCorpus, maps: Sequence[mmap.mmap], mark: str) -> None:
        self.pairs, self.maps, self.mark = pairs, maps, mark
        self.touched = 0
        self.ordered: tuple[tuple[int, int, int], list[np.ndarray]] | None = None

    @property
    def lengths(self) -> np.ndarray:
        """(N, 2): tokens of source and target, closing tokens included."""
        return self.pairs.lengths

    def __len__(self) -> int:
        return len(self.pairs)

    def batch(self, rows: np.ndarray) -> Batch:
        """The examples with these numbers as a batch."""
        self.touched += len(rows)
        if self.touched > TOUCHED:
            self.touched = 0
            for one in self.maps:
                give_back(one)
        return self.pairs.batch(rows)

    def order(self, tokens: int, seed: int, epoch: int) -> list[np.ndarray]:
        """The batches of an epoch; the last answer is kept, since it takes seconds to make."""
        key = (tokens, seed, epoch)
        if self.ordered is None or self.ordered[0] != key:
            self.ordered = None  # before the new one is made, so that there is only one
            self.ordered = (key, super().order(*key))
        return self.ordered[1]

    def digest(self) -> str:
        """The fingerprint of the corpus, as it was found when it was written."""
        return self.mark


def map_corpus(
    pairs: LargePairs, rows: np.ndarray | None, source: Tokenizer, target: Tokenizer
) -> MappedCorpus:
    """The corpus of these rows, or of all."""
    folder, facts = tokens(pairs, source, target)
    maps, sides = [], []
    for name, kind, narrow in zip(SIDES, facts["types"], facts["lengths"], strict=True):
        found = _map(folder / f"{name}.flat")
        flat = np.frombuffer(found, kind)
        lengths = np.fromfile(folder / f"{name}.lengths", narrow)
        wide = np.uint32 if len(flat) < 1 << 32 else np.int64
        starts = np.cumsum(lengths, dtype=wide) - lengths.astype(wide)
        if rows is not None:
            starts, lengths = starts[rows], lengths[rows]
        maps.append(found)
        sides.append(Ragged(flat, starts, lengths))
    whole = PairCorpus(*sides)
    part = b"" if rows is None else np.ascontiguousarray(rows, np.int64).tobytes()
    key = make_key(pairs.key, source.content(), target.content(), part)
    _, known = cached("digests", key, lambda _: {"digest": whole.digest()})
    for one in maps:
        give_back(one)
    return MappedCorpus(whole, maps, known["digest"])


def lengths_of(
    pairs: LargePairs, rows: np.ndarray | None, source: Tokenizer, target: Tokenizer
) -> np.ndarray:
    """(N, 2): tokens of both sides of these rows, closing tokens included."""
    folder, facts = tokens(pairs, source, target)
    found = [
        np.fromfile(folder / f"{name}.lengths", narrow)
        for name, narrow in zip(SIDES, facts["lengths"], strict=True)
    ]
    return np.stack(found if rows is None else [side[rows] for side in found], 1)


def _map(path: Path) -> mmap.mmap:
    with open(path, "rb") as file:
        return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)


def give_back(pages: mmap.mmap) -> None:
    """Lets go of the pages that were read; they come back from the file when they are needed."""
    if hasattr(pages, "madvise"):
        pages.madvise(mmap.MADV_DONTNEED)
