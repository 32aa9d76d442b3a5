"""The check of running text: its size, its words by Zipf's law, and how soon n-grams repeat."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from regard.data.checks.check_frame import DataCheck, length_rows, table
from regard.data.checks.side_stats import percentiles, scripts
from regard.data.tensors.special import UNK
from regard.data.tokenizers.tokenizer import Tokenizer

ORDERS = 5  # n-grams up to this length are counted
DRAWN = 3  # and curves drawn up to this one
POINTS = 60  # of a curve
SHOWN = 10


@dataclass
class DocumentCheck(DataCheck):
    """What was found in running text, as plain data."""

    documents: int
    characters: int
    words: int
    different_words: int
    alphabet: int
    lengths: dict[int, int]  # characters of a document
    scripts: dict[str, float]
    tokens: str  # what the model reads
    vocab_size: int
    dev_documents: int
    dev_characters: int
    dev_tokens: int
    unknown_tokens: int
    zipf: list[list[int]]  # rank and count of words
    exponent: float  # of the law count ~ rank^-exponent
    ngrams: list[dict[str, int]]  # of words: n, total, distinct, once
    ngram_zipf: dict[str, list[list[int]]]
    frequent: dict[str, int]

    def summary(self) -> list[str]:
        return [
            f"train {self.characters:,} characters in {self.documents:,} documents; "
            f"{self.tokens}, {self.vocab_size:,} tokens in the vocabulary; dev "
            f"{self.dev_characters:,} characters",
        ]

    def sections(self) -> list[list[str]]:
        share = [f"{script} {part:.1%}" for script, part in self.scripts.items()]
        rows = [
            ("train documents", f"{self.documents:,}"),
            ("train characters", f"{self.characters:,}, {self.alphabet:,} different"),
            ("train words", f"{self.words:,}, {self.different_words:,} different"),
            ("scripts", ", ".join(share[:3]) or "-"),
            *length_rows(self.lengths),
            ("dev documents", f"{self.dev_documents:,}, {self.dev_characters:,} characters"),
            ("unknown in dev", f"{self.unknown_tokens:,} of {self.dev_tokens:,} tokens"),
            ("Zipf", f"count ~ rank^-{self.exponent:.2f}"),
            ("most frequent", " ".join(f"{w} ({c:,})" for w, c in self.frequent.items())),
        ]
        return [table(rows), self._curves(), self._ngrams()]

    def _curves(self) -> list[str]:
        """The curve of Zipf's law as bars, a line for each step of ranks; both scales are logs."""
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
        """How many n-grams there are, and how many occur only once."""
        lines = [f"{'words':<8}{'total':>14}{'different':>14}{'only once':>14}"]
        for row in self.ngrams:
            once = f"{row['once'] / max(1, row['distinct']):.0%}"
            lines.append(f"{row['n']:<8}{row['total']:>14,}{row['distinct']:>14,}{once:>14}")
        return lines


def check_documents(
    train: Sequence[str], dev: Sequence[str], tokenizer: Tokenizer
) -> DocumentCheck:
    """The figures of train and dev."""
    cut = [words_of(text) for text in train]
    counts = [
        Counter(n for words in cut for n in grams(words, size)) for size in range(1, ORDERS + 1)
    ]
    characters = Counter[str]()
    for text in train:
        characters.update(text)
    encoded = tokenizer.encode_all(list(dev))
    found = DocumentCheck(
        documents=len(train),
        characters=sum(map(len, train)),
        words=counts[0].total(),
        different_words=len(counts[0]),
        alphabet=len(characters),
        lengths=percentiles(map(len, train)),
        scripts=scripts(characters),
        tokens=tokenizer.kind,
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
        ngram_zipf={str(n): curve(count) for n, count in enumerate(counts[:DRAWN], 1)},
        frequent={" ".join(gram): count for gram, count in counts[0].most_common(SHOWN)},
    )
    found.warnings = _warnings(found, set(train) & set(dev))
    return found


def words_of(text: str) -> list[str]:
    """What stands between white space; of a text almost without any, its characters."""
    words = text.split()
    return words if len(text) < 25 * max(1, len(words)) else list(text)


def grams(words: list[str], size: int) -> zip[tuple[str, ...]]:
    """All sequences of so many words."""
    return zip(*(words[at:] for at in range(size)), strict=False)


def curve(counts: Counter[tuple[str, ...]]) -> list[list[int]]:
    """Rank and count, at ranks that are evenly spread on a log scale."""
    ordered = sorted(counts.values(), reverse=True)
    last = len(ordered)
    ranks = {round(last ** (step / POINTS)) for step in range(POINTS + 1)} if last else set()
    return [[rank, ordered[rank - 1]] for rank in sorted(ranks)]


def exponent(counts: Counter[tuple[str, ...]]) -> float:
    """The slope of log count over log rank, by least squares over ranks spread evenly in logs."""
    points = [(math.log(rank), math.log(count)) for rank, count in curve(counts)]
    if len(points) < 3:
        return 0.0
    middle = [sum(axis) / len(points) for axis in zip(*points, strict=True)]
    above = sum((x - middle[0]) * (y - middle[1]) for x, y in points)
    return -above / sum((x - middle[0]) ** 2 for x, _ in points)


def _warnings(found: DocumentCheck, both: set[str]) -> list[str]:
    warnings = []
    if both:
        warnings.append(f"dev documents that are in train as well: {len(both):,}")
    if found.unknown_tokens:
        share = found.unknown_tokens / max(1, found.dev_tokens)
        warnings.append(
            f"tokens of dev that are not in the vocabulary: {found.unknown_tokens:,} ({share:.2%})"
        )
    return warnings
