"""Random samples of the training set, for learning curves, quick trials and baselines."""

from __future__ import annotations

import os
import random
from collections.abc import Sequence
from typing import Any

import numpy as np

from regard.core.limits import memory_limit
from regard.data.reading.graph import Graph
from regard.data.reading.media_source import MediaSource
from regard.data.reading.read import Pair
from regard.data.sources.large import PairSubset, base_and_rows, large_base

LARGE_CHUNK = 200  # consecutive pairs that are read together if the file stays on disk


def sample_pairs(pairs: Sequence[Pair], count: int, seed: int) -> Sequence[Pair]:
    """Return `count` random pairs, in their order in the file.

    With the same seed, a smaller sample is a subset of a larger one. A sample of a large file is
    read into memory if it fits the memory limit.
    """
    chosen = np.sort(np.random.default_rng(seed).permutation(len(pairs))[:count])
    large = large_base(pairs)
    if large is None:
        return [pairs[row] for row in chosen.tolist()]
    base, rows = base_and_rows(pairs)
    sample = PairSubset(base, rows[chosen])
    size = sum(map(os.path.getsize, large.paths)) * count / len(large)
    return list(sample) if size <= memory_limit() else sample


def bounded_sample(pairs: Sequence[Pair], max_pairs: int, max_characters: int) -> list[Pair]:
    """Return a random sample in random order, the same at each call, and at least one pair.

    max_characters: of all sources and targets. From large files, chunks of pairs are sampled.
    """
    chunk = 1 if large_base(pairs) is None else LARGE_CHUNK
    chunks = -(-len(pairs) // chunk)
    order = random.Random(0).sample(range(chunks), min(chunks, -(-max_pairs // chunk)))
    kept: list[Pair] = []
    characters = 0
    for number in order:
        start = number * chunk
        for pair in [pairs[start]] if chunk == 1 else pairs[start : start + chunk]:
            characters += side_size(pair.source) + side_size(pair.target)
            if kept and (characters > max_characters or len(kept) == max_pairs):
                return kept
            kept.append(pair)
    return kept


def side_size(side: Any) -> int:
    """Return the number of characters of a source or target; of a vector or file, the numbers;
    of a graph, the nodes.
    """
    if isinstance(side, str | MediaSource | Graph):
        return len(side)
    return sum(len(part) if isinstance(part, str) else 1 for part in side)
