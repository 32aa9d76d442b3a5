"""The dev score of the model compared with that of its best baseline, from the final scores."""

from collections.abc import Iterator

from regard.experiments.diagnose.diagnosed_run import DiagnosedRun
from regard.experiments.diagnose.findings import Finding, Statistics
from regard.metrics.metric_names import METRICS, best_of
from regard.views.report.score_table import format_score, headline

MIN_GAIN = 0.1  # `dev_gain_at_end` of a run that still improves
MIN_CLOSED = 0.05  # fraction of the way from the baseline to the best possible score
HALF = 50.0  # of a score from 0 to 100: a problem only if both scores are on the bad side


def why_no_baseline(subject: DiagnosedRun) -> str:
    """Return why the run has no score of a baseline; an empty string if it has one."""
    if not subject.record.final:
        return "the run is not finished"
    best = headline(subject.record)
    return "" if best and best.baseline else "no baseline has the metric of the run"


def baseline_statistics(subject: DiagnosedRun) -> Statistics:
    """Return the metric, the dev score of the model, and name and score of its best baseline."""
    best = headline(subject.record)
    assert best is not None and best.baseline is not None
    return {
        "metric": best.metric,
        "score": best.value,
        "baseline": best.baseline.name,
        "baseline_score": best.baseline.scores[best.metric],
    }


def baseline_line(found: Statistics) -> str:
    """Return the statistics as a sentence."""
    metric = found["metric"]
    score, base = (format_score(metric, found[key], 2) for key in ("score", "baseline_score"))
    return f"dev {metric} {score}, baseline {base} ({found['baseline']})"


def baseline_verdicts(stats: dict[str, Statistics]) -> Iterator[Finding]:
    """Yield a finding if the model is not better than its best baseline on dev, or only barely."""
    found = stats.get("baselines")
    if not found:
        return
    metric, score, base = found["metric"], found["score"], found["baseline_score"]
    known, best = METRICS.get(metric), best_of(metric)
    perfect = best(0.0, 100.0) if known is not None and known.is_bounded else None
    if score == perfect:
        return
    longer = "train longer: --budget, --steps or --epochs"
    if score != base and best(score, base) == score:
        if perfect is not None and _is_barely_better(score, base, perfect):
            yield Finding(
                "barely-better-than-baseline",
                "problem",
                f"{baseline_line(found)}: only {(score - base) / (perfect - base):.1%} of the way "
                f"from the baseline to {perfect:.0f}",
                f"fix the other findings first; otherwise {longer}, or a larger model",
            )
        return
    improving = (stats.get("curve", {}).get("dev_gain_at_end") or 0.0) > MIN_GAIN
    yield Finding(
        "dev-no-better-than-baseline",
        "problem",
        f"{baseline_line(found)}: the model is not better than its best baseline",
        f"{longer}; the dev loss is still falling"
        if improving
        else "fix the other findings first; otherwise train longer (--budget 10m), use more "
        "training data, or use the baseline instead of the model",
    )


def _is_barely_better(score: float, base: float, perfect: float) -> bool:
    """Return whether a bad score is nearly that of the baseline. All are from 0 to 100."""
    closed = (score - base) / (perfect - base)
    return closed < MIN_CLOSED and abs(perfect - score) > HALF
