"""How far the defaults are from better settings: a panel of data sets, candidates and budgets.

usage: python bench/panel.py [--budgets 20,60,300] [--only DATA,...] [--candidates NAME,...]
           [--work FOLDER] [--stored] [--redo] [--list] [--parallel]
Every cell trains one candidate on one data set for one budget and scores the dev set (at most
1,000 examples) with the metric of the task. A candidate differs from the default in one choice.
Cells are stored in FOLDER/cells.jsonl as they finish; a second call continues where the first one
stopped. With --stored, a new FOLDER starts with the cells of bench/results/panel.json. With
--parallel, every core runs a cell of its own, so a cell has one core. The table shows the regret:
best candidate minus default.
"""

import argparse
import dataclasses
import json
import multiprocessing
import os
import queue
import random
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import torch
from surroundings import REPOSITORY, RESULTS, commit, folder, machine

from regard.config.load import load_config
from regard.core.errors import UserError
from regard.core.options import flatten
from regard.data.reading.read import Pair
from regard.data.sources.open import DataSpec
from regard.metrics import HIGHER_IS_BETTER
from regard.training.describe import describe
from regard.training.log import Display
from regard.training.session import train_run
from regard.training.start import start_run

DEV = 1000  # examples
LONG = 300  # seconds; budgets from here on run only LONG_DATA and LONG_CANDIDATES
LONG_DATA = ("cmudict", "hungarian", "finnish-high", "multi30k", "ewt")
LONG_CANDIDATES = ("default", "other", "half", "double")


@dataclasses.dataclass(frozen=True)
class Data:
    """A data set: its task, and where it is or how it is made."""

    task: str
    train: DataSpec | None = None
    dev: DataSpec | None = None
    make: Callable[[random.Random], tuple[str, str]] | None = None
    count: int = 5000

    def open(self, config: Any) -> tuple[Sequence[Pair], list[Pair]]:
        """Return the training and the dev set."""
        if self.make is None:
            assert self.train is not None and self.dev is not None
            found = config.task.open(self.train, self.dev)
            train, dev = found.train, found.dev
        else:
            rng, pairs = random.Random(7), dict[str, str]()
            while len(pairs) < self.count + DEV // 2:
                pairs.update([self.make(rng)])
            every = [Pair(*pair, line) for line, pair in enumerate(pairs.items(), 1)]
            train, dev = every[: self.count], every[self.count :]
        if len(dev) > DEV:
            dev = random.Random(0).sample(list(dev), DEV)
        return train, dev


def main() -> int:
    """Run the missing cells, then print and store the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--budgets", default="20,60,300", help="seconds")
    parser.add_argument("--only", default="", help="data sets")
    parser.add_argument("--candidates", default="", help="names of candidates")
    parser.add_argument("--work", type=Path, default=REPOSITORY / "runs" / "bench-panel")
    parser.add_argument(
        "--stored", action="store_true", help="continue with bench/results/panel.json"
    )
    parser.add_argument("--redo", action="store_true", help="run stored cells again")
    parser.add_argument("--parallel", action="store_true", help="run one cell per core")
    parser.add_argument("--list", action="store_true", help="print the table, run nothing")
    arguments = parser.parse_args()
    where = folder("REGARD_DATA", "../shared/data")
    if where is None:
        return 1
    arguments.work.mkdir(parents=True, exist_ok=True)
    store = arguments.work / "cells.jsonl"
    if arguments.stored and not store.exists():
        stored = json.loads((RESULTS / "panel.json").read_text())["cells"]
        store.write_text("".join(json.dumps(row) + "\n" for row in stored))
    cells = read(store)
    chosen = [name for name in arguments.only.split(",") if name]
    sets = {name: data for name, data in panel(where).items() if not chosen or name in chosen}
    rows = [
        (name, data, budget, arguments, cells, store)
        for budget in map(int, arguments.budgets.split(","))
        for name, data in sets.items()
        if budget < LONG or name in LONG_DATA or chosen
    ]
    slots = Slots(arguments.parallel)
    with ThreadPoolExecutor(slots.count) as pool:
        list(pool.map(lambda row: run_row(slots, *row), [] if arguments.list else rows))
    print_table(cells)
    RESULTS.mkdir(exist_ok=True)
    lines = [
        json.dumps({k: v for k, v in cell.items() if k != "settings"}) for cell in cells.values()
    ]
    about, every = json.dumps(machine()), ",\n".join(lines)
    (RESULTS / "panel.json").write_text(f'{{"machine": {about},\n"cells": [\n{every}\n]}}\n')
    return 0


class Slots:
    """The sets of cores on which cells run: one of all cores, or one per core."""

    def __init__(self, is_parallel: bool) -> None:
        cores = sorted(os.sched_getaffinity(0))
        self.free: queue.Queue[list[int]] = queue.Queue()
        for slot in [[core] for core in cores] if is_parallel else [cores]:
            self.free.put(slot)
        self.count = self.free.qsize()

    def call(self, work: Callable[..., Any], *arguments: Any) -> Any:
        """Call a function in a process of its own on the next free slot, and return its result."""
        cores = self.free.get()
        try:
            with multiprocessing.get_context("fork").Pool(1) as pool:
                return pool.apply(on_cores, (cores, work, *arguments))
        finally:
            self.free.put(cores)


def on_cores(cores: list[int], work: Callable[..., Any], *arguments: Any) -> Any:
    """Call a function with one torch thread on each of these cores."""
    os.sched_setaffinity(0, cores)
    torch.set_num_threads(len(cores))
    return work(*arguments)


def run_row(
    slots: Slots,
    name: str,
    data: Data,
    budget: int,
    arguments: argparse.Namespace,
    cells: dict[tuple[str, str, int], dict[str, Any]],
    store: Path,
) -> None:
    """Run the missing cells of a data set and a budget, in one process each."""
    wanted = [one for one in arguments.candidates.split(",") if one]
    if not wanted and budget >= LONG:
        wanted = list(LONG_CANDIDATES)
    options = slots.call(plan, data, budget)
    for candidate, settings in options.items():
        key = (name, candidate, budget)
        if (wanted and candidate not in wanted) or (key in cells and not arguments.redo):
            continue
        out = arguments.work / f"run-{name}"
        cell = slots.call(train_cell, data, budget, settings, out)
        about = {"data": name, "candidate": candidate, "budget": budget, "commit": commit()}
        cells[key] = about | cell
        with open(store, "a") as file:
            file.write(json.dumps(cells[key]) + "\n")
        print(
            f"{time.strftime('%H:%M:%S')} {name:14} {budget:4} s {candidate:12} "
            f"{cell['metric']} {cell['score']:7.2f}  steps {cell['steps']:6,}  {cell['about']}",
            flush=True,
        )


def plan(data: Data, budget: int) -> dict[str, list[str]]:
    """Return the settings of each candidate. The sizes depend on those of the default."""
    base = [f"task.kind={data.task}", f"training.budget={budget}s"]
    config = load_config(settings=base)
    train, dev = data.open(config)
    filled: Any = start_run(Path(), config, train, dev).config
    encoder = filled.model.encoder
    found: dict[str, list[str]] = {"default": []}
    sides = [side for side in ("encoder", "decoder") if hasattr(filled.model, side)]
    kinds = {
        "lstm": ["kind=recurrent"],
        "gru": ["kind=recurrent", "cell=gru"],
        "transformer": ["kind=transformer"],
    }
    now = encoder.kind if encoder.kind != "recurrent" else encoder.cell
    for kind, settings in kinds.items():
        if kind != now:
            key = "other" if kind in ("lstm", "transformer") and "other" not in found else kind
            found[key] = [f"model.{side}.{setting}" for side in sides for setting in settings]
    if data.task == "transduce":
        found["hybrid"] = ["model.encoder.kind=transformer", "model.decoder.kind=recurrent"]
        tokenizer = filled.task.target.tokenizer
        others = {"char": "word", "whitespace": "bpe", "word": "char", "bpe": "word"}
        other = others.get(tokenizer, "char")
        found["tokens"] = [f"task.target.tokenizer={other}"]
        if tokenizer == "bpe":
            found["tokens"] += [f"task.source.tokenizer={other}", "task.shared_vocab=false"]
    elif data.task == "classify":
        tokenizer = filled.task.source.tokenizer
        found["tokens"] = [f"task.source.tokenizer={'bpe' if tokenizer == 'word' else 'word'}"]
    found["half"] = [f"model.{side}.width={encoder.width // 2}" for side in sides]
    found["double"] = [f"model.{side}.width={encoder.width * 2}" for side in sides]
    base.append(f"task.metric={filled.task.metric}")  # one metric for all candidates
    return {name: [*base, *settings] for name, settings in found.items()}


def train_cell(data: Data, budget: int, settings: list[str], out: Path) -> dict[str, Any]:
    """Train one candidate; return its score and its main settings."""
    config = load_config(settings=settings)
    train, dev = data.open(config)
    try:
        run = start_run(out, config, train, dev)
        describe(run, {})
        train_run(run, Display())
    except UserError as error:
        return {"metric": "failed", "score": 0.0, "steps": 0, "about": str(error), "settings": {}}
    final = json.loads((out / "scores.json").read_text())
    filled = flatten(run.config.model_dump(mode="json"))
    encoder, training = run.config.model.encoder, run.config.training
    about = (
        f"{encoder.kind} {encoder.layers}x{encoder.width} {run.parameters:,} weights, "
        f"batch {training.batch_tokens}, lr {training.lr:g}, dropout {encoder.dropout:g}, "
        f"epoch {run.state.epoch}"
    )
    metric = run.task.metric
    score = final["scores"][metric]
    sign = 1 if HIGHER_IS_BETTER[metric] else -1
    return {
        "metric": metric,
        "score": sign * score,
        "cores": torch.get_num_threads(),
        "steps": run.state.step,
        "about": about,
        "settings": {key: filled[key] for key in sorted(filled)},
    }


def read(store: Path) -> dict[tuple[str, str, int], dict[str, Any]]:
    """Return the stored cells; of equal cells the last."""
    lines = store.read_text().splitlines() if store.exists() else []
    rows = [json.loads(line) for line in lines]
    return {(row["data"], row["candidate"], row["budget"]): row for row in rows}


def print_table(cells: dict[tuple[str, str, int], dict[str, Any]]) -> None:
    """Print a line per data set and budget, then the share of cells within 3 points."""
    rows: dict[tuple[int, str], dict[str, float]] = {}
    for (name, candidate, budget), cell in cells.items():
        rows.setdefault((budget, name), {})[candidate] = cell["score"]
    regrets = []
    print("\n| seconds | data | default | best candidate | regret | others |")
    print("|---|---|---|---|---|---|")
    for (budget, name), scores in sorted(rows.items()):
        if "default" not in scores:
            continue
        best = max(scores, key=lambda one: scores[one])
        regret = scores[best] - scores["default"]
        regrets.append(regret)
        others = ", ".join(f"{one} {score:.1f}" for one, score in scores.items())
        print(
            f"| {budget} | {name} | {scores['default']:.1f} | {best} {scores[best]:.1f} "
            f"| {regret:.1f} | {others} |"
        )
    if regrets:
        near = sum(regret <= 3 for regret in regrets) / len(regrets)
        print(f"\n{near:.0%} of {len(regrets)} cells within 3 points; worst {max(regrets):.1f}")


def panel(where: Path) -> dict[str, Data]:
    """Return the data sets by name."""

    def table(task: str, train: str, dev: str, source: str | None, target: str | None) -> Data:
        parts = [DataSpec(str(where / p), source_column=source, target_column=target)
                 for p in (train, dev)]  # fmt: skip
        return Data(task, *parts)

    def pair(name: str) -> Data:
        return table("transduce", name.format("train"), name.format("dev"), None, None)

    def inflection(language: str, size: str) -> Data:
        name = f"sigmorphon2017_inflection/{language}-"
        files = f"{name}train-{size}.tsv.gz", f"{name}dev.tsv.gz"
        return table("transduce", *files, "1,3", "2")

    pairs = [
        DataSpec(source=f"{where}/multi30k/{part}.en.gz", target=f"{where}/multi30k/{part}.de.gz")
        for part in ("train", "val")
    ]
    ewt = "ud_english_ewt/en_ewt-ud-{}.conllu.gz"
    return {
        "cmudict": pair("cmudict_g2p/{}.tsv.gz"),
        "bulgarian": pair("sigmorphon2020_g2p/bul_{}.tsv.gz"),
        "hungarian": pair("sigmorphon2020_g2p/hun_{}.tsv.gz"),
        "korean": pair("sigmorphon2020_g2p/kor_{}.tsv.gz"),
        "finnish-high": inflection("finnish", "high"),
        "german-medium": inflection("german", "medium"),
        "english-low": inflection("english", "low"),
        "multi30k": Data("transduce", *pairs),
        "en-fr": pair("tatoeba_en_fr/{}.tsv.gz"),
        "ewt": table("tag", ewt.format("train"), ewt.format("dev"), None, None),
        "trec": table("classify", "trec/train.tsv.gz", "trec/dev.tsv.gz", "3", "1"),
        "sst2": table("classify", "sst2/train.tsv.gz", "sst2/dev.tsv.gz", "2", "1"),
        "numbers": Data("transduce", make=number_pair),
        "dates": Data("transduce", make=date_pair),
        "sorting": Data("transduce", make=sorting_pair),
    }


SMALL = [
    "zero",
    "one",
    "two",
    "three",
    "four",
    "five",
    "six",
    "seven",
    "eight",
    "nine",
    "ten",
    "eleven",
    "twelve",
    "thirteen",
    "fourteen",
    "fifteen",
    "sixteen",
    "seventeen",
    "eighteen",
    "nineteen",
]
TENS = ["twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"]
MONTHS = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
]


def in_words(number: int) -> str:
    """Return a number below a million in English words."""
    if number < 20:
        return SMALL[number]
    if number < 100:
        ones = f" {SMALL[number % 10]}" if number % 10 else ""
        return TENS[number // 10 - 2] + ones
    unit, name = (1000, "thousand") if number >= 1000 else (100, "hundred")
    rest = f" {in_words(number % unit)}" if number % unit else ""
    return f"{in_words(number // unit)} {name}{rest}"


def number_pair(rng: random.Random) -> tuple[str, str]:
    """Return a number in digits and in words."""
    number = rng.randrange(1_000_000)
    return str(number), in_words(number)


def date_pair(rng: random.Random) -> tuple[str, str]:
    """Return a date as people write it, and in ISO form."""
    year, month, day = rng.randrange(1900, 2100), rng.randrange(1, 13), rng.randrange(1, 29)
    name = MONTHS[month - 1]
    shapes = (
        f"{name} {day}, {year}",
        f"{day} {name[:3]} {year}",
        f"{day}.{month}.{year}",
        f"{month}/{day}/{year % 100:02d}" if year >= 2000 else f"{day} {name} {year}",
    )
    return rng.choice(shapes), f"{year}-{month:02d}-{day:02d}"


def sorting_pair(rng: random.Random) -> tuple[str, str]:
    """Return letters separated by spaces, and the same letters sorted."""
    letters = [rng.choice("abcdefghijklmnopqrst") for _ in range(rng.randrange(4, 11))]
    return " ".join(letters), " ".join(sorted(letters))


if __name__ == "__main__":
    sys.exit(main())
