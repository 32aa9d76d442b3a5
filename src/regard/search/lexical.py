"""Which target tokens a source token becomes: IBM model 1 (Brown et al. 1993, 4.1).

Every target token of a pair comes from one of its source tokens, each as likely as the others;
t(target | source) is learned by EM. L links: a place of a source with a place of its target.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

Rows = Sequence[Sequence[int]]
PART = 4_000  # pairs that are linked at a time


class Lexicon(NamedTuple):
    """t(target | source) of the tokens that stand in a pair together, by source and target."""

    source: np.ndarray
    target: np.ndarray
    chance: np.ndarray


def learn_lexicon(sources: Rows, targets: Rows, rounds: int = 5) -> Lexicon:
    """The lexicon after so many rounds of EM, which begins with all tokens equally likely."""
    size = 1 + max((max(row, default=0) for row in targets), default=0)
    parts: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = []
    for at in range(0, len(sources), PART):
        links, width = _links(sources[at : at + PART], targets[at : at + PART], size)
        own, place = np.unique(links, return_inverse=True)
        parts.append((own, place.astype(np.int32), width))  # 4 bytes for each link are kept
    keys = np.unique(np.concatenate([np.zeros(0, np.int64), *(own for own, _, _ in parts)]))
    source, target = np.divmod(keys, size)
    chance = np.ones(len(keys))
    for _ in range(rounds):
        counts = np.zeros(len(keys))
        for own, place, width in parts:
            there = np.searchsorted(keys, own)
            counts[there] += _expected(chance[there], place, width)
        chance = counts / np.bincount(source, counts)[source]
    return Lexicon(source, target, chance)


def _links(sources: Rows, targets: Rows, size: int) -> tuple[np.ndarray, np.ndarray]:
    """Each link (L,) as source * size + target, those of a target token in a row; and of every
    target token how many it has."""
    links, widths = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
    for source, target in zip(sources, targets, strict=True):
        if len(source) and len(target):
            left, right = np.asarray(source, np.int64), np.asarray(target, np.int64)
            links.append((left * size + right[:, None]).ravel())
            widths.append(np.full(len(right), len(left)))
    return np.concatenate(links), np.concatenate(widths)


def _expected(chance: np.ndarray, place: np.ndarray, width: np.ndarray) -> np.ndarray:
    """How often each entry of a lexicon is expected to have been at work; place: of each link."""
    each = chance[place]
    if not len(each):
        return np.zeros(len(chance))
    whole = np.add.reduceat(each, np.cumsum(width) - width)  # of a target token, over its sources
    return np.bincount(place, each / np.repeat(whole, width), len(chance))
