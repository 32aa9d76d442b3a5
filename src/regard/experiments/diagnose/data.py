"""Figures of the data as the model sees them: unknown tokens, lengths, what answers depend on."""

from collections.abc import Sequence

import numpy as np
import torch

from regard.data.reading.read import Pair
from regard.data.tensors.padded import Batch, Padded
from regard.data.tensors.special import UNK
from regard.experiments.diagnose.findings import Figures
from regard.experiments.diagnose.subject import Subject

COMMON = 300  # tokens of a side whose presence is compared
PAIRS = 2000  # examples that are compared
SHUFFLES = 20
ENOUGH = 200  # examples below which chance hides what depends on what


def token_statistics(subject: Subject) -> Figures:
    """Fractions of unknown tokens and usual lengths, of each side and part."""
    figures: Figures = {"examples": subject.examples}
    for part, pairs in subject.parts.items():
        for side, rows in _rows(subject, pairs).items():
            lengths = [len(row) for row in rows]
            unknown = sum(int((row == UNK).sum()) for row in rows)
            figures[f"{side}_{part}"] = {"unknown": unknown / max(1, sum(lengths))}
            if subject.task.reads_source and lengths:  # how long a document is does not matter
                figures[f"{side}_{part}"]["length"] = float(np.median(lengths))
    return figures


def _rows(subject: Subject, pairs: Sequence[Pair]) -> dict[str, list[np.ndarray]]:
    """The token ids of each example, by side; labels and vectors have none."""
    task, rows = subject.task, dict[str, list[np.ndarray] | None]()
    if task.reads_source:
        spelled = getattr(getattr(subject.config.model, "frontend", None), "spelled", False)
        rows["source"] = task.source.token_ids([pair.source for pair in pairs], spelled)
    if task.output_tokenizer is not None:
        ids = task.output_tokenizer.encode_all([pair.target for pair in pairs])
        rows["target"] = [np.asarray(row) for row in ids]
    return {side: found for side, found in rows.items() if found is not None}


def dependence_figures(subject: Subject) -> Figures:
    """How far answers depend on what goes in, beyond chance, in each part.

    Which tokens (and how many) stand in a source and in its answer is counted over all examples,
    and counted again with the answers dealt out at random. `sure` is how many deviations lie
    between.
    """
    figures: Figures = {}
    for part, pairs in subject.parts.items():
        if len(pairs) >= ENOUGH:
            figures[part] = {"examples": min(PAIRS, len(pairs)), "sure": _sure(subject, pairs)}
    return figures


def _sure(subject: Subject, pairs: Sequence[Pair]) -> float:
    """Deviations between the dependence of these pairs and that of pairs dealt out at random."""
    corpus = subject.task.corpus(pairs[:PAIRS])
    batch = corpus.batch(np.arange(len(corpus)))
    source, target = _presence(batch.source), _answers(batch)
    random = np.random.default_rng(0)
    real = _dependence(source, target)
    chance = [_dependence(source, target[random.permutation(len(target))]) for _ in range(SHUFFLES)]
    return float((real - np.mean(chance)) / max(float(np.std(chance)), 1e-9))


def _dependence(source: np.ndarray, target: np.ndarray) -> float:
    """The summed squares of all correlations between columns of both."""
    return float(np.square(source.T @ target / len(source)).sum())


def _answers(batch: Batch) -> np.ndarray:
    """What is to be answered, a row an example, each column around zero with deviation one."""
    if batch.target is not None:
        return _presence(batch.target)
    assert batch.labels is not None
    labels = batch.labels.numpy()
    if labels.ndim == 1:
        labels = np.eye(int(labels.max()) + 1)[labels]
    return _standard(labels.astype(np.float64))


def _presence(side: Padded | None) -> np.ndarray:
    """How often each common token stands in each row, and how long the row is; or its numbers."""
    assert side is not None
    data, mask = side.data, side.mask
    if data.is_floating_point():
        return _standard(data.flatten(1).double().numpy())
    if data.dim() == 3:  # words: their numbers
        data = data[..., 0]
    counts = torch.bincount(data[mask])
    common = counts.argsort(descending=True)[:COMMON]
    place = torch.full((len(counts),), len(common), dtype=torch.long)
    place[common] = torch.arange(len(common))
    columns = torch.zeros(len(data), len(common) + 1, dtype=torch.double)
    columns.scatter_add_(1, place[data.clamp(max=len(counts) - 1)], mask.double())
    columns = columns[:, :-1].clamp(max=1)
    return _standard(np.hstack([columns.numpy(), mask.sum(1, keepdim=True).double().numpy()]))


def _standard(columns: np.ndarray) -> np.ndarray:
    """Columns around zero with deviation one; those that never change are left out."""
    deviation = columns.std(0)
    kept = deviation > 1e-9
    return (columns[:, kept] - columns[:, kept].mean(0)) / deviation[kept]
