"""Statistics of the trained model's loss: on both sets, by length and position, with other sources.

The constant baseline predicts the same for every input: the label frequencies or the mean target
of the training set. Shapes: B examples, C numbers per example, N labels, V classes.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from regard.data.tensors.padded import Batch, Padded
from regard.experiments.diagnose.diagnosed_run import DiagnosedRun
from regard.experiments.diagnose.findings import Statistics

Change = Callable[[Padded], Padded]  # changes the sources of a batch
QUARTERS = 4


def loss_statistics(subject: DiagnosedRun) -> Statistics:
    """Return loss and accuracy of the model and of the constant baseline, on train and dev."""
    model = subject.trained
    train, dev = subject.batches(subject.train), subject.batches(subject.dev)
    baseline = constant_prediction(train)
    stats: Statistics = {}
    for name, batches in (("train", train), ("dev", dev)):
        stats[name] = {
            "loss": subject.loss(model, batches),
            "baseline": constant_loss(baseline, batches, subject.objective),
            "accuracy": accuracy_of(model, batches),
            "baseline_accuracy": baseline_accuracy(baseline, batches),
        }
    if stats["dev"]["loss"] is not None:
        stats["by_length"] = by_length(subject, dev)
        stats["by_position"] = by_position(model, dev)
    return stats


def labels_of(batch: Batch) -> Tensor | None:
    """Return the reference labels (N,) of a batch; None for numbers and multi-label data."""
    if batch.target is not None:
        return batch.target.data[labeled(batch)]
    return batch.labels if batch.labels is not None and batch.labels.dim() == 1 else None


def all_labels(batches: Sequence[Batch]) -> Tensor | None:
    """Return the reference labels (N,) of all batches; None for numbers and multi-label data."""
    labels = [found for batch in batches if (found := labels_of(batch)) is not None]
    return torch.cat(labels) if labels else None


def constant_prediction(batches: Sequence[Batch]) -> Tensor | None:
    """Return the constant baseline: the count of each label (V,), or the mean target (C,)."""
    labels = all_labels(batches)
    if labels is not None:
        return torch.bincount(labels).float()
    numbers = [batch.labels for batch in batches if batch.labels is not None]
    return torch.cat(numbers).float().mean(0) if numbers else None


def constant_loss(
    baseline: Tensor | None, batches: Sequence[Batch], objective: Any
) -> float | None:
    """Return the loss of the constant baseline on batches; None without labels."""
    if baseline is None or not batches:
        return None
    labels = all_labels(batches)
    if labels is not None:
        size = max(len(baseline), int(labels.max()) + 1)
        counts = F.pad(baseline, (0, size - len(baseline))) + 0.5
        each = -(counts / counts.sum()).log()[labels]
        weights = [b.weight for b in batches if b.weight is not None]
        if weights and len(weight := torch.cat(weights)) == len(each):
            return float((each * weight).sum() / weight.sum())
        return float(each.mean())
    numbers = torch.cat([batch.labels for batch in batches if batch.labels is not None]).float()
    if hasattr(objective, "distance"):
        return float(objective.distance(numbers - baseline).sum(1).mean())
    p = baseline.clamp(1e-3, 1 - 1e-3).expand_as(numbers)  # multi-label
    return float(F.binary_cross_entropy(p, numbers, reduction="none").sum(1).mean())


def baseline_accuracy(baseline: Tensor | None, batches: Sequence[Batch]) -> float | None:
    """Return the accuracy of always predicting the most frequent label."""
    labels = all_labels(batches)
    if baseline is None or labels is None:
        return None
    return float((labels == int(baseline.argmax())).float().mean())


@torch.no_grad()
def scores_of(model: nn.Module, batch: Batch) -> Tensor | None:
    """Return logits (N, V), one row per label in `labels_of`, or predicted numbers (B, C)."""
    if not getattr(model, "scores_targets", True):
        return None
    scores: Tensor = model(batch).logits
    if scores.dim() == 3:  # a label for each position
        scores = scores[labeled(batch)]
    return scores


def labeled(batch: Batch) -> Tensor:
    """Return the mask (B, S) of positions with a label, or of all target tokens."""
    assert batch.target is not None
    mask, weight = batch.target.mask, batch.weight
    return mask if weight is None or weight.dim() < 2 else mask & (weight > 0)


def accuracy_of(model: nn.Module, batches: Sequence[Batch]) -> float | None:
    """Return the accuracy under teacher forcing; None for numbers and multi-label data."""
    correct = count = 0
    for batch in batches:
        labels, scores = labels_of(batch), scores_of(model, batch)
        if labels is None or scores is None:
            return None
        correct += int((scores.argmax(-1) == labels).sum())
        count += len(labels)
    return correct / count if count else None


def by_length(subject: DiagnosedRun, batches: Sequence[Batch]) -> list[Statistics]:
    """Return the loss of each quarter of the batches, which are sorted by length."""
    size = -(-len(batches) // QUARTERS)
    found = []
    for start in range(0, len(batches), size):
        part = batches[start : start + size]
        loss = subject.loss(subject.trained, part)
        if loss is not None:
            found.append({"longest": max(m.shape[1] for b in part for m in b.masks), "loss": loss})
    return found


def by_position(model: nn.Module, batches: Sequence[Batch]) -> list[Statistics] | None:
    """Return the loss in each quarter of the targets, from first to last positions.

    Return None if targets have no order, as the labels of some nodes of a graph.
    """
    sums, counts = np.zeros(QUARTERS), np.zeros(QUARTERS)
    for batch in batches:
        labels, scores = labels_of(batch), scores_of(model, batch)
        if batch.target is None or labels is None or scores is None:
            return None
        nats = F.cross_entropy(scores.float(), labels, reduction="none").cpu().numpy()
        mask = batch.target.mask
        positions = (mask.cumsum(1) - 1) * QUARTERS // mask.sum(1, keepdim=True)
        at = positions[mask].cpu().numpy()
        if len(at) != len(nats):
            return None
        sums += np.bincount(at, nats, QUARTERS)
        counts += np.bincount(at, minlength=QUARTERS)
    return [
        {"quarter": position + 1, "loss": float(sums[position] / counts[position])}
        for position in range(QUARTERS)
        if counts[position]
    ]


def source_statistics(subject: DiagnosedRun) -> Statistics:
    """Return the increase of the loss with changed sources, in nats per label.

    - `other_source`: each example gets the source of another one.
    - `shuffled_tokens`: all tokens of a batch are shuffled.
    - `shuffled_order`: the tokens within each source are shuffled.
    - `output_shift`: not a loss, but the result of the function `output_shift`.
    """
    model = subject.trained
    changes: dict[str, Change] = {
        "shuffled_tokens": shuffle_tokens,
        "shuffled_order": shuffle_order,
    }
    if not subject.task.is_aligned:  # a tag requires a word at the same position
        changes["other_source"] = swap_sources
    stats: Statistics = {}
    for part, pairs in subject.parts.items():
        batches = [batch for batch in subject.batches(pairs) if batch.rows > 1]
        loss = subject.loss(model, batches)
        if loss is None:
            continue
        stats[part] = {"loss": loss}
        for name, change in changes.items():
            torch.manual_seed(0)
            others = [changed(batch, change) for batch in batches]
            stats[part][name] = (subject.loss(model, others) or 0.0) - loss
        stats[part]["output_shift"] = output_shift(
            model, batches, changes.get("other_source", shuffle_tokens)
        )
    return stats


def output_shift(model: nn.Module, batches: Sequence[Batch], change: Change) -> float | None:
    """Return the RMS change of the outputs with changed sources.

    The change is divided by the standard deviation of the outputs over examples.
    """
    shift = spread = 0.0
    torch.manual_seed(0)
    for batch in batches:
        before, after = scores_of(model, batch), scores_of(model, changed(batch, change))
        if before is None or after is None:
            return None
        shift += float((after - before).double().square().mean())
        spread += float((before - before.mean(0)).double().square().mean())
    return (shift / spread) ** 0.5 if spread > 0 else 0.0


def changed(batch: Batch, change: Change) -> Batch:
    """Return the batch with `change` applied to its sources."""
    assert batch.source is not None
    return batch._replace(source=change(batch.source))


def swap_sources(source: Padded) -> Padded:
    """Give each example the source of the previous example."""
    return source._replace(data=source.data.roll(1, 0), mask=source.mask.roll(1, 0))


def shuffle_tokens(source: Padded) -> Padded:
    """Shuffle the tokens of all sources in a batch; lengths do not change.

    Sources that are one position each, such as images, are shuffled as they are.
    """
    if source.data.shape[:2] != source.mask.shape:
        rows = torch.randperm(len(source.data)).to(source.data.device)
        return source._replace(data=source.data[rows])
    data = source.data.clone()
    real = data[source.mask]
    data[source.mask] = real[torch.randperm(len(real)).to(real.device)]
    return source._replace(data=data)


def shuffle_order(source: Padded) -> Padded:
    """Shuffle the tokens within each source; images, which are one position, do not change."""
    data, mask = source.data, source.mask
    if data.shape[:2] != mask.shape:
        return source
    keys = torch.rand(mask.shape).to(mask.device) + (~mask) * 2.0
    at = keys.argsort(1)
    at = at if data.dim() == 2 else at.unsqueeze(-1).expand_as(data)
    return source._replace(data=data.gather(1, at))
