"""The order of batches: a pure function of the seed and the epoch."""

import numpy as np


def batch_order(lengths: np.ndarray, tokens: int, seed: int, epoch: int) -> list[np.ndarray]:
    """Return index arrays, one per batch, that visit every example once.

    lengths: (N, 1) or (N, 2), number of tokens of the source, and of the target if there is one.
    Batches are length-bucketed to save padding. Examples are shuffled, then sorted by length (ties
    stay shuffled), then split into batches, and the batches are shuffled. A batch has at most
    `tokens` padded positions of its longer side. The result depends only on the arguments, so a
    run can resume in the middle of an epoch.
    """
    random = np.random.default_rng([seed, epoch])
    order = np.arange(len(lengths), dtype=np.uint32 if len(lengths) < 1 << 32 else np.int64)
    random.shuffle(order)
    longest = np.maximum.reduce(list(lengths.T))
    order = order[_stable_argsort(_sort_key(lengths, longest)[order])]
    batches = np.split(order, _batch_bounds(longest[order], tokens))
    return [batches[i] for i in random.permutation(len(batches))]


def _sort_key(lengths: np.ndarray, longest: np.ndarray) -> np.ndarray:
    """Return the sort key (N,): the longer length, then source length minus target length.

    The difference ascends if the longer length is odd and descends if it is even. So where the
    longer length increases, neighbors have similar differences, and batches have little padding.
    """
    if lengths.shape[1] == 1:
        return longest
    difference = lengths[:, 0].astype(np.int32) - lengths[:, 1]
    np.negative(difference, out=difference, where=longest % 2 == 0)
    lowest = int(difference.min(initial=0))
    span = int(difference.max(initial=0)) - lowest + 1
    large = int(longest.max(initial=0)) * span >= 1 << 31
    return longest.astype(np.int64 if large else np.int32) * span + (difference - lowest)


def _stable_argsort(key: np.ndarray) -> np.ndarray:
    """Return the stable argsort of integers; uint16, used if they fit, sorts 10 times faster."""
    narrow = key.max(initial=0) < 1 << 16
    return np.argsort(key.astype(np.uint16) if narrow else key, kind="stable")


def _batch_bounds(longest: np.ndarray, tokens: int) -> list[int]:
    """Return the indices at which ascending lengths are split into batches of one or more."""
    bounds: list[int] = []
    start, count = 0, len(longest)
    while start < count:
        # The padded size grows with every example: bisect for the last example that fits.
        fits, over = start, min(count, start + max(1, tokens // max(1, int(longest[start])))) + 1
        while over - fits > 1:
            middle = (fits + over) // 2
            if middle < count and (middle - start + 1) * int(longest[middle]) <= tokens:
                fits = middle
            else:
                over = middle
        start = fits + 1
        bounds.append(start)
    return bounds[:-1]
