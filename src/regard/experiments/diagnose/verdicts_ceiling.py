"""Verdicts from long trials: is the model far below what the data allows, and why?"""

from collections.abc import Iterator
from typing import Any

from regard.experiments.diagnose.findings import Finding, Severity, Statistics

FAR = 0.12  # decrease of the dev loss, relative to that of the run: problem
NEAR = 0.06  # decrease that is a warning
MIN_DECREASE = 0.01  # also relative to the loss of the constant baseline
MIN_LEAD = 0.1  # by which the decrease of a rival must exceed that of more steps
MIN_NGRAM_LEAD = 0.05  # decrease of an n-gram model: problem
MORE = 5  # times as much training, as advice


def ceiling_verdicts(stats: dict[str, Statistics], settings: dict[str, Any]) -> Iterator[Finding]:
    """Yield a finding for each trial that reaches a clearly lower dev loss than the run."""
    found = stats.get("ceiling", {})
    if "continued" not in found:
        return
    more_steps, rival = _gain(found, found["continued"]), _gain(found, found.get("rival"))
    if more_steps:
        yield _too_early(stats, settings, more_steps)
    if rival >= more_steps + MIN_LEAD:
        yield _unsuited(stats, rival)
    if "ngram" in found:
        yield from _ngram(found)


def _gain(found: Statistics, trial: Statistics | None) -> float:
    """Return the decrease of the dev loss by a trial relative to the run; 0 if it is not clear."""
    run, baseline = found["run"], found["baseline"]
    if trial is None or trial["loss"] is None:
        return 0.0
    if (trial["accuracy"] or 0.0) < (run["accuracy"] or 0.0):
        return 0.0
    decrease = run["loss"] - trial["loss"]
    gain = decrease / run["loss"]
    return float(gain) if gain >= NEAR and decrease >= MIN_DECREASE * baseline else 0.0


def _severity(gain: float) -> Severity:
    return "problem" if gain >= FAR else "warning"


def _too_early(stats: dict[str, Statistics], settings: dict[str, Any], gain: float) -> Finding:
    found, curve = stats["ceiling"], stats.get("curve", {})
    continued, steps = found["continued"], curve.get("steps", 0)
    budget = settings.get("training.budget")
    epochs = curve.get("epochs")
    length = f"{steps:,} steps" + (f", {epochs:.1f} epochs" if epochs is not None else "")
    more = f"--steps {MORE * max(steps, continued['steps'])}"
    if budget:
        more = f"--budget {MORE * budget:.0f}s"
    return Finding(
        "stopped-too-early",
        _severity(gain),
        f"{_judged(gain)}: {continued['steps']} more steps from its weights "
        f"{_effect(found, continued)}; the run had {length}",
        f"train longer: {more}",
        weight=gain,
    )


def _unsuited(stats: dict[str, Statistics], gain: float) -> Finding:
    found = stats["ceiling"]
    rival = found["rival"]
    fix = " ".join(f"--set {key}={_shown(value)}" for key, _, value in rival["changes"])
    now = ", ".join(dict.fromkeys(_shown(own) for _, own, _ in rival["changes"]))
    return Finding(
        f"unsuited-{rival['kind']}",
        _severity(gain),
        f"{_judged(gain)}: {rival['steps']} steps from random initialization with "
        f"{_listed(rival['changes'])} {_effect(found, rival)}; the run had "
        f"{stats.get('curve', {}).get('steps', 0):,} steps",
        f"{fix} (now {now})",
        weight=gain,
    )


def _judged(gain: float) -> str:
    """Return the start of a sentence about the model."""
    return f"the model is {'far ' if gain >= FAR else ''}below what this data allows"


def _ngram(found: Statistics) -> Iterator[Finding]:
    run, ngram = found["run"]["loss"], found["ngram"]
    if ngram["loss"] is None or ngram["loss"] >= run:
        return
    gain = 1 - ngram["loss"] / run
    yield Finding(
        "worse-than-ngram",
        "problem" if gain >= MIN_NGRAM_LEAD else "warning",
        f"an n-gram model of order {ngram['order']}, counted in seconds, has a dev loss of "
        f"{ngram['loss']:.2f} nats per token; the model has {run:.2f}",
        "train longer or with a larger model: --budget 10m; or use the n-gram model: "
        "--set model.kind=ngram",
    )


def _effect(found: Statistics, trial: Statistics) -> str:
    """Return what a trial reaches compared with the run, as part of a sentence."""
    run = found["run"]
    text = f"reach a dev loss of {trial['loss']:.2f} instead of {run['loss']:.2f}"
    if run["accuracy"] is not None and trial["accuracy"] is not None:
        text += f" and an accuracy of {trial['accuracy']:.0%} instead of {run['accuracy']:.0%}"
    return f"{text} (constant baseline {found['baseline']:.2f})"


def _listed(changes: list[Any]) -> str:
    return ", ".join(f"{key}={_shown(value)}" for key, _, value in changes)


def _shown(value: Any) -> str:
    return f"{value:g}" if type(value) is float else str(value).lower()
