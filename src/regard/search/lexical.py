"""Lexical translation probabilities: IBM model 1 (Brown et al. 1993, 4.1).

The model generates each target token of a sentence pair from one of its source tokens, all equally
probable. EM learns t(target | source). A link pairs a source position with a target position.
L links.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

Rows = Sequence[Sequence[int]]
BLOCK = 4_000  # sentence pairs linked at a time


class Lexicon(NamedTuple):
    """Probabilities t(target | source) of tokens that occur together in a sentence pair.

    Three arrays of equal length, sorted by source and then by target.
    """

    source: np.ndarray
    target: np.ndarray
    probability: np.ndarray


def learn_lexicon(sources: Rows, targets: Rows, iterations: int = 5) -> Lexicon:
    """Return the lexicon after `iterations` iterations of EM from uniform probabilities."""
    size = 1 + max((max(row, default=0) for row in targets), default=0)
    blocks: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = []
    for at in range(0, len(sources), BLOCK):
        links, width = _links(sources[at : at + BLOCK], targets[at : at + BLOCK], size)
        block_keys, index = np.unique(links, return_inverse=True)
        blocks.append((block_keys, index.astype(np.int32), width))  # 4 bytes are kept per link
    keys = np.unique(
        np.concatenate([np.zeros(0, np.int64), *(block_keys for block_keys, _, _ in blocks)])
    )
    source, target = np.divmod(keys, size)
    probability = np.ones(len(keys))
    for _ in range(iterations):
        counts = np.zeros(len(keys))
        for block_keys, index, width in blocks:
            at_keys = np.searchsorted(keys, block_keys)
            counts[at_keys] += _expected_counts(probability[at_keys], index, width)
        probability = counts / np.bincount(source, counts)[source]
    return Lexicon(source, target, probability)


def _links(sources: Rows, targets: Rows, size: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the links and the number of links per target position.

    A link (L,) is source * size + target. Links are grouped by target position.
    """
    links, widths = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
    for source, target in zip(sources, targets, strict=True):
        if len(source) and len(target):
            left, right = np.asarray(source, np.int64), np.asarray(target, np.int64)
            links.append((left * size + right[:, None]).ravel())
            widths.append(np.full(len(right), len(left)))
    return np.concatenate(links), np.concatenate(widths)


def _expected_counts(probability: np.ndarray, index: np.ndarray, width: np.ndarray) -> np.ndarray:
    """Return the expected count of each lexicon entry.

    index: lexicon entry of each link. width: number of links per target position.
    """
    weights = probability[index]
    if not len(weights):
        return np.zeros(len(probability))
    totals = np.add.reduceat(weights, np.cumsum(width) - width)  # per target position
    return np.bincount(index, weights / np.repeat(totals, width), len(probability))
