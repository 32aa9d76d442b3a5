"""Statistics of the loss curves and gradient norms in the training log."""

import itertools
import statistics

from regard.experiments.diagnose.diagnosed_run import DiagnosedRun
from regard.experiments.diagnose.findings import Statistics
from regard.storage.run_folder import points

SPIKE = 1.5  # a spike exceeds the median of the previous losses by this factor
END = 0.2  # the last fraction of the run, for `gain_at_end`


def curve_statistics(subject: DiagnosedRun) -> Statistics:
    """Return first, last and best losses, the gain at the end, spikes and clipping."""
    record, training = subject.record, subject.config.training
    name = "nll" if any("nll" in line for line in record.train) else "loss"
    losses = [loss for _, loss in points(record.train, name)]
    dev = points(record.dev, "loss")
    norms = [norm for _, norm in points(record.train, "grad_norm")]
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
        "clipped": _clipped(norms, training.clip_norm),
        "lr": training.lr,
        "epochs": max((e for _, e in points(record.train, "epoch")), default=None),
    }


def gain_at_end(dev: list[tuple[float, float]]) -> float | None:
    """Return the fraction of the decrease of the dev loss that came in the last fifth of the run.

    Return None with fewer than four validations.
    """
    if len(dev) < 4:
        return None
    total = dev[0][1] - min(loss for _, loss in dev)
    start = dev[-1][0] - END * (dev[-1][0] - dev[0][0])
    before = min(loss for step, loss in dev if step <= start)
    return (before - dev[-1][1]) / total if total > 0 else 0.0


def spikes(losses: list[float]) -> int:
    """Count losses far above the median of the previous five."""
    jumps = [abs(b - a) for a, b in itertools.pairwise(losses)]
    typical = statistics.median(jumps) if jumps else 0.0
    count = 0
    for position in range(5, len(losses)):
        around = statistics.median(losses[position - 5 : position])
        count += losses[position] > SPIKE * around and losses[position] - around > 10 * typical
    return count


def _clipped(norms: list[float], clip: float) -> float | None:
    """Return the fraction of gradient norms above `clip`, without the first tenth of the log."""
    later = norms[len(norms) // 10 :]
    return sum(norm > clip for norm in later) / len(later) if clip and later else None
