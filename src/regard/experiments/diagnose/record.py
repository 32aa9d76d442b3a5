"""Figures of what the run wrote down while it trained: its curves."""

import itertools
import statistics

from regard.experiments.diagnose.findings import Figures
from regard.experiments.diagnose.subject import Subject
from regard.storage.run_folder import points

SPIKE = 1.5  # times the loss around it, and as many of its usual jumps
END = 0.2  # the share of a run whose slope says whether it still improves


def curve_figures(subject: Subject) -> Figures:
    """Losses at the beginning and the end, slope, spikes, clipping."""
    record, training = subject.record, subject.config.training
    name = "nll" if any("nll" in line for line in record.train) else "loss"
    losses = [loss for _, loss in points(record.train, name)]
    dev = points(record.dev, "loss")
    norms = [norm for _, norm in points(record.train, "norm")]
    steps = [step for step, _ in points(record.train, "loss")]
    best = min(dev, key=lambda point: point[1], default=None)
    return {
        "steps": int(max([*steps, *(step for step, _ in dev)], default=0)),
        "finished": bool(record.final),
        "first": losses[0] if losses else None,
        "last": statistics.fmean(losses[-5:]) if losses else None,
        "lowest": min(losses, default=None),
        "dev_last": dev[-1][1] if dev else None,
        "dev_best": best[1] if best else None,
        "dev_best_step": int(best[0]) if best else None,
        "dev_gain_at_end": gain_at_end(dev),
        "spikes": spikes(losses),
        "clipped": _clipped(norms, training.clip),
        "lr": training.lr,
        "epochs": max((e for _, e in points(record.train, "epoch")), default=None),
    }


def gain_at_end(dev: list[tuple[float, float]]) -> float | None:
    """By how much the dev loss fell in the last part of the run, as a share of its whole fall."""
    if len(dev) < 4:
        return None
    whole = dev[0][1] - min(loss for _, loss in dev)
    start = dev[-1][0] - END * (dev[-1][0] - dev[0][0])
    before = min(loss for step, loss in dev if step <= start)
    return (before - dev[-1][1]) / whole if whole > 0 else 0.0


def spikes(losses: list[float]) -> int:
    """How often the loss jumps far above the lines around it and comes back."""
    jumps = [abs(b - a) for a, b in itertools.pairwise(losses)]
    usual = statistics.median(jumps) if jumps else 0.0
    count = 0
    for place in range(5, len(losses)):
        around = statistics.median(losses[place - 5 : place])
        count += losses[place] > SPIKE * around and losses[place] - around > 10 * usual
    return count


def _clipped(norms: list[float], clip: float) -> float | None:
    """The share of lines after the first tenth whose mean gradient norm is above the limit."""
    later = norms[len(norms) // 10 :]
    return sum(norm > clip for norm in later) / len(later) if clip and later else None
