"""Verdicts about curves, predictions and model internals: mostly warnings."""

from collections.abc import Iterator

from regard.experiments.diagnose.findings import Finding, Statistics

IMPROVING = 0.03  # minimum `gain_at_end` of a run that has not converged
MIN_EPOCHS = 5  # to train for instead of less than one
MIN_DISTINCT = 0.1  # minimum ratio of distinct predictions to distinct references
MAX_BAD = 0.2  # fraction of predictions that are empty, truncated or repetitive
UNIFORM = 0.98  # fraction of the maximum entropy
DEAD = 0.5  # fraction of units
SATURATED = 0.9  # fraction of gate values
VANISHED = 1e-5  # fraction of the largest gradient norm
CLIPPED = 0.95  # fraction of log lines
MAX_LOSS_GROWTH = 2.0  # times the loss on short inputs, or at early positions


def model_verdicts(stats: dict[str, Statistics]) -> Iterator[Finding]:
    """Yield all findings about curves, predictions, internals and positions."""
    yield from _curve(stats.get("curve", {}))
    yield from _predictions(stats.get("predictions", {}))
    yield from _internals(stats.get("internals", {}))
    yield from _positions(stats.get("losses", {}))


def _curve(curve: Statistics) -> Iterator[Finding]:
    gain, steps = curve.get("dev_gain_at_end"), curve.get("steps", 0)
    if gain is not None and gain > IMPROVING:
        yield Finding(
            "not-converged",
            "warning",
            f"the dev loss was still falling: {gain:.0%} of its total decrease came in the last "
            "fifth of the run",
            f"train longer: --steps {2 * steps}, or twice the --budget",
        )
    epochs = curve.get("epochs")
    if epochs is not None and 0 < epochs < 1:
        yield Finding(
            "less-than-one-epoch",
            "warning",
            f"the run ended after {epochs:.0%} of one pass over the training set: {steps} steps",
            f"train longer: --steps {round(MIN_EPOCHS * steps / epochs)} for {MIN_EPOCHS} epochs",
        )
    if curve.get("spikes"):
        yield Finding(
            "loss-spikes",
            "warning",
            f"the training loss has {curve['spikes']} spikes",
            f"--set training.lr={(curve.get('lr') or 1e-3) / 3:.1g} (now {curve.get('lr'):g}), or "
            "a longer warmup: --set training.schedule.warmup=0.1",
        )
    if (curve.get("clipped") or 0.0) > CLIPPED:
        yield Finding(
            "gradient-always-clipped",
            "note",
            f"the gradient norm exceeded training.clip_norm in {curve['clipped']:.0%} of the log, "
            "so all updates had the same size",
            "--set training.clip_norm=5 allows small updates for small gradients",
        )


def _predictions(predictions: Statistics) -> Iterator[Finding]:
    if not predictions:
        return
    references, count = predictions["distinct_references"], predictions["predictions"]
    if references > 1 and predictions["distinct"] <= max(1, MIN_DISTINCT * references):
        common = predictions["most_frequent"]
        yield Finding(
            "predictions-collapsed",
            "warning",
            f"{count} dev sources get only {predictions['distinct']} distinct predictions "
            f"({references} distinct references); {common['fraction']:.0%} are "
            f"{common['prediction']}",
            "the model falls back to frequent outputs: see the other findings, or train longer",
        )
    kinds = {
        "empty": ("are empty", "check for empty or very short targets: regard check DATA"),
        "truncated": ("do not end", "train longer; regard check DATA lists very long targets"),
        "repetitive": ("are repetitive", "train longer, or --set model.decoder.cross=additive"),
    }
    for key, (what, fix) in kinds.items():
        excess = predictions.get(key, 0.0) - predictions.get(f"{key}_references", 0.0)
        if excess > MAX_BAD:
            yield Finding(
                f"predictions-{key}",
                "warning",
                f"{predictions[key]:.0%} of {count} dev predictions {what}",
                fix,
            )


def _internals(internals: Statistics) -> Iterator[Finding]:
    if not internals:
        return
    uniform = [n for n, entropy in internals["attention_entropy"].items() if entropy > UNIFORM]
    if uniform and len(uniform) == len(internals["attention_entropy"]):
        yield Finding(
            "uniform-attention",
            "warning",
            f"attention is nearly uniform in {', '.join(uniform[:3])}: entropy above "
            f"{UNIFORM:.0%} of the maximum",
            "the model has not learned what to attend to: see the other findings, or train longer",
        )
    for key, name, limit, what, fix in (
        ("dead_units", "dead-units", DEAD, "units are never active", "lower training.lr"),
        ("saturated_gates", "saturated-gates", SATURATED, "gates saturate", "lower training.lr"),
    ):
        bad = {part: fraction for part, fraction in internals[key].items() if fraction > limit}
        if bad:
            worst = max(bad, key=bad.__getitem__)
            yield Finding(
                name,
                "warning",
                f"in {worst}, {bad[worst]:.0%} of the {what}",
                f"{fix}, with a longer training.schedule.warmup",
            )
    if internals["frozen"]:
        names = ", ".join(internals["frozen"])
        yield Finding("weights-frozen", "note", f"not trained: {names}", "--set training.freeze=[]")
    frozen = internals["frozen"]
    trained = {n: g for n, g in internals["gradients"].items() if not _is_frozen(n, frozen)}
    largest = max(trained.values(), default=0.0)
    vanishing = [name for name, norm in trained.items() if norm < VANISHED * largest]
    if vanishing:
        yield Finding(
            "vanishing-gradients",
            "warning",
            f"the gradient vanishes in {', '.join(vanishing[:4])}: below {VANISHED:g} of the "
            "largest one",
            "fewer layers, pre-norm (norm_position=pre), or GRU and LSTM cells",
        )


def _is_frozen(layer: str, prefixes: list[str]) -> bool:
    return any(layer.startswith(prefix) or prefix.startswith(layer) for prefix in prefixes)


def _positions(losses: Statistics) -> Iterator[Finding]:
    lengths, positions = losses.get("by_length") or [], losses.get("by_position") or []
    if len(lengths) > 1 and lengths[-1]["loss"] > MAX_LOSS_GROWTH * lengths[0]["loss"] > 0:
        short, long = lengths[0], lengths[-1]
        yield Finding(
            "long-inputs-worse",
            "note",
            f"dev loss {short['loss']:.2f} up to {short['longest']} tokens, {long['loss']:.2f} "
            f"up to {long['longest']}",
            "more long examples in training; attention (model.decoder.cross=additive) handles "
            "long inputs better than a fixed vector",
        )
    if len(positions) > 2 and positions[-2]["loss"] > MAX_LOSS_GROWTH * positions[0]["loss"] > 0:
        yield Finding(
            "late-positions-worse",
            "note",
            f"dev loss {positions[0]['loss']:.2f} in the first quarter of the targets, "
            f"{positions[-2]['loss']:.2f} in the third",
            "late positions degrade: train longer, or try other attention or positions",
        )
