"""A corpus with memory-mapped token ids.

Memory holds only the start and length of each source and target, twelve bytes per pair.
"""

import mmap
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from regard.core.cache import cached, make_key
from regard.data.corpus.corpora import Corpus, PairCorpus
from regard.data.corpus.encode import SIDES, encode_pairs
from regard.data.corpus.ragged import Ragged
from regard.data.sources.large import LargePairs
from regard.data.tensors.padded import Batch
from regard.data.tokenizers.tokenizer import Tokenizer

MAX_ROWS_READ = 1 << 14  # examples read before memory pages are released: about 130 MB


class MappedCorpus(Corpus):
    """Pairs whose token ids stay in a file until a batch needs them."""

    def __init__(self, pairs: PairCorpus, maps: Sequence[mmap.mmap], fingerprint: str) -> None:
        self.pairs, self.maps, self.fingerprint = pairs, maps, fingerprint
        self.rows_read = 0
        self.ordered: tuple[tuple[int, int, int], list[np.ndarray]] | None = None

    @property
    def lengths(self) -> np.ndarray:
        """Number of tokens of each source and target, EOS included: (N, 2)."""
        return self.pairs.lengths

    def __len__(self) -> int:
        return len(self.pairs)

    def batch(self, rows: np.ndarray) -> Batch:
        """Return the examples with these indices as a batch."""
        self.rows_read += len(rows)
        if self.rows_read > MAX_ROWS_READ:
            self.rows_read = 0
            for one in self.maps:
                release_pages(one)
        return self.pairs.batch(rows)

    def order(self, tokens: int, seed: int, epoch: int) -> list[np.ndarray]:
        """Return the batches of an epoch as index arrays; cache them, as this takes seconds."""
        key = (tokens, seed, epoch)
        if self.ordered is None or self.ordered[0] != key:
            self.ordered = None  # frees the old order before the new one is built
            self.ordered = (key, super().order(*key))
        return self.ordered[1]

    def digest(self) -> str:
        """Return the hash of all examples, read from the cache."""
        return self.fingerprint


def map_corpus(
    pairs: LargePairs, rows: np.ndarray | None, source: Tokenizer, target: Tokenizer
) -> MappedCorpus:
    """Return the corpus of the pairs with the indices `rows` (None: all pairs)."""
    folder, metadata = encode_pairs(pairs, source, target)
    maps, sides = [], []
    for name, kind, narrow in zip(SIDES, metadata["types"], metadata["lengths"], strict=True):
        found = _map(folder / f"{name}.flat")
        flat = np.frombuffer(found, kind)
        lengths = np.fromfile(folder / f"{name}.lengths", narrow)
        wide = np.uint32 if len(flat) < 1 << 32 else np.int64
        starts = np.cumsum(lengths, dtype=wide) - lengths.astype(wide)
        if rows is not None:
            starts, lengths = starts[rows], lengths[rows]
        maps.append(found)
        sides.append(Ragged(flat, starts, lengths))
    corpus = PairCorpus(*sides)
    part = b"" if rows is None else np.ascontiguousarray(rows, np.int64).tobytes()
    key = make_key(pairs.key, source.content(), target.content(), part)
    _, known = cached("digests", key, lambda _: {"digest": corpus.digest()})
    for one in maps:
        release_pages(one)
    return MappedCorpus(corpus, maps, known["digest"])


def lengths_of(
    pairs: LargePairs, rows: np.ndarray | None, source: Tokenizer, target: Tokenizer
) -> np.ndarray:
    """Return the number of source and target tokens, EOS included, of each pair: (N, 2).

    rows: indices of the pairs (None: all pairs).
    """
    folder, metadata = encode_pairs(pairs, source, target)
    found = [
        np.fromfile(folder / f"{name}.lengths", narrow)
        for name, narrow in zip(SIDES, metadata["lengths"], strict=True)
    ]
    return np.stack(found if rows is None else [side[rows] for side in found], 1)


def _map(path: Path) -> mmap.mmap:
    with open(path, "rb") as file:
        return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)


def release_pages(pages: mmap.mmap) -> None:
    """Release the memory pages of a mapped file; the system reads them again when needed."""
    if hasattr(pages, "madvise"):
        pages.madvise(mmap.MADV_DONTNEED)
