"""Verdicts about the fit: underfitting and its causes, a source that is not used, overfitting.

The general guide of courses, as a program. The loss on the training part is large: another rate, no
dropout or a wider model is tried from fresh weights for a few steps, and what does better in these
few steps than the whole run is the cause. It is small, but large on dev: overfitting, unless dev
is of another kind.
"""

from collections.abc import Iterator
from typing import Any

from regard.experiments.diagnose.findings import Figures, Finding
from regard.experiments.diagnose.verdicts_data import BY_CHANCE, gives_nothing, same_of

GAIN = 0.1  # of the loss of always the same answer, by which a trial must beat the whole run
LEARNED = 0.9  # a loss below this share of it: something was learned
MOVED = 1e-3  # outputs that move less do not see the source
CARRIED = 0.33  # share of what was learned on training that must hold on dev
CARRIED_WELL = 0.6
FEW = 1000  # examples
ONE_BATCH = 0.75  # share of the loss of always the same answer that must be undercut
NOT_LEARNED = 0.97
Cure = tuple[str, str, str]  # the name of a finding, what to change, and what was tried
SETTLED = 0.03  # of the whole fall of the dev loss, in the last fifth of the run


def fit_verdicts(figures: dict[str, Figures], settings: dict[str, Any]) -> Iterator[Finding]:
    """All that is wrong with how the model fits."""
    if not figures.get("curve", {}).get("finished", True) and "losses" not in figures:
        yield _broke_off(figures["curve"])
    yield from _trials(figures, settings)
    yield from _source(figures)
    yield from _overfits(figures)
    yield from _one_batch(figures)


def _broke_off(curve: Figures) -> Finding:
    return Finding(
        "training-broke-off",
        "problem",
        f"training ended after {curve['steps']} steps, and no model was kept; its last loss was "
        f"{_nats(curve['last'])}",
        f"--set training.lr={(curve['lr'] or 1e-3) / 10:.1g} (now {curve['lr']:g}), or go on with "
        "--resume if it was stopped from outside",
    )


def run_loss(figures: dict[str, Figures]) -> float | None:
    """The loss of the run on the training part: of its model, else the last that was written."""
    found = figures.get("losses", {}).get("train", {}).get("loss")
    return found if found is not None else figures.get("curve", {}).get("last")


def _trials(figures: dict[str, Figures], settings: dict[str, Any]) -> Iterator[Finding]:
    """What a short training with one setting changed does better than the whole run."""
    trials, curve = figures.get("trials", {}).get("trials", {}), figures.get("curve", {})
    loss, steps = run_loss(figures), figures.get("trials", {}).get("steps", 0)
    same = same_of(figures, "train") or loss
    if loss is None or not same:
        return
    own = trials.get("own", {})
    if too_short(figures) and own["loss"] < loss - GAIN * same:
        yield Finding(
            "too-few-steps",
            "hint",
            f"the run had {curve['steps']} steps and came to a training loss of {loss:.2f}; "
            f"{steps} steps with the same settings come to {own['loss']:.2f}",
            f"train longer: --steps {10 * steps}",
        )
    for tried, cure in (("rate", _rate), ("dropout", _dropout), ("wide", _wide)):
        found = trials.get(tried, {}).get("loss")
        limit = min(loss, own["loss"] if own.get("loss") is not None else loss)
        if found is None or found > limit - GAIN * same:
            continue
        name, change, what = cure(trials, settings)
        yield Finding(
            name,
            "hint" if too_short(figures) else "problem",
            f"{steps} steps from fresh weights with {what} come to a training loss of "
            f"{found:.2f}; the whole run of {curve.get('steps', 0)} steps came to {loss:.2f} "
            f"(always the same answer: {same:.2f})",
            change,
            weight=loss - found,
        )


def too_short(figures: dict[str, Figures]) -> bool:
    """Whether the run had too few steps to judge it, while its settings do learn in a few more."""
    trials, same = figures.get("trials", {}), same_of(figures, "train") or run_loss(figures)
    own = trials.get("trials", {}).get("own", {}).get("loss")
    few = figures.get("curve", {}).get("steps", 0) < 2 * trials.get("steps", 0)
    return few and own is not None and same is not None and own < LEARNED * same


def _rate(trials: Figures, settings: dict[str, Any]) -> Cure:
    own, found = trials["own"]["lr"], trials["rate"]["lr"]
    name = f"learning-rate-too-{'high' if own > found else 'low'}"
    change = f"--set training.lr={found:.1g} (now {own:g})"
    return name, change, f"a learning rate of {found:.1g} instead of {own:g}"


def _dropout(trials: Figures, settings: dict[str, Any]) -> Cure:
    keys = [key for key in settings if key.startswith("model.") and settings[key] is not None]
    named = [key for key in keys if key.endswith(".dropout")]
    change = " ".join(f"--set {key}=0.1" for key in named)
    return "dropout-too-high", f"{change} (now {_values(settings, named)})", "no dropout"


def _wide(trials: Figures, settings: dict[str, Any]) -> Cure:
    width = trials["wide"]["width"]
    named = [f"model.{side}.width" for side in ("encoder", "decoder")]
    named = [key for key in named if settings.get(key) and settings[key] < width]
    change = " ".join(f"--set {key}={width}" for key in named)
    was = _values(settings, named)
    return "model-too-small", f"{change} (now {was})", f"a width of {width} instead of {was}"


def _values(settings: dict[str, Any], keys: list[str]) -> str:
    return " and ".join(dict.fromkeys(f"{settings[key]:g}" for key in keys))


def _source(figures: dict[str, Figures]) -> Iterator[Finding]:
    """A model that learns the answers but not from what goes in."""
    source, losses = figures.get("source", {}).get("train"), figures.get("losses", {})
    same, loss = same_of(figures, "train"), run_loss(figures)
    if source is None or not same or loss is None or not gives_nothing(figures, "train"):
        return
    dependence = figures.get("dependence", {}).get("train")
    if dependence is not None and dependence["sure"] < BY_CHANCE:
        return  # there is nothing in it to be used
    blind = source["change"] is not None and source["change"] < MOVED
    if not blind and losses["train"]["loss"] > LEARNED * same:
        return  # nothing was learned at all, so this says nothing about the source
    without = " although answers depend on sources" if dependence is not None else ""
    frozen = figures.get("inside", {}).get("frozen")
    moved = source.get("other", source["mixed"])
    gain = figures.get("curve", {}).get("dev_gain_at_end")
    settled = gain is not None and gain < SETTLED
    yield Finding(
        "source-not-used",
        "problem" if blind or settled else "hint",  # what stands in targets is learned first
        f"with the source of another example the loss changes by {moved:+.3f} nats an answer, "
        f"next to nothing{without}; outputs move by "
        f"{source['change'] or 0.0:.1%} of how far they differ anyway",
        f"nothing of the source reaches the answers: training.freeze holds {frozen}; train these "
        "weights too"
        if frozen
        else "look at attention and at what the encoder is given; try model.decoder.cross=additive,"
        " or another --set model.decoder.kind",
    )


def carried(figures: dict[str, Figures]) -> float | None:
    """The share of what was learned on training that holds on dev, by loss or by right answers."""
    train, dev = (figures.get("losses", {}).get(part, {}) for part in ("train", "dev"))
    shares = []
    for key, same in (("loss", "same"), ("right", "same_right")):
        values = [part.get(name) for part in (train, dev) for name in (same, key)]
        if any(value is None for value in values):
            continue
        learned, kept = values[0] - values[1], values[2] - values[3]
        if abs(learned) > GAIN * max(abs(values[0]), 1e-9):
            shares.append(kept / learned)
    return max(shares, default=None)


def _overfits(figures: dict[str, Figures]) -> Iterator[Finding]:
    """Little of what was learned on training holds on dev."""
    share = carried(figures)
    if share is None or share >= CARRIED_WELL or figures.get("facts", {}).get("counted"):
        return
    train, dev = (figures["losses"][part] for part in ("train", "dev"))
    examples = figures.get("tokens", {}).get("examples", 0)
    few = examples < FEW and not figures.get("facts", {}).get("running")
    right = ""
    if train["right"] is not None and dev["right"] is not None:
        right = f", right answers {train['right']:.0%} and {dev['right']:.0%}"
    yield Finding(
        "too-few-examples" if few else "overfits",
        "problem" if share < CARRIED else "hint",
        f"loss {train['loss']:.2f} on training and {dev['loss']:.2f} on dev{right} (always the "
        f"same answer: {dev['same']:.2f}); {max(share, 0.0):.0%} of what was learned on "
        "training holds on dev",
        (f"more training data: {examples:,} examples are few; " if few else "more training data, ")
        + "more dropout (--set model.encoder.dropout=0.3), a smaller model, or fewer epochs",
    )


def _one_batch(figures: dict[str, Figures]) -> Iterator[Finding]:
    """A model that cannot even learn a few examples by heart."""
    found = figures.get("trials", {}).get("one_batch")
    if not found or not found["same"]:
        return
    loss, same = found["after"], found["same"]
    if loss is not None and loss < ONE_BATCH * same:
        return
    reached = run_loss(figures)
    base = same_of(figures, "train")
    if reached is not None and base is not None and reached < LEARNED * base:
        return  # with more steps it learned all of them
    yield Finding(
        "cannot-learn-one-batch",
        "hint",
        f"{found['steps']} steps on one batch, without dropout, end at a loss of {_nats(loss)} "
        f"(always the same answer: {same:.2f})",
        "a wider or deeper model, or another kind: --set model.encoder.kind=recurrent",
    )


def nothing_learned(figures: dict[str, Figures]) -> Iterator[Finding]:
    """The last word where nothing else explains a large loss."""
    loss, same = run_loss(figures), same_of(figures, "train")
    if loss is None or not same or loss < NOT_LEARNED * same:
        return
    improving = (figures.get("curve", {}).get("dev_gain_at_end") or 0.0) > GAIN
    yield Finding(
        "nothing-learned",
        "hint" if improving or too_short(figures) else "problem",
        f"the training loss is {loss:.2f}, and always the same answer has {same:.2f}",
        "train longer, or try another kind of model",
    )


def _nats(loss: float | None) -> str:
    return "no finite number" if loss is None else f"{loss:.2f}"
