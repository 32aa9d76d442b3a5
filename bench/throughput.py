"""Training speed of regard compared with its peers on equal models, in one interleaved run.

usage: VENV_EOLE=.. VENV_YOYO=.. python bench/throughput.py [--slices 8] [--slice-seconds 60]
           [--only g2p|multi30k] [--work DIR]
All trainers are started; then they alternate: each has the machine for a slice while the others are
stopped, so drift of the machine hits all alike. Reported: medians over slices, and their ratios.
"""

import argparse
import json
import os
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from surroundings import BENCH, REPOSITORY, RESULTS, folder, machine
from workfolder import prepare

THREADS = "2"
# Freed memory is kept, which regard does by itself at start-up.
KEEP = {"MALLOC_MMAP_THRESHOLD_": "4000000000", "MALLOC_TRIM_THRESHOLD_": "8000000000"}
# interleave.py leaves stopped processes behind if it fails: each job writes down its id.
NOTE_PID = 'echo $$ > "$0.pid"; exec "$@"'


@dataclass(frozen=True)
class Comparison:
    """Jobs that train an equal model on the same data, and the ratios they must reach."""

    unit: str
    rates: str  # the key of the slices' rates in the result of interleave.py
    bars: dict[str, float | None]  # peer's job -> least ratio; None is shown without a bar


COMPARISONS = {
    "g2p": Comparison("examples/s", "ex_s", {"yoyodyne": 2.0, "yoyodyne_malloc": None}),
    "multi30k": Comparison(
        "target tokens/s", "tok_s", {"eole": 1.3, "eole_malloc": 1.0, "eole_lean": None}
    ),
}


def main() -> int:
    """Prepares, runs, prints and saves; 1 if something is missing or a bar is not reached."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--slices", type=int, default=8, help="turns of each trainer")
    parser.add_argument("--slice-seconds", type=float, default=60.0)
    parser.add_argument("--only", choices=sorted(COMPARISONS))
    parser.add_argument("--work", type=Path, default=REPOSITORY / "runs" / "bench-throughput")
    arguments = parser.parse_args()
    chosen = [arguments.only] if arguments.only else list(COMPARISONS)

    data = folder("REGARD_DATA", "../shared/data")
    peers = folder("REGARD_PEERS", "../shared/peers")
    wanted = {"g2p": "VENV_YOYO", "multi30k": "VENV_EOLE"}
    venvs = {name: folder(wanted[name]) for name in chosen}
    if data is None or peers is None or None in venvs.values():
        return 1

    about = machine() | {"versions": versions(venvs)}
    if about["versions"] is None:
        return 1
    if about["load"] > 0.5:
        print(f"load is {about['load']}: other work on this machine spoils the figures")
    work = arguments.work.resolve()
    prepare(work, data, peers)
    jobs = [job for name in chosen for job in jobs_of(name, data, peers, venvs[name])]
    minutes = arguments.slices * arguments.slice_seconds * len(jobs) / 60
    print(f"{len(jobs)} trainers, {minutes:.0f} minutes and their start-up", flush=True)
    result = interleave(jobs, work, peers, arguments.slices, arguments.slice_seconds)
    if result is None:
        return 1

    rows = [row for name in chosen for row in compare(name, result)]
    RESULTS.mkdir(exist_ok=True)
    saved = {"machine": about, "ratios": rows, "jobs": result}
    (RESULTS / "throughput.json").write_text(json.dumps(saved, indent=1) + "\n")
    print_tables(chosen, result, rows)
    return int(any(row["bar"] and not row["reached"] for row in rows))


def jobs_of(name: str, data: Path, peers: Path, venv: Path) -> list[dict[str, object]]:
    """The trainers of one comparison, as interleave.py reads them."""
    python = str(venv / "bin" / "python")
    ours = job(
        f"regard_{name}",
        [sys.executable, str(BENCH / "train_regard.py"), name, str(data), f"regard_{name}.steps"],
        PYTHONPATH=os.pathsep.join([str(peers), str(REPOSITORY / "src")]),
    )
    if name == "g2p":
        words = [python, str(peers / "yoyo.py"), "fit", "--config"]
        return [
            ours,
            job("yoyodyne", [*words, "yoyo_tf.yaml"], **stop_to("yoyodyne")),
            job(
                "yoyodyne_malloc",
                [*words, "yoyodyne_malloc.yaml"],
                **stop_to("yoyodyne_malloc"),
                **KEEP,
            ),
        ]
    words = [python, str(peers / "train_eole.py")]
    return [
        ours,
        job("eole", [*words, "eole_tiny.yaml", "eole.steps"]),
        job("eole_malloc", [*words, "eole_malloc.yaml", "eole_malloc.steps"], **KEEP),
        job("eole_lean", [*words, "eole_lean.yaml", "eole_lean.steps"], **KEEP),
    ]


def job(name: str, words: list[str], **variables: str) -> dict[str, object]:
    """One entry of jobs.json; the number of slices is added later."""
    command = ["sh", "-c", NOTE_PID, name, *words]
    return {
        "name": name,
        "cmd": command,
        "env": variables,
        "steps": f"{name}.steps",
        "log": f"{name}.log",
    }


def stop_to(name: str) -> dict[str, str]:
    """What the Lightning callback of the peers reads: where to log, where to save at the end."""
    return {"STEPLOG": f"{name}.steps", "STOP_CKPT": f"out/{name}.ckpt"}


def interleave(
    jobs: list[dict[str, object]], work: Path, peers: Path, slices: int, seconds: float
) -> dict[str, dict] | None:
    """The result of interleave.py, or None after a message if it failed."""
    for pattern in ("*.pid", "*.steps", "*.log", "PAUSE", "result.json"):
        for left in work.glob(pattern):
            left.unlink()
    (work / "jobs.json").write_text(json.dumps([entry | {"slices": slices} for entry in jobs]))
    environment = os.environ | {
        "PYTHONPATH": str(peers),
        "OMP_NUM_THREADS": THREADS,
        "MKL_NUM_THREADS": THREADS,
        "BENCH_THREADS": THREADS,
        "TOKENIZERS_PARALLELISM": "false",
    }
    words = [sys.executable, str(peers / "interleave.py"), "jobs.json", "result.json"]
    finished = False
    try:
        done = subprocess.run([*words, "--slice", str(seconds)], cwd=work, env=environment)
        finished = done.returncode == 0
    finally:
        if not finished:
            end(work)
    if not finished:
        for entry in jobs:
            log = work / str(entry["log"])
            last = log.read_text(errors="replace").splitlines()[-3:] if log.exists() else []
            print(f"{log}: {' / '.join(last) or 'not started'}", file=sys.stderr)
        return None
    return json.loads((work / "result.json").read_text())


def end(work: Path) -> None:
    """Ends the trainers that a failed run left stopped."""
    for note in work.glob("*.pid"):
        try:
            os.killpg(int(note.read_text()), signal.SIGKILL)
        except (ProcessLookupError, ValueError):
            continue


def versions(venvs: dict[str, Path]) -> dict[str, str] | None:
    """Versions of the peers, as each venv sees them; None after a message if one is missing."""
    code = "import sys, importlib.metadata as m; print(*(m.version(n) for n in sys.argv[1:]))"
    found = {}
    for name, venv in venvs.items():
        package = {"g2p": "yoyodyne", "multi30k": "eole"}[name]
        words = [str(venv / "bin" / "python"), "-c", code, package, "torch"]
        done = subprocess.run(words, capture_output=True, text=True)
        if done.returncode:
            print(f"no {package} with torch in {venv}: see bench/README.md", file=sys.stderr)
            return None
        found[package] = " on torch ".join(done.stdout.split())
    return found


def compare(name: str, result: dict[str, dict]) -> list[dict[str, object]]:
    """Ratios of medians of one comparison, each with its bar."""
    rates = COMPARISONS[name].rates
    ours = result[f"regard_{name}"][f"{rates}_median"]
    rows = []
    for peer, bar in COMPARISONS[name].bars.items():
        theirs = result[peer][f"{rates}_median"]
        ratio = round(ours / theirs, 2) if ours and theirs else None
        reached = None if bar is None or ratio is None else ratio >= bar
        rows.append({"data": name, "peer": peer, "ratio": ratio, "bar": bar, "reached": reached})
    return rows


def print_tables(chosen: list[str], result: dict[str, dict], rows: list[dict]) -> None:
    """Speeds, then ratios. A slice in which fewer than three steps end has no rate."""
    print("\n| data | trainer | median | slices | | a step: examples, target tokens |")
    print("|---|---|---|---|---|---|")
    for name in chosen:
        comparison = COMPARISONS[name]
        for trainer in (f"regard_{name}", *comparison.bars):
            seen = result[trainer]
            rates = seen[comparison.rates]
            median = f"{seen[f'{comparison.rates}_median']:,.0f}" if rates else "too few steps"
            spread = f"{min(rates):,.0f} to {max(rates):,.0f}" if rates else ""
            size = f"{seen['examples'] / seen['steps']:.0f}, {seen['tokens_per_step']}"
            print(f"| {name} | {trainer} | {median} | {spread} | {comparison.unit} | {size} |")
    print("\n| data | regard against | ratio of medians | bar | |\n|---|---|---|---|---|")
    for row in rows:
        bar = "" if row["bar"] is None else f">= {row['bar']}"
        verdict = {True: "pass", False: "**miss**", None: ""}[row["reached"]]
        ratio = row["ratio"] or "none: longer slices"
        print(f"| {row['data']} | {row['peer']} | {ratio} | {bar} | {verdict} |")


if __name__ == "__main__":
    sys.exit(main())
