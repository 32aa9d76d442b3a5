"""Verdicts about the data: unknown tokens, distribution shift, unrelated targets.

A verdict derives a finding from the statistics of the probes. A side is the source or the target.
"""

from collections.abc import Iterator
from typing import Any

from regard.experiments.diagnose.findings import Finding, Statistics

MAX_UNKNOWN = 0.3  # fraction of unknown tokens that is a problem
WARN_UNKNOWN = 0.1  # fraction that is a warning
MAX_SHIFT = 0.25  # increase of the cross-entropy from held-out training texts to dev: problem
MIN_SHIFT = 0.1  # increase that is a warning
MIN_Z_SCORE = 5.0  # standard errors
MAX_SWAPPED = 0.9  # swapped sides must reduce the cross-entropy of dev to this fraction
MIN_DEPENDENCE = 4.0  # standard errors below which targets look independent of sources
MIN_SOURCE_GAIN = 0.02  # increase of the loss with other sources, relative to the baseline loss
MAX_TRIAL_LOSS = 0.9  # fraction of the baseline loss below which a trial has learned the labels
MAX_LENGTH_RATIO = 2.0  # of the median lengths in train and dev


def data_verdicts(stats: dict[str, Statistics], settings: dict[str, Any]) -> Iterator[Finding]:
    """Yield all findings about the data."""
    tokens, shift = stats.get("tokens", {}), stats.get("distribution_shift", {})
    yield from _unknown(tokens, settings)
    swapped = list(_swapped(shift))
    yield from swapped or _distribution_shift(shift, tokens)
    yield from _independent(stats)
    yield from _lengths(tokens)


def _unknown(tokens: Statistics, settings: dict[str, Any]) -> Iterator[Finding]:
    """Yield a finding for each side with many out-of-vocabulary tokens."""
    for side in ("source", "target"):
        fraction = tokens.get(f"{side}_train", {}).get("unknown", 0.0)
        if fraction < WARN_UNKNOWN:
            continue
        key = f"task.{side}" if f"task.{side}.vocab_size" in settings else "task"
        size = settings.get(f"{key}.vocab_size")
        fix = f"--set {key}.vocab_size=null (now {size})" if size else f"--set {key}.tokenizer=char"
        yield Finding(
            f"{side}-oov",
            "problem" if fraction >= MAX_UNKNOWN else "warning",
            f"{fraction:.0%} of the {side} tokens in the training set are out of vocabulary; "
            "the model cannot tell them apart",
            f"{fix}, or --set {key}.tokenizer=bpe, which splits rare words into known subwords",
        )


def _swapped(shift: Statistics) -> Iterator[Finding]:
    """Yield a finding if source and target are swapped in train or dev."""
    sides = [shift.get(side, {}) for side in ("source", "target")]
    if not all("swapped" in side for side in sides):
        return
    if all(
        side["swapped"] < MAX_SWAPPED * side["dev"]
        and side["excess"] > MIN_SHIFT
        and side["z_score"] > MIN_Z_SCORE
        for side in sides
    ):
        source = sides[0]
        yield Finding(
            "source-and-target-swapped",
            "problem",
            "the dev sources look like the training targets, and the dev targets like the training "
            f"sources: dev sources have {source['swapped']:.2f} nats per character under a model "
            f"of the targets, {source['dev']:.2f} under one of the sources",
            "swap the columns of one of the two files: --source-column 2 --target-column 1, or "
            "--source and --target",
        )


def _distribution_shift(shift: Statistics, tokens: Statistics) -> Iterator[Finding]:
    """Yield a finding if dev texts differ from training texts."""
    worst: tuple[float, str] | None = None
    for side, found in shift.items():
        if found["excess"] > MIN_SHIFT and found["z_score"] > MIN_Z_SCORE:
            evidence = (
                f"dev {side}s have a different character distribution: {found['dev']:.2f} nats per "
                f"character, held-out training texts {found['train']:.2f} ({found['excess']:+.0%})"
            )
            worst = max(worst or (0.0, ""), (found["excess"] / MAX_SHIFT, evidence))
    for side in ("source", "target"):
        train, dev = (tokens.get(f"{side}_{part}", {}) for part in ("train", "dev"))
        more = dev.get("unknown", 0.0) - train.get("unknown", 0.0)
        if more > WARN_UNKNOWN:
            evidence = (
                f"{dev['unknown']:.0%} of the dev {side} tokens are out of vocabulary, "
                f"{train['unknown']:.0%} of the training tokens"
            )
            worst = max(worst or (0.0, ""), (more / MAX_UNKNOWN, evidence))
    if worst is not None:
        yield Finding(
            "dev-distribution-shift",
            "problem" if worst[0] >= 1 else "warning",
            worst[1],
            "use a dev set from the same distribution: omit --dev to hold out part of the "
            "training data; or train on data like the dev set",
        )


def _independent(stats: dict[str, Statistics]) -> Iterator[Finding]:
    """Yield a finding if targets look independent of their sources."""
    dependence = stats.get("dependence", {})
    train, dev = dependence.get("train"), dependence.get("dev")
    if train is None or train["z_score"] >= MIN_DEPENDENCE or not source_is_ignored(stats, "dev"):
        return
    if _trial_learns_labels(stats):
        return
    in_dev = f"; in dev {dev['z_score']:.0f}" if dev and dev["z_score"] > MIN_DEPENDENCE else ""
    yield Finding(
        "targets-independent-of-sources",
        "problem",
        f"targets look independent of sources in {train['examples']:,} training examples: "
        f"{train['z_score']:.1f} standard errors from shuffled targets{in_dev}",
        "check some lines of the training file: were sources or targets sorted, shuffled or "
        "shifted separately? regard check DATA lists pairs with an unusual length ratio",
    )


def _trial_learns_labels(stats: dict[str, Statistics]) -> bool:
    """Return whether a trial predicts labels or numbers of dev, which takes the source.

    A model of token sequences can beat the constant baseline by the targets alone.
    """
    found = stats.get("ceiling", {})
    trials = [found[name]["loss"] for name in ("continued", "rival") if name in found]
    losses = [loss for loss in trials if loss is not None]
    has_labels = stats.get("metadata", {}).get("labels", False)
    return has_labels and bool(losses) and min(losses) < MAX_TRIAL_LOSS * found["baseline"]


def source_is_ignored(stats: dict[str, Statistics], part: str) -> bool:
    """Return whether other sources leave the loss unchanged; True if this was not measured."""
    source, baseline = stats.get("source", {}).get(part), baseline_loss(stats, part)
    if source is None or not baseline:
        return True
    change = max(source.get("other_source", 0.0), source["shuffled_tokens"])
    return bool(change < MIN_SOURCE_GAIN * baseline)


def baseline_loss(stats: dict[str, Statistics], part: str) -> float | None:
    """Return the loss of the constant baseline. part: train or dev."""
    return stats.get("losses", {}).get(part, {}).get("baseline")


def _lengths(tokens: Statistics) -> Iterator[Finding]:
    """Yield a finding if dev examples are much longer or shorter than training examples."""
    for side in ("source", "target"):
        train, dev = (tokens.get(f"{side}_{part}", {}) for part in ("train", "dev"))
        lengths = train.get("length", 0.0), dev.get("length", 0.0)
        if min(lengths) > 0 and max(lengths) / min(lengths) >= MAX_LENGTH_RATIO:
            yield Finding(
                "dev-lengths-differ",
                "warning",
                f"the median {side} length is {lengths[0]:.0f} tokens in train and "
                f"{lengths[1]:.0f} in dev",
                "use a dev set with lengths as in training, or train on such lengths too",
            )
            return
