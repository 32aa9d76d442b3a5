"""Whether texts are of the same kind: how well a model of the letters of one fits the other."""

import math
import statistics
from collections import Counter, defaultdict
from collections.abc import Sequence
from typing import NamedTuple

from regard.experiments.diagnose.findings import Figures
from regard.experiments.diagnose.subject import Subject
from regard.tasks.values import plain

TEXTS = 1000  # of each part that are looked at, at most
CHUNK = 200  # characters of running text that count as one text
EDGE = "\n"


class CharBigramModel:
    """p(letter | letter before), smoothed towards p(letter) (Witten and Bell 1991)."""

    def __init__(self, texts: Sequence[str]) -> None:
        self.alone = Counter(letter for text in texts for letter in text + EDGE)
        self.pairs: dict[str, Counter[str]] = defaultdict(Counter)
        for text in texts:
            for before, letter in zip(EDGE + text, text + EDGE, strict=True):
                self.pairs[before][letter] += 1
        self.total = self.alone.total()
        self.kinds = len(self.alone)

    def nats(self, text: str) -> float:
        """-log p of each letter of a text, its end included, in the mean."""
        found = 0.0
        for before, letter in zip(EDGE + text, text + EDGE, strict=True):
            seen = self.pairs.get(before, Counter())
            new = len(seen)
            unseen = 1 / (self.kinds + 1)
            alone = (self.alone[letter] + self.kinds * unseen) / (self.total + self.kinds)
            found -= math.log((seen[letter] + new * alone) / (seen.total() + new) if new else alone)
        return found / (len(text) + 1)


class Fit(NamedTuple):
    """How well texts fit: nats per character, and their standard error."""

    nats: float
    error: float


def fit(letters: CharBigramModel, texts: Sequence[str]) -> Fit:
    """The mean over texts, with its standard error."""
    each = [letters.nats(text) for text in texts]
    error = statistics.stdev(each) / math.sqrt(len(each)) if len(each) > 1 else math.inf
    return Fit(statistics.fmean(each), error)


def likeness_figures(subject: Subject) -> Figures:
    """For each side: nats a letter of held-out training texts and of dev, and of dev turned round.

    The letters are learned from one half of the training texts; the other half is the yardstick, so
    that few texts do not count as another kind.
    """
    parts = {name: texts(subject, name) for name in sides(subject)}
    models = {name: CharBigramModel(train[::2]) for name, (train, _) in parts.items()}
    figures: Figures = {}
    for name, (train, dev) in parts.items():
        same, other = fit(models[name], train[1::2]), fit(models[name], dev)
        figures[name] = {
            "train": same.nats,
            "dev": other.nats,
            "excess": other.nats / same.nats - 1 if same.nats else 0.0,
            "sure": _sure(same, other),
        }
        crossed = next((models[n] for n in models if n != name), None)
        if crossed is not None:
            figures[name]["crossed"] = fit(crossed, dev).nats
    return figures


def _sure(one: Fit, other: Fit) -> float:
    """How many standard errors lie between two fits."""
    error = math.hypot(one.error, other.error)
    return abs(one.nats - other.nats) / error if 0 < error < math.inf else 0.0


def sides(subject: Subject) -> list[str]:
    """The sides that are texts: labels and vectors are none, and running text has one side."""
    task = subject.task
    reads = task.reads_source and bool(task.source.alphabet())
    return [side for side, text in (("source", reads), ("target", task.writes_text)) if text]


def texts(subject: Subject, side: str) -> tuple[list[str], list[str]]:
    """The texts of a side in training and in dev; running text in pieces."""
    found = []
    for pairs in subject.parts.values():
        rows = [plain(getattr(pair, side)) for pair in pairs[:TEXTS]]
        if not subject.task.reads_source:
            rows = [row[at : at + CHUNK] for row in rows for at in range(0, len(row), CHUNK)]
            rows = rows[:: max(1, len(rows) // TEXTS)]
        found.append(rows)
    return found[0], found[1]
