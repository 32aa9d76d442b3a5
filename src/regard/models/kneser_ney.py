"""Counts and discounts of n-grams for interpolated modified Kneser-Ney smoothing.

Level n has all n-grams of length n. The key of an n-gram is V times the index of its first n - 1
tokens in level n - 1, plus its last token.
N tokens of a text, M n-grams of a level, V vocabulary.
"""

import numpy as np

from regard.data.tensors.special import BOS, EOS, MASK, PAD

NON_TEXT_IDS = [PAD, BOS, MASK]  # special tokens that occur in no text, unlike UNK


def count(
    tokens: np.ndarray, times: np.ndarray | None, vocabulary: int, order: int
) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Return the keys and counts of each level, from 1 to `order`, for a text (N,).

    Level 1 has all V tokens, so that its indices are the tokens themselves.
    times: how often each token counts (N,), by default once.
    """
    V, counted = vocabulary, ~np.isin(tokens, NON_TEXT_IDS)
    ends = tokens == EOS
    contexts = _shift(
        np.where(ends, BOS, tokens), BOS
    )  # (N,) index of the context in the previous level
    indices = tokens  # (N,) index of the n-gram that ends at the token; -1: none
    keys = [np.arange(V)]
    counts = [np.bincount(tokens[counted], None if times is None else times[counted], V)]
    for _ in range(1, order):
        at = np.flatnonzero(counted & (contexts >= 0))
        unique, first, inverse = np.unique(
            contexts[at] * V + tokens[at], return_index=True, return_inverse=True
        )
        follows = np.bincount(indices[at[first]], minlength=len(keys[-1]))
        counts[-1] = np.where(follows > 0, follows, counts[-1])
        keys.append(unique)
        counts.append(np.bincount(inverse, None if times is None else times[at], len(unique)))
        indices = np.full(len(tokens), -1)
        indices[at] = inverse
        contexts = _shift(np.where(ends, -1, indices), -1)
    return keys, counts


def discount(
    keys: np.ndarray, counts: np.ndarray, vocabulary: int, contexts: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return the discounted probabilities (M,) of a level, and the backoff weight per context.

    contexts: number of contexts.
    """
    context = keys // vocabulary  # (M,)
    discounted = np.array([0.0, *discounts(counts)])[np.minimum(counts, 3).astype(np.int64)]
    totals = np.bincount(context, counts, contexts)
    removed = np.bincount(context, discounted, contexts)
    rest = np.divide(removed, totals, out=np.ones(contexts), where=totals > 0)
    return (counts - discounted) / np.maximum(totals, 1)[context], rest


def discounts(counts: np.ndarray) -> tuple[float, float, float]:
    """Return D1, D2 and D3+ from the numbers of n-grams with counts 1 to 4 (Chen and Goodman 1999).

    If the data does not suffice, return 0.5, 1 and 1.5, as KenLM does (Heafield et al. 2013).
    """
    n1, n2, n3, n4 = (int((counts == k).sum()) for k in (1, 2, 3, 4))
    if min(n1, n2, n3, n4) > 0:
        y = n1 / (n1 + 2 * n2)
        d1, d2, d3 = 1 - 2 * y * n2 / n1, 2 - 3 * y * n3 / n2, 3 - 4 * y * n4 / n3
        if 0 < d1 < 1 and 0 < d2 < 2 and 0 < d3 < 3:
            return d1, d2, d3
    return 0.5, 1.0, 1.5


def _shift(x: np.ndarray, first: int) -> np.ndarray:
    """Return x shifted right by one, with `first` in front."""
    return np.concatenate([[first], x])[:-1]
