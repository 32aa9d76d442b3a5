"""Data for weak and healthy models: two groups of kinds, made on the spot or from $REGARD_DATA.

The thresholds of `regard diagnose` were set on the group `tune`. The group `test` has other data
of the same kinds.
"""

import gzip
import random
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from panel import date_pair, in_words, number_pair, sorting_pair

Rows = list[tuple[str, str]]
Make = Callable[[random.Random], tuple[str, str]]
DEV = 400


@dataclass(frozen=True)
class Data:
    """A data set: its task, and how training and dev rows are made. A text has one column."""

    task: str
    rows: Callable[[Path, random.Random], tuple[Rows, Rows]]


def made(make: Make, count: int = 5000) -> Callable[[Path, random.Random], tuple[Rows, Rows]]:
    """Rows of a generator, with distinct sources."""

    def rows(where: Path, draw: random.Random) -> tuple[Rows, Rows]:
        pairs = dict[str, str]()
        while len(pairs) < count + DEV:
            pairs.update([make(draw)])
        every = list(pairs.items())
        return every[:count], every[count:]

    return rows


def files(
    train: str, dev: str, source: tuple[int, ...], target: int, count: int
) -> Callable[[Path, random.Random], tuple[Rows, Rows]]:
    """A sample of rows of two TSV files; the columns of the source are joined by a space."""

    def read(path: Path) -> Rows:
        with gzip.open(path, "rt", encoding="utf-8") as file:
            lines = [line.rstrip("\n").split("\t") for line in file]
        return [(" ".join(line[c] for c in source), line[target]) for line in lines]

    def rows(where: Path, draw: random.Random) -> tuple[Rows, Rows]:
        parts = read(where / train), read(where / dev)
        sizes = count, DEV
        some, held_out = (
            draw.sample(part, min(size, len(part))) for part, size in zip(parts, sizes, strict=True)
        )
        return some, held_out

    return rows


def aligned(
    name: str, languages: tuple[str, str], count: int
) -> Callable[[Path, random.Random], tuple[Rows, Rows]]:
    """A sample of aligned lines. name: with {} for the set and for the language."""

    def read(part: str, where: Path) -> Rows:
        sides = []
        for language in languages:
            with gzip.open(where / name.format(part, language), "rt", encoding="utf-8") as file:
                sides.append(file.read().split("\n"))
        return [pair for pair in zip(*sides, strict=True) if all(pair)]

    def rows(where: Path, draw: random.Random) -> tuple[Rows, Rows]:
        return draw.sample(read("train", where), count), draw.sample(read("val", where), DEV)

    return rows


def text(name: str, size: int) -> Callable[[Path, random.Random], tuple[Rows, Rows]]:
    """Some lines of a text: its start for training, the following tenth for dev."""

    def rows(where: Path, draw: random.Random) -> tuple[Rows, Rows]:
        with gzip.open(where / name, "rt", encoding="utf-8") as file:
            whole = file.read()[: size + size // 10]
        parts = whole[:size], whole[size:]
        train, dev = ([(line, "") for line in part.split("\n") if line] for part in parts)
        return train, dev

    return rows


ONES = "null ein zwei drei vier fünf sechs sieben acht neun zehn elf zwölf dreizehn vierzehn"
ONES += " fünfzehn sechzehn siebzehn achtzehn neunzehn"
TENS = "zwanzig dreißig vierzig fünfzig sechzig siebzig achtzig neunzig"


def german(number: int) -> str:
    """A number below a million in German words."""
    if number < 20:
        return ONES.split()[number]
    if number < 100:
        ones = f"{ONES.split()[number % 10]}und" if number % 10 else ""
        return ones + TENS.split()[number // 10 - 2]
    unit, name = (1000, "tausend") if number >= 1000 else (100, "hundert")
    rest = german(number % unit) if number % unit else ""
    return f"{german(number // unit)}{name}{rest}"


def german_number(draw: random.Random) -> tuple[str, str]:
    """A number in digits and in German words."""
    number = draw.randrange(1_000_000)
    return str(number), german(number)


def money(draw: random.Random) -> tuple[str, str]:
    """A sum of money as digits, and as it is spoken, with cents."""
    euros, cents = draw.randrange(1, 2000), draw.randrange(100)
    return f"{euros}.{cents:02d} €", f"{in_words(euros)} euros and {in_words(cents)} cents"


def clock(draw: random.Random) -> tuple[str, str]:
    """A time of day in words and in digits, and a duration to add."""
    hour, minute, more = draw.randrange(1, 13), draw.randrange(60), draw.choice((0, 30, 60))
    after = draw.random() < 0.5
    base = (hour % 12 + 12 * after) * 60 + minute + more
    words = f"{in_words(minute)} past {in_words(hour)}" if minute else f"{in_words(hour)} o'clock"
    half = "in the afternoon" if after else "in the morning"
    later = {0: "", 30: " plus half an hour", 60: " plus an hour"}[more]
    return f"{words} {half}{later}", f"{base // 60 % 24:02d}:{base % 60:02d}"


def reverse_pair(draw: random.Random) -> tuple[str, str]:
    """A string and its reverse."""
    word = "".join(draw.choice("abcdefghijklmnop") for _ in range(draw.randrange(4, 13)))
    return word, word[::-1]


def rotate_pair(draw: random.Random) -> tuple[str, str]:
    """A string whose second half comes first in the target."""
    word = "".join(draw.choice("abcdefghijklmnop") for _ in range(draw.randrange(4, 11)))
    middle = len(word) // 2
    return word, word[middle:] + word[:middle]


NOUNS = {"dog": "hund", "house": "haus", "tree": "baum", "river": "fluss", "child": "kind"}
NOUNS |= {"teacher": "lehrer", "garden": "garten", "book": "buch", "city": "stadt", "bird": "vogel"}
VERBS = {"sees": "sieht", "likes": "mag", "paints": "malt", "finds": "findet", "knows": "kennt"}
ADJECTIVES = {"old": "alt", "big": "groß", "red": "rot", "small": "klein", "quiet": "leise"}


def toy_translation(draw: random.Random) -> tuple[str, str]:
    """A sentence with two noun phrases, and its translation with the verb at the end."""

    def phrase() -> tuple[str, str]:
        noun, some = draw.choice(list(NOUNS)), draw.sample(list(ADJECTIVES), draw.randrange(3))
        words = ["the", *some, noun], ["d", *(ADJECTIVES[a] for a in some), NOUNS[noun]]
        return " ".join(words[0]), " ".join(words[1])

    (a, x), (b, y), verb = phrase(), phrase(), draw.choice(list(VERBS))
    return f"{a} {verb} {b}", f"{y} {x} {VERBS[verb]}"


def tagged(draw: random.Random) -> tuple[str, str]:
    """A sentence with ambiguous words, whose tags depend on the words before."""
    both = ("walk", "paint", "watch", "play", "help", "cook")

    def phrase() -> list[tuple[str, str]]:
        middle = [(draw.choice(("old", "red", "light")), "ADJ")] if draw.random() < 0.5 else []
        return [(draw.choice(("the", "a")), "DET"), *middle, (draw.choice(both), "NOUN")]

    words = [*phrase(), ("will", "AUX"), (draw.choice(both), "VERB"), *phrase()]
    if draw.random() < 0.5:
        words += [("to", "PART"), (draw.choice(both), "VERB"), (f"x{draw.randrange(300)}", "NAME")]
    return " ".join(word for word, _ in words), " ".join(tag for _, tag in words)


def ordered(draw: random.Random) -> tuple[str, str]:
    """A text whose label depends on the order of two words among others."""
    words = [draw.choice(("and", "so", "then", "it", "was", "here", "now")) for _ in range(8)]
    words += ["fire", "water"]
    draw.shuffle(words)
    label = "first-fire" if words.index("fire") < words.index("water") else "first-water"
    return " ".join(words), label


def negated(draw: random.Random) -> tuple[str, str]:
    """A review in which one of two opposite words is negated; the label is what remains."""
    fillers = [draw.choice(("it", "was", "very", "the", "film", "and", "plot")) for _ in range(7)]
    is_good = draw.random() < 0.5
    parts = [*fillers, "good" if is_good else "not good", "not bad" if is_good else "bad"]
    draw.shuffle(parts)
    return " ".join(parts), "praise" if is_good else "blame"


def sentence(draw: random.Random) -> tuple[str, str]:
    """A sentence of a small grammar."""
    return toy_translation(draw)[0], ""


def inflection(language: str) -> Data:
    """Lemma and features to the inflected form."""
    start = f"sigmorphon2017_inflection/{language}"
    return Data(
        "transduce", files(f"{start}-train-high.tsv.gz", f"{start}-dev.tsv.gz", (0, 2), 1, 8000)
    )


def table(name: str, count: int) -> Data:
    """Two columns: words and phonemes, or sentences. name: with {} for train or dev."""
    paths = name.format("train"), name.format("dev")
    return Data("transduce", files(*paths, (0,), 1, count))


DATA = {
    "tune": {
        "g2p": table("cmudict_g2p/{}.tsv.gz", 8000),
        "inflection": inflection("finnish"),
        "numbers": Data("transduce", made(number_pair)),
        "dates": Data("transduce", made(date_pair)),
        "strings": Data("transduce", made(rotate_pair, 10_000)),
        "sorting": Data("transduce", made(sorting_pair, 10_000)),
        "translation": table("tatoeba_en_fr/{}.tsv.gz", 10_000),
        "classify": Data("classify", files("trec/train.tsv.gz", "trec/dev.tsv.gz", (2,), 0, 5000)),
        "order": Data("classify", made(ordered, 3000)),
        "text": Data("language-model", text("small_texts/timemachine.txt.gz", 150_000)),
    },
    "test": {
        "g2p": table("sigmorphon2020_g2p/bul_{}.tsv.gz", 8000),
        "inflection": inflection("german"),
        "numbers": Data("transduce", made(german_number)),
        "money": Data("transduce", made(money)),
        "dates": Data("transduce", made(clock, 3000)),
        "strings": Data("transduce", made(reverse_pair, 10_000)),
        "translation": Data("transduce", aligned("multi30k/{}.{}.gz", ("en", "de"), 10_000)),
        "toy-translation": Data("transduce", made(toy_translation)),
        "tag": Data("tag", made(tagged, 2000)),
        "classify": Data("classify", files("sst2/train.tsv.gz", "sst2/dev.tsv.gz", (1,), 0, 6000)),
        "negation": Data("classify", made(negated, 3000)),
        "text": Data("language-model", text("small_texts/tinyshakespeare.train.txt.gz", 200_000)),
        "toy-text": Data("language-model", made(sentence, 4000)),
    },
}  # fmt: skip
