"""Lexical translation probabilities: IBM model 1 (Brown et al. 1993, 4.1).

Every target token of a pair comes from one of its source tokens, each with equal probability;
t(target | source) is learned by EM. L links: a source position with a target position.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

Rows = Sequence[Sequence[int]]
BLOCK = 4_000  # pairs that are linked at a time


class Lexicon(NamedTuple):
    """t(target | source) of tokens that occur in a pair together, by source and target."""

    source: np.ndarray
    target: np.ndarray
    probability: np.ndarray


def learn_lexicon(sources: Rows, targets: Rows, iterations: int = 5) -> Lexicon:
    """Return the lexicon after this many iterations of EM from a uniform start."""
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
    """Return each link (L,) as source * size + target, grouped by target token; and the number of
    links of every target token."""
    links, widths = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
    for source, target in zip(sources, targets, strict=True):
        if len(source) and len(target):
            left, right = np.asarray(source, np.int64), np.asarray(target, np.int64)
            links.append((left * size + right[:, None]).ravel())
            widths.append(np.full(len(right), len(left)))
    return np.concatenate(links), np.concatenate(widths)


def _expected_counts(probability: np.ndarray, index: np.ndarray, width: np.ndarray) -> np.ndarray:
    """Return the expected count of each entry of a lexicon; index: the entry of each link."""
    weights = probability[index]
    if not len(weights):
        return np.zeros(len(probability))
    totals = np.add.reduceat(weights, np.cumsum(width) - width)  # per target token
    return np.bincount(index, weights / np.repeat(totals, width), len(probability))
