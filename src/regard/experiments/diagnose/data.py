"""Statistics of the data as the model reads it: unknown tokens, lengths, dependence.

A side is the source or the target of all examples. A set is train or dev.
"""

from collections.abc import Sequence

import numpy as np
import torch

from regard.data.reading.read import Pair
from regard.data.tensors.padded import Batch, Padded
from regard.data.tensors.special import UNK
from regard.experiments.diagnose.diagnosed_run import DiagnosedRun
from regard.experiments.diagnose.findings import Statistics

MAX_TOKENS = 300  # most frequent tokens per side to correlate
MAX_EXAMPLES = 2000  # examples per set to correlate
SHUFFLES = 20
MIN_EXAMPLES = 200  # with fewer, dependence is not significant


def token_statistics(subject: DiagnosedRun) -> Statistics:
    """Return the fraction of unknown tokens and the median length, per side and set."""
    stats: Statistics = {"examples": subject.examples}
    for part, pairs in subject.parts.items():
        for side, rows in _rows(subject, pairs).items():
            lengths = [len(row) for row in rows]
            unknown = sum(int((row == UNK).sum()) for row in rows)
            stats[f"{side}_{part}"] = {"unknown": unknown / max(1, sum(lengths))}
            if subject.task.reads_source and lengths:  # the length of a document does not matter
                stats[f"{side}_{part}"]["length"] = float(np.median(lengths))
    return stats


def _rows(subject: DiagnosedRun, pairs: Sequence[Pair]) -> dict[str, list[np.ndarray]]:
    """Return the token ids of each example, by side. Labels and vectors have no token ids."""
    task, rows = subject.task, dict[str, list[np.ndarray] | None]()
    if task.reads_source:
        spelled = getattr(getattr(subject.config.model, "frontend", None), "spelled", False)
        rows["source"] = task.source.token_ids([pair.source for pair in pairs], spelled)
    if task.output_tokenizer is not None:
        ids = task.output_tokenizer.encode_all([pair.target for pair in pairs])
        rows["target"] = [np.asarray(row) for row in ids]
    return {side: found for side, found in rows.items() if found is not None}


def dependence_statistics(subject: DiagnosedRun) -> Statistics:
    """Return how strongly targets depend on sources, per set.

    Dependence is the sum of squared correlations between tokens (and lengths) of sources and
    targets. `z_score` is the difference from shuffled targets, in standard deviations.
    """
    stats: Statistics = {}
    for part, pairs in subject.parts.items():
        if len(pairs) >= MIN_EXAMPLES:
            stats[part] = {
                "examples": min(MAX_EXAMPLES, len(pairs)),
                "z_score": _z_score(subject, pairs),
            }
    return stats


def _z_score(subject: DiagnosedRun, pairs: Sequence[Pair]) -> float:
    """Return the z-score of the dependence, compared with shuffled targets."""
    corpus = subject.task.corpus(pairs[:MAX_EXAMPLES])
    batch = corpus.batch(np.arange(len(corpus)))
    source, target = _presence(batch.source), _targets(batch)
    rng = np.random.default_rng(0)
    real = _dependence(source, target)
    shuffled = [_dependence(source, target[rng.permutation(len(target))]) for _ in range(SHUFFLES)]
    return float((real - np.mean(shuffled)) / max(float(np.std(shuffled)), 1e-9))


def _dependence(source: np.ndarray, target: np.ndarray) -> float:
    """Return the sum of squared correlations between columns of source and target.

    Both are (examples, columns), standardized.
    """
    return float(np.square(source.T @ target / len(source)).sum())


def _targets(batch: Batch) -> np.ndarray:
    """Return the targets as standardized columns (examples, columns): tokens, labels or numbers."""
    if batch.target is not None:
        return _presence(batch.target)
    assert batch.labels is not None
    labels = batch.labels.numpy()
    if labels.ndim == 1:
        labels = np.eye(int(labels.max()) + 1)[labels]
    return _standard(labels.astype(np.float64))


def _presence(side: Padded | None) -> np.ndarray:
    """Return a standardized feature matrix (examples, features) of one side.

    The features of tokens are the presence of each frequent token and the length. The features of
    vectors are their values.
    """
    assert side is not None
    data, mask = side.data, side.mask
    if data.is_floating_point():
        return _standard(data.flatten(1).double().numpy())
    if data.dim() == 3:  # words with several ids: the first is the word id
        data = data[..., 0]
    counts = torch.bincount(data[mask])
    common = counts.argsort(descending=True)[:MAX_TOKENS]
    column = torch.full((len(counts),), len(common), dtype=torch.long)
    column[common] = torch.arange(len(common))
    columns = torch.zeros(len(data), len(common) + 1, dtype=torch.double)
    columns.scatter_add_(1, column[data.clamp(max=len(counts) - 1)], mask.double())
    columns = columns[:, :-1].clamp(max=1)
    return _standard(np.hstack([columns.numpy(), mask.sum(1, keepdim=True).double().numpy()]))


def _standard(columns: np.ndarray) -> np.ndarray:
    """Standardize each column to mean 0 and variance 1; drop constant columns."""
    deviation = columns.std(0)
    kept = deviation > 1e-9
    return (columns[:, kept] - columns[:, kept].mean(0)) / deviation[kept]
