"""Distribution shift: the cross-entropy of dev texts under a character bigram model of train."""

import math
import statistics
from collections import Counter, defaultdict
from collections.abc import Sequence
from typing import NamedTuple

from regard.experiments.diagnose.diagnosed_run import DiagnosedRun
from regard.experiments.diagnose.findings import Statistics
from regard.tasks.values import to_text

MAX_TEXTS = 1000  # per set
CHUNK = 200  # characters of plain text that count as one text
EDGE = "\n"  # marks the start and the end of a text


class CharBigramModel:
    """Character bigram model p(char | previous), smoothed with p(char) (Witten and Bell 1991)."""

    def __init__(self, texts: Sequence[str]) -> None:
        self.alone = Counter(char for text in texts for char in text + EDGE)
        self.pairs: dict[str, Counter[str]] = defaultdict(Counter)
        for text in texts:
            for before, char in zip(EDGE + text, text + EDGE, strict=True):
                self.pairs[before][char] += 1
        self.total = self.alone.total()
        self.kinds = len(self.alone)

    def nats(self, text: str) -> float:
        """Return the mean -log p per character of a text, including the end of the text."""
        found = 0.0
        for before, char in zip(EDGE + text, text + EDGE, strict=True):
            seen = self.pairs.get(before, Counter())
            new = len(seen)
            unseen = 1 / (self.kinds + 1)
            alone = (self.alone[char] + self.kinds * unseen) / (self.total + self.kinds)
            found -= math.log((seen[char] + new * alone) / (seen.total() + new) if new else alone)
        return found / (len(text) + 1)


class CrossEntropyEstimate(NamedTuple):
    """Mean cross-entropy in nats per character, and the standard error of this mean."""

    nats: float
    error: float


def cross_entropy(chars: CharBigramModel, texts: Sequence[str]) -> CrossEntropyEstimate:
    """Return the mean cross-entropy of the texts, with its standard error."""
    each = [chars.nats(text) for text in texts]
    error = statistics.stdev(each) / math.sqrt(len(each)) if len(each) > 1 else math.inf
    return CrossEntropyEstimate(statistics.fmean(each), error)


def shift_statistics(subject: DiagnosedRun) -> Statistics:
    """Return the cross-entropy of held-out training texts and of dev texts, for each text side.

    The bigram model is trained on one half of the training texts. The other half is the reference,
    so that small data does not look like a shift. `excess` is the increase from held-out training
    texts to dev. `swapped` is the cross-entropy of dev texts under the model of the other side.
    """
    parts = {name: texts(subject, name) for name in sides(subject)}
    models = {name: CharBigramModel(train[::2]) for name, (train, _) in parts.items()}
    stats: Statistics = {}
    for name, (train, dev) in parts.items():
        held_out, on_dev = (cross_entropy(models[name], part) for part in (train[1::2], dev))
        stats[name] = {
            "train": held_out.nats,
            "dev": on_dev.nats,
            "excess": on_dev.nats / held_out.nats - 1 if held_out.nats else 0.0,
            "z_score": _z_score(held_out, on_dev),
        }
        swapped = next((models[n] for n in models if n != name), None)
        if swapped is not None:
            stats[name]["swapped"] = cross_entropy(swapped, dev).nats
    return stats


def _z_score(one: CrossEntropyEstimate, two: CrossEntropyEstimate) -> float:
    """Return the absolute difference of two estimates in standard errors."""
    error = math.hypot(one.error, two.error)
    return abs(one.nats - two.nats) / error if 0 < error < math.inf else 0.0


def sides(subject: DiagnosedRun) -> list[str]:
    """Return which of source and target are text. Plain text has only a target."""
    task = subject.task
    reads = task.reads_source and bool(task.source.alphabet())
    return [side for side, text in (("source", reads), ("target", task.writes_text)) if text]


def texts(subject: DiagnosedRun, side: str) -> tuple[list[str], list[str]]:
    """Return the texts of a side in train and in dev; plain text is split into chunks."""
    found = []
    for pairs in subject.parts.values():
        rows = [to_text(getattr(pair, side)) for pair in pairs[:MAX_TEXTS]]
        if not subject.task.reads_source:
            rows = [row[at : at + CHUNK] for row in rows for at in range(0, len(row), CHUNK)]
            rows = rows[:: max(1, len(rows) // MAX_TEXTS)]
        found.append(rows)
    return found[0], found[1]
