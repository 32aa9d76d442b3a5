"""Weak and healthy models of several kinds of data: does `regard diagnose` tell them apart?

usage: python bench/diagnose_weak.py [--group test] [--work FOLDER] [--only TEXT ..] [--list]
Each cell is a training of a number of steps and a diagnosis, with one thread. A weak model is named
if the first finding is a problem that states its cause, or that the model is far below what the
data allows. A healthy model must have no problem. The bar: 18 of 20 named, at most one false alarm
of 10. Cells are stored in FOLDER as they finish; a second call continues where the first one
stopped. The thresholds were set with `--group tune`, which has other data and another seed. Times
are in seconds of CPU time.
"""

import argparse
import json
import random
import sys
import time
from pathlib import Path
from typing import Any

import torch
from surroundings import REPOSITORY, RESULTS, folder, machine
from weak_cells import CELLS, SHARED, Cell
from weak_data import DATA, Data

from regard.data.sources.open import DataSpec
from regard.experiments.diagnose.examine import examine
from regard.experiments.train_job import train_job
from regard.training.train_folder import TrainArgs

SEEDS = {"tune": 1, "test": 12}
MIN_NAMED, MAX_FALSE = 0.9, 0.1  # fractions of the weak and of the healthy models


def main() -> int:
    """Run the missing cells, print and store the table; 1 if the bar is missed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--group", choices=list(CELLS), default="test")
    parser.add_argument("--work", type=Path, default=REPOSITORY / "runs/bench-diagnose-weak")
    parser.add_argument("--only", nargs="*", metavar="TEXT", default=[""], help="in names of cells")
    parser.add_argument("--again", action="store_true", help="diagnose finished runs again")
    parser.add_argument("--list", action="store_true", help="print the table, run nothing")
    arguments = parser.parse_args()
    where = folder("REGARD_DATA", "../shared/data")
    if where is None:
        return 1
    torch.set_num_threads(1)
    work = arguments.work.resolve() / arguments.group
    work.mkdir(parents=True, exist_ok=True)
    chosen = [c for c in CELLS[arguments.group] if any(one in c.name for one in arguments.only)]
    seed, rows = SEEDS[arguments.group], list[dict[str, Any]]()
    print("| model | score | first finding | |\n|---|---|---|---|", flush=True)
    for cell in chosen:
        stored = work / f"{cell.name}.json"
        if not arguments.list and (arguments.again or not stored.exists()):
            data = DATA[arguments.group][cell.data]
            found = run_cell(cell, data, where, work, seed)
            stored.write_text(json.dumps(found, indent=1) + "\n", "utf-8")
        if stored.exists():
            rows.append(judge(cell, json.loads(stored.read_text("utf-8"))))
            print(row_of(rows[-1]), flush=True)
    return report(rows, arguments.group, seed)


def run_cell(cell: Cell, data: Data, where: Path, work: Path, seed: int) -> dict[str, Any]:
    """Train and diagnose one model; return its score, findings and statistics."""
    out, started = work / cell.name, time.process_time()
    train, dev = (DataSpec(path) for path in write_data(cell.data, data, where, work, seed))
    if not (out / "scores.json").exists():
        fixed = [f"task.kind={data.task}", f"training.seed={seed}", f"training.steps={cell.steps}"]
        settings = [*fixed, *SHARED[data.task], *cell.settings]
        train_job(TrainArgs(train, dev, None, settings, out, resume=False, force=True), False)
    trained = time.process_time()
    diagnosis = examine(out).as_dict()
    scores = json.loads((out / "scores.json").read_text())["scores"]
    metric = json.loads((out / "run.json").read_text())["metric"]
    return {
        "metric": metric,
        "score": scores[metric],
        "findings": diagnosis["findings"],
        "curve": diagnosis["statistics"]["curve"],
        "ceiling": diagnosis["statistics"].get("ceiling"),
        "train_seconds": round(trained - started, 1),
        "diagnose_seconds": round(time.process_time() - trained, 1),
    }


def write_data(name: str, data: Data, where: Path, work: Path, seed: int) -> list[str]:
    """Write training and dev rows as TSV or text, unless they are there; return both paths."""
    suffix = "txt" if data.task == "language-model" else "tsv"
    paths = [work / f"{name}-{part}.{suffix}" for part in ("train", "dev")]
    if not all(path.exists() for path in paths):
        parts = data.rows(where, random.Random(seed))
        for path, rows in zip(paths, parts, strict=True):
            lines = [a if suffix == "txt" else f"{a}\t{b}" for a, b in rows]
            path.write_text("".join(f"{line}\n" for line in lines), "utf-8")
    return [str(path) for path in paths]


def judge(cell: Cell, found: dict[str, Any]) -> dict[str, Any]:
    """Return the row of a cell: whether a weak model is named, or a healthy one clean."""
    problems = [f["name"] for f in found["findings"] if f["severity"] == "problem"]
    first = problems[0] if problems else "none"
    passed = first in cell.expected if cell.expected else not problems
    about = {"name": cell.name, "weak": bool(cell.expected), "passed": passed, "first": first}
    return about | {"problems": problems, "expected": list(cell.expected), **found}


def row_of(row: dict[str, Any]) -> str:
    """Return a row as a line of the table."""
    verdict = ("named" if row["weak"] else "clean") if row["passed"] else "**miss**"
    times = f"{row['train_seconds']} + {row['diagnose_seconds']} s"
    score = f"{row['metric']} {row['score']:.1f}"
    return (
        f"| {row['name']} | {score} | {', '.join(row['problems']) or 'none'} | {verdict}, {times} |"
    )


def report(rows: list[dict[str, Any]], group: str, seed: int) -> int:
    """Print the counts and store the rows; return 1 if the bar is missed."""
    weak = [row["passed"] for row in rows if row["weak"]]
    healthy = [row["passed"] for row in rows if not row["weak"]]
    print(
        f"\n{group}: {sum(weak)} of {len(weak)} weak models named, "
        f"{len(healthy) - sum(healthy)} of {len(healthy)} healthy models with a false alarm"
    )
    RESULTS.mkdir(exist_ok=True)
    name = "diagnose_weak.json" if group == "test" else f"diagnose_weak_{group}.json"
    keep = ("name", "weak", "passed", "first", "problems", "metric", "score")
    kept = [{key: row[key] for key in (*keep, "train_seconds", "diagnose_seconds")} for row in rows]
    saved = {"machine": machine(), "group": group, "seed": seed, "rows": kept}
    (RESULTS / name).write_text(json.dumps(saved, indent=1) + "\n")
    missed = sum(weak) < MIN_NAMED * len(weak)
    return int(missed or len(healthy) - sum(healthy) > MAX_FALSE * len(healthy))


if __name__ == "__main__":
    sys.exit(main())
