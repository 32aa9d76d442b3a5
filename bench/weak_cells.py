"""The weak and healthy models of `diagnose_weak.py`: data, settings and steps of each."""

from dataclasses import dataclass

EARLY = ("stopped-too-early", "no-better-than-baseline", "dev-no-better-than-baseline")
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
    "language-model": FAST,
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
        Cell("inflection", "dropout", 200, WET, sides("dropout=0.8")),
    ],
    "test": [
        Cell("g2p", "few-steps", 50, EARLY),
        Cell("g2p", "linear", 400, UNSUITED, LINEAR),
        Cell("g2p", "slow", 300, SLOW, ("training.lr=2e-5",)),
        Cell("inflection", "few-steps", 100, EARLY),
        Cell("inflection", "narrow", 400, NARROW, TINY),
        Cell("numbers", "few-steps", 80, EARLY),
        Cell("numbers", "dropout", 400, WET, sides("dropout=0.85")),
        Cell("numbers", "unordered", 400, UNSUITED, UNORDERED),
        Cell("money", "few-steps", 120, EARLY),
        Cell("dates", "few-steps", 60, EARLY),
        Cell("dates", "slow", 300, SLOW, ("training.lr=3e-5",)),
        Cell("strings", "few-steps", 150, EARLY),
        Cell("strings", "unordered", 500, UNSUITED, UNORDERED),
        Cell("toy-translation", "few-steps", 40, EARLY),
        Cell("translation", "few-steps", 80, EARLY),
        Cell("tag", "linear", 300, UNSUITED, LINEAR),
        Cell("classify", "slow", 100, SLOW, ("training.lr=1e-5",)),
        Cell("order", "linear", 300, UNSUITED, LINEAR),
        Cell("text", "few-steps", 60, TEXT),
        Cell("toy-text", "few-steps", 60, TEXT),
        Cell("g2p", "healthy", 1200),
        Cell("inflection", "healthy", 1200),
        Cell("numbers", "healthy", 1000),
        Cell("money", "healthy", 1000),
        Cell("dates", "healthy", 800),
        Cell("strings", "healthy", 1500),
        Cell("toy-translation", "healthy", 600),
        Cell("tag", "healthy", 300),
        Cell("order", "healthy", 600),
        Cell("toy-text", "healthy", 1000),
    ],
}
