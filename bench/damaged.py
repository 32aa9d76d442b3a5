"""Give damaged model folders and damaged data files to the commands.

usage: python bench/damaged.py [--count 500] [--seed 1] [--case folder:17 ...]
Seeded changes of every file of small run folders (truncated, flipped bits, other types, huge
numbers, deep nesting, aliases, pipes, devices, swapped files) and of data files. Each case runs
in a forked process. A case fails if it prints a traceback, takes more than 10 seconds of
processor time, waits for two minutes, or needs more than 1 GB above the healthy case. Prints a
table and the failures; ends with 1 if any.
"""

import argparse
import json
import os
import random
import shutil
import sys
import tempfile
import time
from collections import Counter
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import NamedTuple

os.environ.setdefault("OMP_NUM_THREADS", "1")
from surroundings import REPOSITORY, RESULTS, machine

sys.path.insert(0, str(REPOSITORY / "src"))
sys.path.insert(0, str(REPOSITORY / "tests" / "damaged"))
import cases
import folder_damage
import forked
import input_damage

KINDS = ("folder", "input")


class Result(NamedTuple):
    """A case and its outcome. problem: None if it passed."""

    name: str
    run: str
    done: str
    command: str
    code: int
    problem: str | None
    seconds: float
    extra: float  # MB of memory above the healthy case
    said: str


class Bench:
    """The healthy runs, and what their commands need."""

    def __init__(self, work: Path, seed: int) -> None:
        self.work, self.seed = work, seed
        self.runs = []
        for name in cases.RUNS:
            folder = work / name
            folder.mkdir()
            with (
                open(os.devnull, "w") as nothing,
                redirect_stdout(nothing),
                redirect_stderr(nothing),
            ):
                forked.call(cases.train_words(name, folder))
                forked.call(["predict", str(folder / "run"), "1,2"])  # imports what it needs
            self.runs.append(cases.healthy(name, folder))
        self.memory = {
            (run.name, words[0]): self.healthy_memory(words)
            for run in self.runs
            for words in (
                *cases.folder_commands(run, self.copy(run.folder)),
                *cases.input_commands(run, run.data),
            )
        }

    def copy(self, folder: Path) -> Path:
        """Return a copy of a run folder, at the path that all cases use."""
        place = self.work / "case" / "model"
        shutil.rmtree(place.parent, ignore_errors=True)
        shutil.copytree(folder, place)
        return place

    def healthy_memory(self, words: list[str]) -> int:
        """Return the peak memory of a command without damage."""
        end = forked.run(words, self.work / "case")
        if end.problem():
            raise SystemExit(f"{' '.join(words)}: {end.said[-2000:]}")
        return end.memory

    def case(self, kind: str, number: int) -> Result:
        """Run the case of a number."""
        chance = random.Random(f"{self.seed} {kind} {number}")
        run = chance.choice(self.runs)
        place = self.copy(run.folder)
        if kind == "folder":
            done = folder_damage.damage_folder(place, [one.folder for one in self.runs], chance)
            words = chance.choice(cases.folder_commands(run, place))
        else:
            text, suffix = cases.data_texts(run, chance)
            path, done = input_damage.write_damaged(text, suffix, place.parent, chance)
            words = chance.choice(cases.input_commands(run, path))
        healthy = self.memory[run.name, words[0]]
        end = forked.run(words, place.parent)
        extra = (end.memory - healthy) / 1024**2
        problem, command = end.problem(healthy), " ".join(words)
        name = f"{kind}:{number}"
        return Result(
            name, run.name, done, command, end.code, problem, end.seconds, extra, end.said[-1500:]
        )


def table(results: list[Result]) -> str:
    """Return the outcomes by kind and command as a Markdown table."""
    rows = ["| given | command | cases | no error | error | failed | slowest | most memory |"]
    rows.append("|---|---|---|---|---|---|---|---|")
    for kind, command in sorted({(r.name.split(":")[0], r.command.split()[0]) for r in results}):
        some = [r for r in results if r.name.startswith(kind) and r.command.split()[0] == command]
        codes = Counter("failed" if r.problem else "error" if r.code == 2 else "ok" for r in some)
        slowest, most = max(r.seconds for r in some), max(r.extra for r in some)
        counts = f"{len(some)} | {codes['ok']} | {codes['error']} | {codes['failed']}"
        rows.append(f"| {kind} | {command} | {counts} | {slowest:.1f} s | {most:+.0f} MB |")
    return "\n".join(rows)


def main() -> int:
    """Run all cases; print the table and the failures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=500)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--case", action="append", help="only these cases, such as folder:17")
    arguments = parser.parse_args()
    import torch

    torch.set_num_threads(1)
    names = arguments.case or [f"{k}:{n}" for k in KINDS for n in range(arguments.count)]
    with tempfile.TemporaryDirectory(prefix="regard-damaged-") as work:
        os.environ["REGARD_CACHE"] = f"{work}/cache"
        bench = Bench(Path(work), arguments.seed)
        start = time.monotonic()
        results = []
        for name in names:
            kind, number = name.split(":")
            results.append(bench.case(kind, int(number)))
            if arguments.case:
                print(results[-1])
            elif results[-1].problem:
                print(f"{name}: {results[-1].problem}", flush=True)
    failed = [result for result in results if result.problem]
    for result in failed:
        last = "\n".join(result.said.splitlines()[-6:])
        print(f"{result.name} ({result.run}) {result.done}\n  {result.command}: {result.problem}")
        print(f"{last}\n")
    print(table(results))
    print(f"{len(failed)} of {len(results)} failed in {time.monotonic() - start:.0f} s")
    RESULTS.mkdir(exist_ok=True)
    record = {"machine": machine(), "seed": arguments.seed, "cases": len(results)}
    record |= {"failed": [result._asdict() for result in failed]}
    (RESULTS / "damaged.json").write_text(json.dumps(record, indent=1) + "\n")
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main())
