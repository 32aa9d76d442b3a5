"""How good an older regard gets in its budget, and this one in a part of it, in one run.

usage: python bench/time_to_quality.py OLD_CHECKOUT [--share 0.6] [--only g2p|multi30k]
           [--slice-seconds 30] [--budgets 10m,12m]
Both trainers are started; then each has both cores while the other is stopped, the new one
for a `share` of the time of the old one, so that both see the machine over the same minutes. Their
budgets count only the time they were given (own_clock.py). Ends with 1 if the new one is worse.
"""

import argparse
import json
import mmap
import os
import signal
import struct
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

from surroundings import BENCH, REPOSITORY, RESULTS, folder, machine

THREADS = "2"
BUDGETS = {"g2p": "10m", "multi30k": "12m"}


@dataclass
class Trainer:
    """One version that trains. stopped: seconds; since: when it was stopped last."""

    name: str
    source: Path
    out: Path
    budget: float
    process: subprocess.Popen[bytes] | None = None
    clock: mmap.mmap | None = None
    stopped: float = 0.0
    since: float = 0.0
    figures: dict[str, object] = field(default_factory=dict)

    def environment(self) -> dict[str, str]:
        """Two threads, and the code of this version."""
        threads = {name: THREADS for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS")}
        return os.environ | threads | {"PYTHONPATH": str(self.source)}

    def start(self, words: list[str]) -> None:
        """Begins to train, and is stopped at once."""
        file = self.out.with_suffix(".clock")
        file.write_bytes(struct.pack("d", 0.0))
        with open(file, "r+b") as handle:
            self.clock = mmap.mmap(handle.fileno(), 8)
        command = [sys.executable, str(BENCH / "own_clock.py"), str(file), "train", *words]
        command += ["--budget", f"{self.budget:g}s", "--out", str(self.out), "--force"]
        with open(self.out.with_suffix(".log"), "wb") as log:
            self.process = subprocess.Popen(
                command,
                env=self.environment(),
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        os.killpg(self.process.pid, signal.SIGSTOP)
        self.since = time.monotonic()

    def run(self, seconds: float) -> None:
        """Resume for a while, or until it ends."""
        assert self.process is not None and self.clock is not None
        self.stopped += time.monotonic() - self.since
        self.clock[:8] = struct.pack("d", self.stopped)
        os.killpg(self.process.pid, signal.SIGCONT)
        try:
            self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            os.killpg(self.process.pid, signal.SIGSTOP)
            self.since = time.monotonic()

    @property
    def going(self) -> bool:
        """Whether it still trains."""
        return self.process is not None and self.process.poll() is None

    def end(self) -> None:
        """Ends it, wherever it is."""
        if self.going and self.process is not None:
            os.killpg(self.process.pid, signal.SIGKILL)


def main() -> int:
    """Trains, compares and saves; 1 if something failed or the new version is worse."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("old", type=Path, help="a checkout of the older version")
    parser.add_argument("--share", type=float, default=0.6, help="of the old one's budget")
    parser.add_argument("--only", choices=sorted(BUDGETS))
    parser.add_argument("--slice-seconds", type=float, default=30.0, help="of the old one")
    parser.add_argument("--budgets", default=",".join(BUDGETS.values()), help="g2p, multi30k")
    parser.add_argument("--work", type=Path, default=REPOSITORY / "runs" / "bench-time")
    arguments = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that no trainer is left behind
    data = folder("REGARD_DATA", "../shared/data")
    if data is None or not (arguments.old / "src" / "regard").is_dir():
        print(f"{arguments.old}: no src/regard in it", file=sys.stderr)
        return 1
    about = machine()
    if float(str(about["load"])) > 0.5:
        print(f"load is {about['load']}: other work on this machine spoils the figures")
    budgets = dict(zip(BUDGETS, map(_seconds, arguments.budgets.split(",")), strict=True))
    rows = []
    for name in [arguments.only] if arguments.only else list(BUDGETS):
        row = compare(name, data, budgets[name], arguments)
        if row is None:
            return 1
        rows.append(row)
    RESULTS.mkdir(exist_ok=True)
    saved = {"machine": about, "share": arguments.share, "rows": rows}
    (RESULTS / "time_to_quality.json").write_text(json.dumps(saved, indent=1) + "\n")
    print_table(rows)
    return int(not all(row["reached"] for row in rows))


def compare(
    name: str, data: Path, budget: float, arguments: argparse.Namespace
) -> dict[str, object] | None:
    """The qualities of both versions on one data set; None after a message if one failed."""
    work = arguments.work.resolve() / name
    work.mkdir(parents=True, exist_ok=True)
    share, seconds = arguments.share, arguments.slice_seconds
    old = Trainer("old", arguments.old.resolve() / "src", work / "old", budget)
    new = Trainer("new", REPOSITORY / "src", work / "new", budget * share)
    try:
        for trainer in (old, new):
            trainer.start(places(name, data))
        while old.going or new.going:
            for trainer, length in ((old, seconds), (new, seconds * share)):
                if trainer.going:
                    trainer.run(length)
    finally:
        old.end()
        new.end()
    for trainer in (old, new):
        if not (trainer.out / "scores.json").exists():
            log = trainer.out.with_suffix(".log").read_text(errors="replace").splitlines()
            print(f"{trainer.name} failed: {' / '.join(log[-3:])}", file=sys.stderr)
            return None
        trainer.figures = figures(trainer, name, data)
    measure = "dev_exact_match" if name == "g2p" else "test_2016_bleu"
    reached = float(str(new.figures[measure])) >= float(str(old.figures[measure]))
    both = {"old": old.figures, "new": new.figures}
    return {"data": name, "measure": measure, **both, "reached": reached}


def places(name: str, data: Path) -> list[str]:
    """The options of `regard train` that name the data."""
    if name == "g2p":
        part = data / "cmudict_g2p"
        return [str(part / "train.tsv.gz"), "--dev", str(part / "dev.tsv.gz")]
    part = data / "multi30k"
    names = {"source": "train.en", "target": "train.de", "dev-source": "val.en"}
    names["dev-target"] = "val.de"
    return [word for key, file in names.items() for word in (f"--{key}", str(part / f"{file}.gz"))]


def figures(trainer: Trainer, name: str, data: Path) -> dict[str, object]:
    """Scores on dev, as training ended with them, and on Multi30k also on test_2016."""
    final = json.loads((trainer.out / "scores.json").read_text())
    steps = [json.loads(line) for line in (trainer.out / "metrics.jsonl").read_text().splitlines()]
    found: dict[str, object] = {
        "minutes": round(trainer.budget / 60, 2),
        "steps": max(int(row["step"]) for row in steps),
        "dev_exact_match": final["scores"]["exact_match"],
        "dev_bleu": final["scores"]["bleu"],
        "dev_perplexity": final["scores"]["perplexity"],
    }
    if name == "multi30k":
        part = data / "multi30k" / "test_2016_flickr"
        words = ["--source", f"{part}.en.gz", "--target", f"{part}.de.gz", "--beam", "5", "--json"]
        done = subprocess.run(
            [sys.executable, "-m", "regard", "evaluate", str(trainer.out), *words],
            env=trainer.environment(),
            check=True,
            capture_output=True,
        )
        answer = json.loads(done.stdout)
        found["test_2016_bleu"] = answer["metrics"]["bleu"]
    return found


def print_table(rows: list[dict[str, object]]) -> None:
    """A line a version."""
    print("\n| data | version | minutes | steps | dev exact_match | dev BLEU | test_2016 BLEU | |")
    print("|---|---|---|---|---|---|---|---|")
    for row in rows:
        for version in ("old", "new"):
            seen = row[version]
            assert isinstance(seen, dict)
            test = seen.get("test_2016_bleu")
            verdict = "" if version == "old" else "pass" if row["reached"] else "**miss**"
            print(
                f"| {row['data']} | {version} | {seen['minutes']} | {seen['steps']:,} "
                f"| {seen['dev_exact_match']:.2f} | {seen['dev_bleu']:.2f} "
                f"| {'' if test is None else f'{test:.2f}'} | {verdict} |"
            )


def _seconds(text: str) -> float:
    """'10m' or '20s' in seconds."""
    return float(text[:-1]) * {"s": 1, "m": 60}[text[-1]]


if __name__ == "__main__":
    sys.exit(main())
