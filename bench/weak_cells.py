"""The weak and healthy models of `diagnose_weak.py`: data, settings and steps of each."""

from dataclasses import dataclass

BASELINE = ("dev-no-better-than-baseline", "barely-better-than-baseline", "no-better-than-baseline")
EARLY = ("stopped-too-early", *BASELINE)
UNSUITED = ("unsuited-architecture", "unsuited-settings")
SLOW = ("learning-rate-too-low", "unsuited-settings", "stopped-too-early")
NARROW = ("model-too-small", "unsuited-settings")
WET = ("dropout-too-high", "unsuited-settings")
TEXT = ("worse-than-ngram", *EARLY)


@dataclass(frozen=True)
class Cell:
    """A model. expected: the findings that name its weakness; none for a healthy one."""

    data: str
    variant: str
    steps: int
    expected: tuple[str, ...] = ()
    settings: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """The data and the variant."""
        return f"{self.data}-{self.variant}"


def sides(*settings: str) -> tuple[str, ...]:
    """The settings for encoder and decoder."""
    return tuple(
        f"model.{side}.{setting}" for side in ("encoder", "decoder") for setting in settings
    )


FAST = ("training.validation_examples=100",)
SHARED = {
    "transduce": (*FAST, "search.beam=1", "training.batch_tokens=512", *sides("width=64")),
    "tag": FAST,
    "classify": FAST,
    "language-model": (*FAST, "model.decoder.width=96", "training.batch_tokens=1024"),
}
UNORDERED = sides("kind=transformer", "positions.kind=none")
LINEAR = ("model.encoder.kind=linear",)
TINY = sides("kind=recurrent", "width=6")

CELLS = {
    "tune": [
        Cell("numbers", "few-steps", 80, EARLY),
        Cell("dates", "healthy", 500),
        Cell("strings", "unordered", 200, UNSUITED, UNORDERED),
        Cell("g2p", "healthy", 800),
        Cell("classify", "healthy", 200),
        Cell("dates", "slow", 150, SLOW, ("training.lr=3e-5",)),
        Cell("text", "few-steps", 40, TEXT),
        Cell("sorting", "few-steps", 60, EARLY),
        Cell("order", "linear", 150, UNSUITED, LINEAR),
        Cell("inflection", "dropout", 200, WET, sides("dropout=0.8")),
    ],
    "test": [
        Cell("numbers", "few-steps", 60, EARLY),
        Cell("tag", "healthy", 150),
        Cell("negation", "linear", 150, UNSUITED, LINEAR),
        Cell("strings", "unordered", 150, UNSUITED, UNORDERED),
        Cell("toy-translation", "healthy", 400),
        Cell("toy-translation", "few-steps", 30, EARLY),
        Cell("g2p", "few-steps", 50, EARLY),
        Cell("toy-text", "few-steps", 40, TEXT),
        Cell("money", "few-steps", 80, EARLY),
        Cell("negation", "healthy", 200),
        Cell("tag", "linear", 150, UNSUITED, LINEAR),
        Cell("dates", "slow", 150, SLOW, ("training.lr=3e-5",)),
        Cell("numbers", "healthy", 700),
        Cell("g2p", "slow", 200, SLOW, ("training.lr=2e-5",)),
        Cell("strings", "few-steps", 100, EARLY),
        Cell("inflection", "few-steps", 80, EARLY),
        Cell("money", "healthy", 700),
        Cell("dates", "few-steps", 50, EARLY),
        Cell("numbers", "dropout", 200, WET, sides("dropout=0.85")),
        Cell("toy-text", "healthy", 400),
        Cell("inflection", "narrow", 200, NARROW, TINY),
        Cell("classify", "slow", 60, SLOW, ("training.lr=1e-5",)),
        Cell("dates", "healthy", 3000),
        Cell("numbers", "unordered", 200, UNSUITED, UNORDERED),
        Cell("text", "few-steps", 40, TEXT),
        Cell("strings", "healthy", 1000),
        Cell("g2p", "linear", 200, UNSUITED, LINEAR),
        Cell("translation", "few-steps", 60, EARLY),
        Cell("classify", "healthy", 600),
        Cell("g2p", "healthy", 1000),
    ],
}
