"""Verdicts about the fit: underfitting and its causes, an ignored source, overfitting.

If the training loss is large, short trials from random initialization change the learning rate, the
dropout or the width. If a trial beats the full run, its setting is reported as the cause. If only
the dev loss is large, the model overfits, unless dev has another distribution.
"""

from collections.abc import Iterator
from typing import Any

from regard.experiments.diagnose.findings import Finding, Statistics
from regard.experiments.diagnose.verdicts_data import (
    MIN_DEPENDENCE,
    baseline_loss,
    source_is_ignored,
)

GAIN = 0.1  # a trial must beat the full run by this fraction of the baseline loss
MAX_LOSS_RATIO = 0.9  # below this fraction of the baseline loss, the model learned something
MIN_OUTPUT_SHIFT = 1e-3  # with a smaller `output_shift`, outputs do not depend on the source
MIN_GENERALIZATION = 0.33  # fraction of the gain on train that must carry over to dev
GOOD_GENERALIZATION = 0.6  # from this fraction on, there is no finding
SMALL_DATA = 1000  # examples
ONE_BATCH = 0.75  # fraction of the baseline loss that one batch must reach
NO_BETTER = 0.97  # from this fraction of the baseline loss on, nothing was learned
Fix = tuple[str, str, str]  # the name of a finding, its fix, and what the trial changed
CONVERGED = 0.03  # maximum `gain_at_end` of a converged run


def fit_verdicts(stats: dict[str, Statistics], settings: dict[str, Any]) -> Iterator[Finding]:
    """Yield all findings about the fit."""
    if not stats.get("curve", {}).get("finished", True) and "losses" not in stats:
        yield _aborted(stats["curve"])
    yield from _trials(stats, settings)
    yield from _source(stats)
    yield from _overfitting(stats)
    yield from _one_batch(stats)


def _aborted(curve: Statistics) -> Finding:
    rate = curve["lr"]  # None: a closed-form solution
    slower = f"--set training.lr={rate / 10:.1g} (now {rate:g}), or " if rate else ""
    return Finding(
        "training-aborted",
        "problem",
        f"training ended after {curve['steps']} steps without a saved model; its last loss was "
        f"{_nats(curve['last'])}",
        f"{slower}--resume if the process was killed",
    )


def run_loss(stats: dict[str, Statistics]) -> float | None:
    """Return the training loss of the saved model, or otherwise the last one in the log."""
    found = stats.get("losses", {}).get("train", {}).get("loss")
    return found if found is not None else stats.get("curve", {}).get("last")


def _trials(stats: dict[str, Statistics], settings: dict[str, Any]) -> Iterator[Finding]:
    """Yield a finding for each setting whose short trial beats the full run."""
    trials, curve = stats.get("trials", {}).get("trials", {}), stats.get("curve", {})
    loss, steps = run_loss(stats), stats.get("trials", {}).get("steps", 0)
    baseline = baseline_loss(stats, "train") or loss
    if loss is None or not baseline:
        return
    own = trials.get("own", {})
    if too_short(stats) and own["loss"] < loss - GAIN * baseline:
        yield Finding(
            "too-few-steps",
            "warning",
            f"the run had {curve['steps']} steps and reached a training loss of {loss:.2f}; "
            f"{steps} steps with the same settings reach {own['loss']:.2f}",
            f"train longer: --steps {10 * steps}",
        )
    for tried, fix_of in (("lr", _learning_rate), ("dropout", _dropout), ("width", _width)):
        found = trials.get(tried, {}).get("loss")
        limit = min(loss, own["loss"] if own.get("loss") is not None else loss)
        if found is None or found > limit - GAIN * baseline:
            continue
        name, fix, change = fix_of(trials, settings)
        yield Finding(
            name,
            "warning" if too_short(stats) else "problem",
            f"{steps} steps from random initialization with {change} reach a training loss of "
            f"{found:.2f}; the full run ({curve.get('steps', 0)} steps) reached {loss:.2f} "
            f"(constant baseline {baseline:.2f})",
            fix,
            weight=loss - found,
        )


def too_short(stats: dict[str, Statistics]) -> bool:
    """Return whether the run was too short to judge, but a trial with its settings learns."""
    trials, baseline = stats.get("trials", {}), baseline_loss(stats, "train") or run_loss(stats)
    own = trials.get("trials", {}).get("own", {}).get("loss")
    few = stats.get("curve", {}).get("steps", 0) < 2 * trials.get("steps", 0)
    return few and own is not None and baseline is not None and own < MAX_LOSS_RATIO * baseline


def _learning_rate(trials: Statistics, settings: dict[str, Any]) -> Fix:
    own, found = trials["own"]["lr"], trials["lr"]["lr"]
    name = f"learning-rate-too-{'high' if own > found else 'low'}"
    fix = f"--set training.lr={found:.1g} (now {own:g})"
    return name, fix, f"a learning rate of {found:.1g} instead of {own:g}"


def _dropout(trials: Statistics, settings: dict[str, Any]) -> Fix:
    keys = [key for key in settings if key.startswith("model.") and settings[key] is not None]
    dropouts = [key for key in keys if key.endswith(".dropout")]
    fix = " ".join(f"--set {key}=0.1" for key in dropouts)
    return "dropout-too-high", f"{fix} (now {_values(settings, dropouts)})", "no dropout"


def _width(trials: Statistics, settings: dict[str, Any]) -> Fix:
    width = trials["width"]["width"]
    keys = [f"model.{side}.width" for side in ("encoder", "decoder")]
    keys = [key for key in keys if settings.get(key) and settings[key] < width]
    fix = " ".join(f"--set {key}={width}" for key in keys)
    now = _values(settings, keys)
    return "model-too-small", f"{fix} (now {now})", f"a width of {width} instead of {now}"


def _values(settings: dict[str, Any], keys: list[str]) -> str:
    return " and ".join(dict.fromkeys(f"{settings[key]:g}" for key in keys))


def _source(stats: dict[str, Statistics]) -> Iterator[Finding]:
    """Yield a finding if the model learns the targets but ignores the source."""
    source, losses = stats.get("source", {}).get("train"), stats.get("losses", {})
    baseline, loss = baseline_loss(stats, "train"), run_loss(stats)
    if source is None or not baseline or loss is None or not source_is_ignored(stats, "train"):
        return
    dependence = stats.get("dependence", {}).get("train")
    if dependence is not None and dependence["z_score"] < MIN_DEPENDENCE:
        return  # the source carries no information
    blind = source["output_shift"] is not None and source["output_shift"] < MIN_OUTPUT_SHIFT
    if not blind and losses["train"]["loss"] > MAX_LOSS_RATIO * baseline:
        return  # nothing was learned at all, which says nothing about the source
    although = ", although targets depend on sources" if dependence is not None else ""
    frozen = stats.get("internals", {}).get("frozen")
    change = source.get("other_source", source["shuffled_tokens"])
    gain = stats.get("curve", {}).get("dev_gain_at_end")
    converged = gain is not None and gain < CONVERGED
    yield Finding(
        "source-ignored",
        "problem"
        if blind or converged
        else "warning",  # early in training, models learn only the targets
        f"replacing the source by another example's changes the loss by only {change:+.3f} nats "
        f"per token{although}; outputs change by {source['output_shift'] or 0.0:.1%} of their "
        "spread over examples",
        f"training.freeze={frozen} cuts the source off from the output; train these weights too"
        if frozen
        else "inspect the attention and the encoder input; try model.decoder.cross=additive, "
        "or another --set model.decoder.kind",
    )


def generalization_ratio(stats: dict[str, Statistics]) -> float | None:
    """Return the fraction of the gain over the baseline on train that carries over to dev.

    The gain is in loss or accuracy, whichever carries over better.
    """
    train, dev = (stats.get("losses", {}).get(part, {}) for part in ("train", "dev"))
    ratios = []
    for key, baseline in (("loss", "baseline"), ("accuracy", "baseline_accuracy")):
        values = [part.get(name) for part in (train, dev) for name in (baseline, key)]
        if any(value is None for value in values):
            continue
        on_train, on_dev = values[0] - values[1], values[2] - values[3]
        if abs(on_train) > GAIN * max(abs(values[0]), 1e-9):
            ratios.append(on_dev / on_train)
    return max(ratios, default=None)


def _overfitting(stats: dict[str, Statistics]) -> Iterator[Finding]:
    """Yield a finding if little of the gain on train carries over to dev."""
    ratio, metadata = generalization_ratio(stats), stats.get("metadata", {})
    if ratio is None or ratio >= GOOD_GENERALIZATION or metadata.get("count_model"):
        return
    train, dev = (stats["losses"][part] for part in ("train", "dev"))
    examples = stats.get("tokens", {}).get("examples", 0)
    small = examples < SMALL_DATA and not metadata.get("plain_text")
    accuracy = ""
    if train["accuracy"] is not None and dev["accuracy"] is not None:
        accuracy = f", accuracy {train['accuracy']:.0%} and {dev['accuracy']:.0%}"
    yield Finding(
        "too-little-data" if small else "overfitting",
        "problem" if ratio < MIN_GENERALIZATION else "warning",
        f"loss {train['loss']:.2f} on train and {dev['loss']:.2f} on dev{accuracy} (constant "
        f"baseline {dev['baseline']:.2f}); {max(ratio, 0.0):.0%} of the gain over the baseline "
        "carries over to dev",
        (f"more training data than {examples:,} examples, " if small else "more training data, ")
        + "more dropout (--set model.encoder.dropout=0.3), a smaller model, or fewer epochs",
    )


def _one_batch(stats: dict[str, Statistics]) -> Iterator[Finding]:
    """Yield a finding if the model cannot memorize a single batch."""
    found = stats.get("trials", {}).get("one_batch")
    if not found or not found["baseline"]:
        return
    loss, baseline = found["after"], found["baseline"]
    if loss is not None and loss < ONE_BATCH * baseline:
        return
    reached, base = run_loss(stats), baseline_loss(stats, "train")
    if reached is not None and base is not None and reached < MAX_LOSS_RATIO * base:
        return  # with more steps, the model fits the training set
    yield Finding(
        "cannot-overfit-one-batch",
        "warning",
        f"{found['steps']} steps on one batch, without dropout, reach a loss of {_nats(loss)} "
        f"(constant baseline {baseline:.2f})",
        "use a wider or deeper model, or another model.encoder.kind",
    )


def no_better_than_baseline(stats: dict[str, Statistics]) -> Iterator[Finding]:
    """Yield a finding if the loss is large and nothing else explains it."""
    loss, baseline = run_loss(stats), baseline_loss(stats, "train")
    if loss is None or not baseline or loss < NO_BETTER * baseline:
        return
    improving = (stats.get("curve", {}).get("dev_gain_at_end") or 0.0) > GAIN
    yield Finding(
        "no-better-than-baseline",
        "warning" if improving or too_short(stats) else "problem",
        f"the training loss is {loss:.2f}, the constant baseline {baseline:.2f}",
        "train longer, or try another kind of model",
    )


def _nats(loss: float | None) -> str:
    return "not finite" if loss is None else f"{loss:.2f}"
