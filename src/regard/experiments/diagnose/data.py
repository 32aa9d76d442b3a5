"""Figures of the data as the model sees them: unknown symbols, lengths, what answers depend on."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from regard.data.reading.read import Pair
from regard.data.tensors.padded import Batch, Padded
from regard.data.tensors.special import UNK
from regard.experiments.diagnose.findings import Figures
from regard.experiments.diagnose.subject import Subject

COMMON = 300  # symbols of a side whose presence is compared
PAIRS = 2000  # examples that are compared
SHUFFLES = 20
ENOUGH = 200  # examples below which chance hides what depends on what


def symbol_figures(subject: Subject) -> Figures:
    """Shares of unknown symbols and usual lengths, of each side and part."""
    figures: Figures = {"examples": subject.examples}
    for part, pairs in (("train", subject.train), ("dev", subject.dev)):
        for side in ("source", "target"):
            rows = _rows(subject, pairs, side)
            if rows is None:
                continue
            lengths = [len(row) for row in rows]
            unknown = sum(int((row == UNK).sum()) for row in rows)
            figures[f"{side}_{part}"] = {"unknown": unknown / max(1, sum(lengths))}
            if subject.reads_source and lengths:  # how long a document is does not matter
                figures[f"{side}_{part}"]["length"] = float(np.median(lengths))
    return figures


def _rows(subject: Subject, pairs: Sequence[Pair], side: str) -> list[np.ndarray] | None:
    """The symbols of each example; None for a side that has none, or whose symbols are labels."""
    kind, task = subject.config.task.kind, subject.task
    if kind == "tag":  # words may be unknown where letters are read
        blind = getattr(subject.config.model.frontend, "char_encoder", "none") == "none"
        return [_tag_row(task, pair, blind) for pair in pairs] if side == "source" else None
    if kind == "language-model":
        vocabulary = getattr(task, "vocabulary", None) if side == "target" else None
    elif side == "target":
        vocabulary = getattr(task, "target", None)
    else:
        vocabulary = getattr(task.source, "vocabulary", None)
        if vocabulary is None:
            return None
        texts = [task.source.read(pair.source) for pair in pairs]  # type: ignore[attr-defined]
        return [np.asarray(row) for row in vocabulary.encode_all(texts)]
    if vocabulary is None or getattr(task, "letters", None) is not None:
        return None
    return [np.asarray(row) for row in vocabulary.encode_all([getattr(p, side) for p in pairs])]


def _tag_row(task: Any, pair: Pair, blind: bool) -> np.ndarray:
    """The words of a sentence, UNK where the model can read nothing of them."""

    def spelled(word: str) -> bool:
        """Whether some of its characters are known."""
        return len(task.source.unknown((word,))) < len(word)

    known = [task.knows(word) or (not blind and spelled(word)) for word in pair.source]
    return np.array([UNK + 1 if know else UNK for know in known])


def dependence_figures(subject: Subject) -> Figures:
    """How far answers depend on what goes in, beyond chance, in each part.

    Which symbols (and how many) stand in a source and in its answer is counted over all examples,
    and counted again with the answers dealt out at random. `sure` is how many deviations lie
    between.
    """
    figures: Figures = {}
    for part, pairs in (("train", subject.train), ("dev", subject.dev)):
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
    """How often each common symbol stands in each row, and how long the row is; or its numbers."""
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
