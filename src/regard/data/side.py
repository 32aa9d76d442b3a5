"""One side of the data, source or target, in figures: lengths, characters, unknowns, oddities."""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from regard.data.vocabulary import UNK, Vocabulary

SHARES = (50, 90, 99, 100)
RARE = 2  # a character that occurs at most so often is rare
INVISIBLE = frozenset("\u00ad\u200b\u2028\u2029\u202a\u202b\u202c\u202d\u202e\u2060\ufeff")


@dataclass(frozen=True, slots=True)
class Finding:
    """How many texts show something, and the line of the first."""

    count: int
    line: int | None


@dataclass
class Side:
    """The figures of one side; texts are counted in train, unknowns in dev."""

    kind: str
    vocabulary: int
    lengths: dict[int, int]  # so many in a hundred texts -> are at most so long, in symbols
    characters: int
    scripts: dict[str, float]  # share of the letters, largest first
    rare: dict[str, int]  # characters seen only once or twice
    empty: Finding
    edges: Finding  # white space at an end
    double_spaces: Finding
    control: Finding
    replacement: Finding  # U+FFFD
    decomposed: Finding  # not in NFC
    dev_symbols: int
    unknown_symbols: int
    unknown_examples: int
    unknown: dict[str, int]  # the most frequent ones


def measure_side(
    texts: Sequence[str],
    numbers: Sequence[int],
    lengths: Sequence[int],
    dev: Sequence[str],
    vocabulary: Vocabulary,
) -> Side:
    """The figures of the train texts, whose line numbers and lengths are given, and of dev."""
    letters = Counter("".join(texts))
    control = [mark for mark in letters if mark in INVISIBLE or unicodedata.category(mark) == "Cc"]
    composed = not letters or all(map(str.isascii, letters))

    def find(is_odd: Callable[[str], bool], possible: bool = True) -> Finding:
        odd = [at for at, text in enumerate(texts) if is_odd(text)] if possible else []
        return Finding(len(odd), numbers[odd[0]] if odd else None)

    encoded = vocabulary.encode_all(dev)
    unknown = [text for text, ids in zip(dev, encoded, strict=True) if UNK in ids]
    return Side(
        kind=vocabulary.kind,
        vocabulary=len(vocabulary),
        lengths=percentiles(lengths),
        characters=len(letters),
        scripts=scripts(letters),
        rare={mark: count for mark, count in letters.items() if count <= RARE},
        empty=find(lambda text: not text.strip()),
        edges=find(lambda text: text != text.strip() and bool(text.strip())),
        double_spaces=find(lambda text: "  " in text),
        control=find(lambda text: any(mark in text for mark in control), bool(control)),
        replacement=find(lambda text: "\ufffd" in text, "\ufffd" in letters),
        decomposed=find(lambda text: not unicodedata.is_normalized("NFC", text), not composed),
        dev_symbols=sum(map(len, encoded)),
        unknown_symbols=sum(ids.count(UNK) for ids in encoded),
        unknown_examples=len(unknown),
        unknown=unknown_symbols(unknown, vocabulary),
    )


def percentiles(lengths: Iterable[int]) -> dict[int, int]:
    """For each share of 100: the length that so many texts do not exceed (nearest rank)."""
    ordered = sorted(lengths) or [0]
    return {share: ordered[-(-share * len(ordered) // 100) - 1] for share in SHARES}


def scripts(letters: Counter[str]) -> dict[str, float]:
    """The share of each script among the letters, by the first word of their Unicode names."""
    counts: Counter[str] = Counter()
    for letter, count in letters.items():
        if letter.isalpha() and unicodedata.category(letter) != "Lm":  # modifiers suit any script
            script = unicodedata.name(letter, "OTHER").split()[0].split("-")[0]
            counts["Han" if script == "CJK" else script.capitalize()] += count
    return {script: count / counts.total() for script, count in counts.most_common()}


def unknown_symbols(texts: Sequence[str], vocabulary: Vocabulary) -> dict[str, int]:
    """The symbols of the texts that the vocabulary lacks, the ten most frequent."""
    counts = Counter(
        symbol
        for text in texts
        for symbol, id in zip(vocabulary.symbols(text), vocabulary.encode(text), strict=True)
        if id == UNK
    )
    return dict(counts.most_common(10))
