"""Check plain text before training: sizes, Zipf's law, and n-grams of words."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from regard.data.checks.check_frame import DataCheck, length_rows, table
from regard.data.checks.side_stats import percentiles, scripts
from regard.data.tensors.special import UNK
from regard.data.tokenizers.tokenizer import Tokenizer

MAX_ORDER = 5  # n-grams up to this length are counted
MAX_CURVE_ORDER = 3  # rank-frequency curves of n-grams up to this length
NUM_POINTS = 60  # points per curve
MAX_SHOWN = 10


@dataclass
class DocumentCheck(DataCheck):
    """The result of checking plain text."""

    documents: int
    characters: int
    words: int
    distinct_words: int
    distinct_characters: int
    lengths: dict[int, int]  # percentile to characters per document
    scripts: dict[str, float]
    tokenizer: str
    vocab_size: int
    dev_documents: int
    dev_characters: int
    dev_tokens: int
    unknown_tokens: int
    zipf: list[list[int]]  # rank-frequency curve of words: [rank, count]
    exponent: float  # of Zipf's law: count ~ rank^-exponent
    ngrams: list[dict[str, int]]  # per n: n, total, distinct, and how many occur once
    ngram_zipf: dict[str, list[list[int]]]
    frequent: dict[str, int]

    def summary(self) -> list[str]:
        return [
            f"train {self.characters:,} characters in {self.documents:,} documents; "
            f"{self.tokenizer}, {self.vocab_size:,} tokens in vocabulary; dev "
            f"{self.dev_characters:,} characters",
        ]

    def sections(self) -> list[list[str]]:
        scripts = [f"{script} {fraction:.1%}" for script, fraction in self.scripts.items()]
        rows = [
            ("train documents", f"{self.documents:,}"),
            ("train characters", f"{self.characters:,}, {self.distinct_characters:,} distinct"),
            ("train words", f"{self.words:,}, {self.distinct_words:,} distinct"),
            ("scripts", ", ".join(scripts[:3]) or "-"),
            *length_rows(self.lengths),
            ("dev documents", f"{self.dev_documents:,}, {self.dev_characters:,} characters"),
            ("unknown in dev", f"{self.unknown_tokens:,} of {self.dev_tokens:,} tokens"),
            ("Zipf", f"count ~ rank^-{self.exponent:.2f}"),
            ("most frequent", " ".join(f"{w} ({c:,})" for w, c in self.frequent.items())),
        ]
        return [table(rows), self._curves(), self._ngrams()]

    def _curves(self) -> list[str]:
        """Return the rank-frequency curve as bars; both scales are logarithmic."""
        lines = ["words by rank            count"]
        most = math.log(self.zipf[0][1] + 1) if self.zipf else 1.0
        marks = {int(10 ** (step / 2)) for step in range(20)}
        for rank in sorted(mark for mark in marks if self.zipf and mark <= self.zipf[-1][0]):
            count = min(self.zipf, key=lambda point: abs(point[0] - rank))[1]
            lines.append(
                f"{rank:>13,}  {count:>14,}  {'#' * round(40 * math.log(count + 1) / most)}"
            )
        return lines

    def _ngrams(self) -> list[str]:
        """Return the number of n-grams per n, and the fraction that occurs only once."""
        lines = [f"{'words':<8}{'total':>14}{'distinct':>14}{'only once':>14}"]
        for row in self.ngrams:
            once = f"{row['once'] / max(1, row['distinct']):.0%}"
            lines.append(f"{row['n']:<8}{row['total']:>14,}{row['distinct']:>14,}{once:>14}")
        return lines


def check_documents(
    train: Sequence[str], dev: Sequence[str], tokenizer: Tokenizer
) -> DocumentCheck:
    """Check the training and dev documents."""
    words = [words_of(text) for text in train]
    counts = [
        Counter(n for row in words for n in grams(row, size)) for size in range(1, MAX_ORDER + 1)
    ]
    characters = Counter[str]()
    for text in train:
        characters.update(text)
    encoded = tokenizer.encode_all(list(dev))
    found = DocumentCheck(
        documents=len(train),
        characters=sum(map(len, train)),
        words=counts[0].total(),
        distinct_words=len(counts[0]),
        distinct_characters=len(characters),
        lengths=percentiles(map(len, train)),
        scripts=scripts(characters),
        tokenizer=tokenizer.kind,
        vocab_size=len(tokenizer),
        dev_documents=len(dev),
        dev_characters=sum(map(len, dev)),
        dev_tokens=sum(map(len, encoded)),
        unknown_tokens=sum(ids.count(UNK) for ids in encoded),
        zipf=curve(counts[0]),
        exponent=exponent(counts[0]),
        ngrams=[
            {
                "n": n,
                "total": count.total(),
                "distinct": len(count),
                "once": sum(times == 1 for times in count.values()),
            }
            for n, count in enumerate(counts, 1)
        ],
        ngram_zipf={str(n): curve(count) for n, count in enumerate(counts[:MAX_CURVE_ORDER], 1)},
        frequent={" ".join(gram): count for gram, count in counts[0].most_common(MAX_SHOWN)},
    )
    found.warnings = _warnings(found, set(train) & set(dev))
    return found


def words_of(text: str) -> list[str]:
    """Return whitespace-separated words, or characters if words average 25 or more characters."""
    words = text.split()
    return words if len(text) < 25 * max(1, len(words)) else list(text)


def grams(words: list[str], size: int) -> zip[tuple[str, ...]]:
    """Return all n-grams of `size` words."""
    return zip(*(words[at:] for at in range(size)), strict=False)


def curve(counts: Counter[tuple[str, ...]]) -> list[list[int]]:
    """Return [rank, count] at ranks that are evenly spaced on a log scale."""
    ordered = sorted(counts.values(), reverse=True)
    last = len(ordered)
    ranks = (
        {round(last ** (step / NUM_POINTS)) for step in range(NUM_POINTS + 1)} if last else set()
    )
    return [[rank, ordered[rank - 1]] for rank in sorted(ranks)]


def exponent(counts: Counter[tuple[str, ...]]) -> float:
    """Return the Zipf exponent: the negative least-squares slope of log count over log rank."""
    points = [(math.log(rank), math.log(count)) for rank, count in curve(counts)]
    if len(points) < 3:
        return 0.0
    middle = [sum(axis) / len(points) for axis in zip(*points, strict=True)]
    above = sum((x - middle[0]) * (y - middle[1]) for x, y in points)
    return -above / sum((x - middle[0]) ** 2 for x, _ in points)


def _warnings(found: DocumentCheck, both: set[str]) -> list[str]:
    warnings = []
    if both:
        warnings.append(f"{len(both):,} dev documents also occur in train (data leakage)")
    if found.unknown_tokens:
        warnings.append(
            f"{found.unknown_tokens:,} of {found.dev_tokens:,} dev tokens are out of vocabulary "
            f"({found.unknown_tokens / max(1, found.dev_tokens):.2%})"
        )
    return warnings
