"""The order of training examples: a pure function of the seed and the epoch."""

import numpy as np


def batches(lengths: np.ndarray, tokens: int, seed: int, epoch: int) -> list[np.ndarray]:
    """Index arrays, one a batch, that visit every example once.

    lengths: (N, sides) tokens of each side. Examples of like length go together, so that little
    is padding: they are shuffled, sorted by length (ties stay shuffled), cut so that a batch has
    at most `tokens` padded positions on its longer side, and the batches are shuffled.
    The result depends on the arguments alone, so a run resumes from (epoch, position).
    """
    random = np.random.default_rng([seed, epoch])
    order = np.arange(len(lengths), dtype=np.uint32 if len(lengths) < 1 << 32 else np.int64)
    random.shuffle(order)
    longest = np.maximum.reduce(list(lengths.T))
    order = order[_sorting(_key(lengths, longest)[order])]
    cuts = _cuts(longest[order], tokens)
    pieces = np.split(order, cuts)
    return [pieces[i] for i in random.permutation(len(pieces))]


def _key(lengths: np.ndarray, longest: np.ndarray) -> np.ndarray:
    """What is sorted by, one number an example: the longer side, then how the sides differ.

    The second goes up where the first is odd and down where it is even. So the examples on either
    side of a step in the first are alike in the second, and a batch across the step has little
    padding.
    """
    if lengths.shape[1] == 1:
        return longest
    more = lengths[:, 0].astype(np.int32) - lengths[:, 1]
    np.negative(more, out=more, where=longest % 2 == 0)
    lowest = int(more.min(initial=0))
    span = int(more.max(initial=0)) - lowest + 1
    large = int(longest.max(initial=0)) * span >= 1 << 31
    return longest.astype(np.int64 if large else np.int32) * span + (more - lowest)


def _sorting(key: np.ndarray) -> np.ndarray:
    """The stable order of whole numbers; small ones take two bytes, which sort ten times faster."""
    narrow = key.max(initial=0) < 1 << 16
    return np.argsort(key.astype(np.uint16) if narrow else key, kind="stable")


def _cuts(longest: np.ndarray, tokens: int) -> list[int]:
    """Where lengths in rising order are cut; a batch has at least one example."""
    cuts: list[int] = []
    start, count = 0, len(longest)
    while start < count:
        # The padded size grows with every example, so the last that fits is found by halving.
        fits, over = start, min(count, start + max(1, tokens // max(1, int(longest[start])))) + 1
        while over - fits > 1:
            middle = (fits + over) // 2
            if middle < count and (middle - start + 1) * int(longest[middle]) <= tokens:
                fits = middle
            else:
                over = middle
        start = fits + 1
        cuts.append(start)
    return cuts[:-1]
