"""Verdicts about the data: unknown tokens, parts of different kinds, answers of others."""

from collections.abc import Iterator
from typing import Any

from regard.experiments.diagnose.findings import Figures, Finding

UNKNOWN = 0.3  # share of unknown tokens that makes a side unreadable
SOME_UNKNOWN = 0.1
ANOTHER_KIND = 0.25  # more nats a letter than training texts of the same kind, as a share
OTHER_WORDS = 0.1
SURE = 5.0  # standard errors
CROSSED = 0.9  # turned round, dev fits better: at most this share of its nats
BY_CHANCE = 4.0  # deviations below which answers look dealt out at random
NOTHING = 0.02  # nats from the source, as a share of the loss of always the same answer
LONGER = 2.0


def data_verdicts(figures: dict[str, Figures], settings: dict[str, Any]) -> Iterator[Finding]:
    """All that is wrong with the data."""
    tokens, likeness = figures.get("tokens", {}), figures.get("likeness", {})
    yield from _unknown(tokens, settings)
    swapped = list(_swapped(likeness))
    yield from swapped or _another_kind(likeness, tokens)
    yield from _unrelated(figures)
    yield from _lengths(tokens)


def _unknown(tokens: Figures, settings: dict[str, Any]) -> Iterator[Finding]:
    """Sides whose tokens the vocabulary of the run does not hold."""
    for side in ("source", "target"):
        share = tokens.get(f"{side}_train", {}).get("unknown", 0.0)
        if share < SOME_UNKNOWN:
            continue
        key = f"task.{side}" if f"task.{side}.size" in settings else "task"
        size = settings.get(f"{key}.vocab_size")
        change = (
            f"--set {key}.vocab_size=null (now {size})" if size else f"--set {key}.tokenizer=char"
        )
        yield Finding(
            f"{side}-tokens-unknown",
            "problem" if share >= UNKNOWN else "hint",
            f"{share:.0%} of the {side} tokens of the training part are not in the vocabulary; "
            "to the model they all look alike",
            f"{change}, or --set {key}.tokenizer=bpe, which cuts rare words into known pieces",
        )


def _swapped(likeness: Figures) -> Iterator[Finding]:
    """Training and dev with source and target the other way round."""
    sides = [likeness.get(side, {}) for side in ("source", "target")]
    if not all("crossed" in side for side in sides):
        return
    if all(
        side["crossed"] < CROSSED * side["dev"]
        and side["excess"] > OTHER_WORDS
        and side["sure"] > SURE
        for side in sides
    ):
        source = sides[0]
        yield Finding(
            "source-and-target-swapped",
            "problem",
            "the dev sources look like the training targets, and the dev targets like the training "
            f"sources: {source['crossed']:.2f} nats a letter for dev sources by the letters of the "
            f"targets, {source['dev']:.2f} by those of the sources",
            "swap the columns of one of the two files: --source-column 2 --target-column 1, or "
            "--source and --target",
        )


def _another_kind(likeness: Figures, tokens: Figures) -> Iterator[Finding]:
    """A dev part whose texts are unlike those of training."""
    worst: tuple[float, str] | None = None
    for side, found in likeness.items():
        if found["excess"] > OTHER_WORDS and found["sure"] > SURE:
            says = (
                f"the dev {side}s are written in other letters: {found['dev']:.2f} nats a letter "
                f"by the letter pairs of training, where training texts of the same kind take "
                f"{found['train']:.2f} ({found['excess']:+.0%})"
            )
            worst = max(worst or (0.0, ""), (found["excess"] / ANOTHER_KIND, says))
    for side in ("source", "target"):
        train, dev = (tokens.get(f"{side}_{part}", {}) for part in ("train", "dev"))
        more = dev.get("unknown", 0.0) - train.get("unknown", 0.0)
        if more > SOME_UNKNOWN:
            says = (
                f"{dev['unknown']:.0%} of the dev {side} tokens are not in the vocabulary, "
                f"{train['unknown']:.0%} of those of training"
            )
            worst = max(worst or (0.0, ""), (more / UNKNOWN, says))
    if worst is not None:
        yield Finding(
            "dev-of-another-kind",
            "problem" if worst[0] >= 1 else "hint",
            worst[1],
            "give a dev part of the same kind as training: leave --dev out and a part of the "
            "training data is held back; or train on data like those of dev",
        )


def _unrelated(figures: dict[str, Figures]) -> Iterator[Finding]:
    """Answers that do not belong to their sources."""
    dependence = figures.get("dependence", {})
    train, dev = dependence.get("train"), dependence.get("dev")
    if train is None or train["sure"] >= BY_CHANCE or not gives_nothing(figures, "dev"):
        return
    beside = f"; in dev they do ({dev['sure']:.0f})" if dev and dev["sure"] > BY_CHANCE else ""
    yield Finding(
        "targets-unrelated-to-sources",
        "problem",
        f"in {train['examples']:,} training examples the answers do not depend on what goes in: "
        f"{train['sure']:.1f} deviations from answers dealt out at random{beside}",
        "look at some lines of the training file: were sources or targets sorted, shuffled or "
        "shifted on their own? regard check DATA shows pairs whose lengths do not fit",
    )


def gives_nothing(figures: dict[str, Figures], part: str) -> bool:
    """Whether the model's loss is the same with another source; True where it was not looked at."""
    source, same = figures.get("source", {}).get(part), same_of(figures, part)
    if source is None or not same:
        return True
    return max(source.get("other", 0.0), source["mixed"]) < NOTHING * same


def same_of(figures: dict[str, Figures], part: str) -> float | None:
    """The loss of always the same answer."""
    return figures.get("losses", {}).get(part, {}).get("same")


def _lengths(tokens: Figures) -> Iterator[Finding]:
    """A dev part whose examples are much longer or shorter."""
    for side in ("source", "target"):
        train, dev = (tokens.get(f"{side}_{part}", {}) for part in ("train", "dev"))
        lengths = train.get("length", 0.0), dev.get("length", 0.0)
        if min(lengths) > 0 and max(lengths) / min(lengths) >= LONGER:
            yield Finding(
                "dev-lengths-differ",
                "hint",
                f"half of the training {side}s have up to {lengths[0]:.0f} tokens, half of the "
                f"dev {side}s up to {lengths[1]:.0f}",
                "give a dev part with lengths as in training, or train on such lengths too",
            )
            return
