"""The order of training examples: a pure function of the seed and the epoch."""

import numpy as np


def batches(lengths: np.ndarray, tokens: int, seed: int, epoch: int) -> list[np.ndarray]:
    """Index arrays, one a batch, that visit every example once.

    lengths: (N, sides) symbols of each side. Examples of like length go together, so that little
    is padding: they are shuffled, sorted by length (ties stay shuffled), cut so that a batch has
    at most `tokens` padded positions on its longer side, and the batches are shuffled.
    The result depends on the arguments alone, so a run resumes from (epoch, position).
    """
    random = np.random.default_rng([seed, epoch])
    shuffled = random.permutation(len(lengths))
    longest = lengths[shuffled].max(1)
    keys = [lengths[shuffled, side] for side in range(lengths.shape[1])]
    order = shuffled[np.lexsort([*keys, longest])]
    cuts = _cuts(lengths.max(1)[order].tolist(), tokens)
    pieces = np.split(order, cuts)
    return [pieces[i] for i in random.permutation(len(pieces))]


def _cuts(longest: list[int], tokens: int) -> list[int]:
    """Where a sorted list of lengths is cut; a batch has at least one example."""
    cuts, start = [], 0
    for i, length in enumerate(longest):
        if i > start and (i - start + 1) * length > tokens:
            cuts.append(i)
            start = i
    return cuts
