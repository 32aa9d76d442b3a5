"""Figures of the trained model's loss: on both parts, by length and place, with other sources.

B rows, S source length, N answers, V possible answers.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from regard.data.tensors.padded import Batch, Padded
from regard.experiments.diagnose.findings import Figures
from regard.experiments.diagnose.subject import Subject

Change = Callable[[Padded], Padded]  # of sources
QUARTERS = 4


def loss_figures(subject: Subject) -> Figures:
    """Loss and share of right answers on both parts, beside those of always the same answer."""
    model = subject.trained
    train, dev = subject.batches(subject.train), subject.batches(subject.dev)
    same = usual(train)
    figures: Figures = {}
    for name, batches in (("train", train), ("dev", dev)):
        figures[name] = {
            "loss": subject.loss(model, batches),
            "same": same_loss(same, batches, subject.objective),
            "right": right_share(model, batches),
            "same_right": same_right(same, batches),
        }
    if figures["dev"]["loss"] is not None:
        figures["by_length"] = by_length(subject, dev)
        figures["by_place"] = by_place(model, dev)
    return figures


def labels_of(batch: Batch) -> Tensor | None:
    """The right answers (N,) of a batch; None where they are numbers or several at once."""
    if batch.target is not None:
        return batch.target.data[batch.target.mask]
    return batch.labels if batch.labels is not None and batch.labels.dim() == 1 else None


def all_labels(batches: Sequence[Batch]) -> Tensor | None:
    """The right answers (N,) of all batches."""
    labels = [found for batch in batches if (found := labels_of(batch)) is not None]
    return torch.cat(labels) if labels else None


def usual(batches: Sequence[Batch]) -> Tensor | None:
    """How often each answer comes (V,), or the mean answer (C,) where answers are numbers."""
    labels = all_labels(batches)
    if labels is not None:
        return torch.bincount(labels).float()
    numbers = [batch.labels for batch in batches if batch.labels is not None]
    return torch.cat(numbers).float().mean(0) if numbers else None


def same_loss(same: Tensor | None, batches: Sequence[Batch], objective: Any) -> float | None:
    """The loss of a model that gives the same answer, the best single one, whatever comes in."""
    if same is None or not batches:
        return None
    labels = all_labels(batches)
    if labels is not None:
        size = max(len(same), int(labels.max()) + 1)
        counts = F.pad(same, (0, size - len(same))) + 0.5
        each = -(counts / counts.sum()).log()[labels]
        weights = [b.weight for b in batches if b.weight is not None]
        if weights and len(weight := torch.cat(weights)) == len(each):
            return float((each * weight).sum() / weight.sum())
        return float(each.mean())
    numbers = torch.cat([batch.labels for batch in batches if batch.labels is not None]).float()
    if hasattr(objective, "distance"):
        return float(objective.distance(numbers - same).sum(1).mean())
    share = same.clamp(1e-3, 1 - 1e-3).expand_as(numbers)  # several labels at once
    return float(F.binary_cross_entropy(share, numbers, reduction="none").sum(1).mean())


def same_right(same: Tensor | None, batches: Sequence[Batch]) -> float | None:
    """The share of right answers of a model that always gives the most frequent one."""
    labels = all_labels(batches)
    if same is None or labels is None:
        return None
    return float((labels == int(same.argmax())).float().mean())


@torch.no_grad()
def scores_of(model: nn.Module, batch: Batch) -> Tensor | None:
    """The scores of all answers: (N, V) beside `labels_of`, or (B, C) numbers."""
    if not getattr(model, "scores_targets", True):
        return None
    scores: Tensor = model(batch).logits
    if scores.dim() == 3:  # a label for each place
        assert batch.target is not None
        scores = scores[batch.target.mask]
    return scores


def right_share(model: nn.Module, batches: Sequence[Batch]) -> float | None:
    """The share of answers that are right, each after the right ones before it."""
    right = count = 0
    for batch in batches:
        labels, scores = labels_of(batch), scores_of(model, batch)
        if labels is None or scores is None:
            return None
        right, count = right + int((scores.argmax(-1) == labels).sum()), count + len(labels)
    return right / count if count else None


def by_length(subject: Subject, batches: Sequence[Batch]) -> list[Figures]:
    """The loss of the shortest to the longest quarter of the examples."""
    size = -(-len(batches) // QUARTERS)
    found = []
    for start in range(0, len(batches), size):
        part = batches[start : start + size]
        loss = subject.loss(subject.trained, part)
        if loss is not None:
            found.append({"longest": max(m.shape[1] for b in part for m in b.masks), "loss": loss})
    return found


def by_place(model: nn.Module, batches: Sequence[Batch]) -> list[Figures] | None:
    """The loss of the first to the last quarter of each target."""
    sums, counts = np.zeros(QUARTERS), np.zeros(QUARTERS)
    for batch in batches:
        labels, scores = labels_of(batch), scores_of(model, batch)
        if batch.target is None or labels is None or scores is None:
            return None
        nats = F.cross_entropy(scores.float(), labels, reduction="none").cpu().numpy()
        mask = batch.target.mask
        places = (mask.cumsum(1) - 1) * QUARTERS // mask.sum(1, keepdim=True)
        at = places[mask].cpu().numpy()
        sums += np.bincount(at, nats, QUARTERS)
        counts += np.bincount(at, minlength=QUARTERS)
    return [
        {"quarter": place + 1, "loss": float(sums[place] / counts[place])}
        for place in range(QUARTERS)
        if counts[place]
    ]


def source_figures(subject: Subject) -> Figures:
    """What the source gives, in nats an answer: the loss with another source less the loss.

    other: the source of another example; mixed: tokens of all examples dealt out anew; order: the
    tokens of each source in another order. change: how far the outputs move, beside how far they
    differ from answer to answer.
    """
    model = subject.trained
    kinds: dict[str, Change] = {"mixed": mixed, "order": reordered}
    if not subject.task.aligned:  # a tag needs a word in its position
        kinds["other"] = other
    figures: Figures = {}
    for part, pairs in subject.parts.items():
        batches = [batch for batch in subject.batches(pairs) if batch.rows > 1]
        loss = subject.loss(model, batches)
        if loss is None:
            continue
        figures[part] = {"loss": loss}
        for name, change in kinds.items():
            torch.manual_seed(0)
            others = [changed(batch, change) for batch in batches]
            figures[part][name] = (subject.loss(model, others) or 0.0) - loss
        figures[part]["change"] = moved(model, batches, kinds.get("other", mixed))
    return figures


def moved(model: nn.Module, batches: Sequence[Batch], change: Change) -> float | None:
    """How far outputs move with another source, as a share of how far they differ at all."""
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
    """The same batch with other sources."""
    assert batch.source is not None
    return batch._replace(source=change(batch.source))


def other(source: Padded) -> Padded:
    """Each answer with the source of the example before it."""
    return source._replace(data=source.data.roll(1, 0), mask=source.mask.roll(1, 0))


def mixed(source: Padded) -> Padded:
    """All tokens of the batch dealt out anew; lengths stay."""
    data = source.data.clone()
    real = data[source.mask]
    data[source.mask] = real[torch.randperm(len(real)).to(real.device)]
    return source._replace(data=data)


def reordered(source: Padded) -> Padded:
    """The tokens of each row in another order."""
    data, mask = source.data, source.mask
    keys = torch.rand(mask.shape).to(mask.device) + (~mask) * 2.0
    at = keys.argsort(1)
    at = at if data.dim() == 2 else at.unsqueeze(-1).expand_as(data)
    return source._replace(data=data.gather(1, at))
