"""Verdicts about curves, answers and the inside: mostly hints, which say where to look."""

from collections.abc import Iterator

from regard.experiments.diagnose.findings import Figures, Finding

IMPROVING = 0.03  # of the whole fall of the dev loss, in the last fifth of the run
FEW_DIFFERENT = 0.1  # of as many as the right answers
MANY = 0.2  # share of answers that are empty, cut or repeating
UNIFORM = 0.98
DEAD = 0.5
STUCK = 0.9
VANISHED = 1e-5  # of the largest gradient
CLIPPED = 0.95
WORSE = 2.0  # times the loss of short inputs, or of early tokens


def other_verdicts(figures: dict[str, Figures]) -> Iterator[Finding]:
    """What can be said besides data and fit."""
    yield from _curve(figures.get("curve", {}))
    yield from _answers(figures.get("answers", {}))
    yield from _inside(figures.get("inside", {}))
    yield from _places(figures.get("losses", {}))


def _curve(curve: Figures) -> Iterator[Finding]:
    gain, steps = curve.get("dev_gain_at_end"), curve.get("steps", 0)
    if gain is not None and gain > IMPROVING:
        yield Finding(
            "still-improving",
            "hint",
            f"the dev loss still fell at the end: {gain:.0%} of its whole fall came in the last "
            "fifth of the run",
            f"train longer: --steps {2 * steps}, or twice the --budget",
        )
    if curve.get("spikes"):
        yield Finding(
            "loss-spikes",
            "hint",
            f"the training loss jumped far above its course {curve['spikes']} times",
            f"--set training.lr={(curve.get('lr') or 1e-3) / 3:.1g} (now {curve.get('lr'):g}), or "
            "a longer warm-up: --set training.schedule.warmup=0.1",
        )
    if (curve.get("clipped") or 0.0) > CLIPPED:
        yield Finding(
            "gradient-always-clipped",
            "note",
            f"in {curve['clipped']:.0%} of the record the gradient was above training.clip, so "
            "every step had the same size",
            "--set training.clip=5 lets small gradients take small steps",
        )


def _answers(answers: Figures) -> Iterator[Finding]:
    if not answers:
        return
    right = answers["different_right"]
    if right > 1 and answers["different"] <= max(1, FEW_DIFFERENT * right):
        common = answers["most_frequent"]
        yield Finding(
            "answers-collapsed",
            "hint",
            f"{answers['answers']} dev sources have {answers['different']} different answers, where"
            f" {right} would be right; {common['share']:.0%} are {common['answer']}",
            "the model falls back on what is frequent: see the other findings, or train longer",
        )
    says = {
        "empty": ("are empty", "look for empty or very short targets: regard check DATA"),
        "cut": ("do not end", "train longer; regard check DATA shows targets that are very long"),
        "repeating": ("repeat themselves", "train longer, or --set model.decoder.cross=additive"),
    }
    for key, (what, change) in says.items():
        share = answers.get(key, 0.0) - answers.get(f"{key}_right", 0.0)
        if share > MANY:
            yield Finding(
                f"answers-{'repeat' if key == 'repeating' else key}",
                "hint",
                f"{answers[key]:.0%} of {answers['answers']} dev answers {what}",
                change,
            )


def _inside(inside: Figures) -> Iterator[Finding]:
    if not inside:
        return
    even = [n for n, entropy in inside["attention_entropy"].items() if entropy > UNIFORM]
    if even and len(even) == len(inside["attention_entropy"]):
        yield Finding(
            "attention-uniform",
            "hint",
            f"attention looks at all places alike in {', '.join(even[:3])}: entropy above "
            f"{UNIFORM:.0%} of the largest possible",
            "it has not learned where to look: see the other findings, or train longer",
        )
    for key, name, limit, what, change in (
        ("dead_units", "units-dead", DEAD, "units are never active", "training.lr lower"),
        ("stuck_gates", "gates-saturated", STUCK, "gates are shut or open", "training.lr lower"),
    ):
        bad = {part: share for part, share in inside[key].items() if share > limit}
        if bad:
            worst = max(bad, key=bad.__getitem__)
            yield Finding(
                name,
                "hint",
                f"{bad[worst]:.0%} of the {what} in {worst}",
                f"{change}, with a longer training.schedule.warmup",
            )
    if inside["frozen"]:
        names = ", ".join(inside["frozen"])
        yield Finding("weights-frozen", "note", f"not trained: {names}", "--set training.freeze=[]")
    moving = {n: g for n, g in inside["gradients"].items() if not _frozen(n, inside["frozen"])}
    largest = max(moving.values(), default=0.0)
    gone = [name for name, size in moving.items() if size < VANISHED * largest]
    if gone:
        yield Finding(
            "gradient-vanishes",
            "hint",
            f"no gradient to speak of in {', '.join(gone[:4])}: below {VANISHED:g} of the largest",
            "fewer layers, norms before the branches (norm_position=pre), or gru and lstm cells",
        )


def _frozen(layer: str, prefixes: list[str]) -> bool:
    return any(layer.startswith(prefix) or prefix.startswith(layer) for prefix in prefixes)


def _places(losses: Figures) -> Iterator[Finding]:
    lengths, places = losses.get("by_length") or [], losses.get("by_place") or []
    if len(lengths) > 1 and lengths[-1]["loss"] > WORSE * lengths[0]["loss"] > 0:
        short, long = lengths[0], lengths[-1]
        yield Finding(
            "long-inputs-worse",
            "note",
            f"dev loss {short['loss']:.2f} up to {short['longest']} tokens, {long['loss']:.2f} "
            f"up to {long['longest']}",
            "more long examples in training; attention (model.decoder.cross=additive) reaches "
            "further than a fixed vector",
        )
    if len(places) > 2 and places[-2]["loss"] > WORSE * places[0]["loss"] > 0:
        yield Finding(
            "late-tokens-worse",
            "note",
            f"dev loss {places[0]['loss']:.2f} in the first quarter of the targets, "
            f"{places[-2]['loss']:.2f} in the third",
            "the model loses its place: train longer, or another score or positions",
        )
