"""Measure synthesis on FSDD: which of the digits that a model says a classifier recognizes.

    python bench/synthesis.py [--kinds recurrent,parallel] [--budget 5m]

A classifier is trained on the training recordings. Then each synthesizer is trained on them, says
each digit in the voice of each speaker, with durations also faster and slower, and the classifier
labels the WAV files. FSDD is read from REGARD_DATA (default ../shared/data) and unzipped into a
temporary folder. Results are stored in bench/results/synthesis.json and not measured again; delete
the file to measure again.
"""

import argparse
import json
import sys
import tempfile
import time
from pathlib import Path

from cells import Cell, run_cells
from speech import DATA, WORDS, Recordings, regard

BAR = 90.0  # percent
SPEEDS = {"recurrent": [None], "transformer": [None], "parallel": [1.0, 0.9, 1.15]}
COLUMNS = ["--source-column", "file", "--target-column", "word", "--speaker-column", "speaker"]
TURNED = ["--source-column", "word", "--target-column", "file", "--speaker-column", "speaker"]
SHOWN = ("mcd", "duration_error", "stop_errors")


class Recognizer:
    """A classifier of recordings, trained on first use. accuracy: on the dev set, in percent."""

    def __init__(self, data: Recordings, budget: str) -> None:
        self.folder, self.budget, self.accuracy = data.folder / "recognizer", budget, 0.0
        self.train, self.dev = (data.table(name, data.split(name)) for name in ("train", "dev"))

    def score(self, table: Path) -> float:
        """Return the accuracy on the recordings of a table, in percent."""
        if not self.folder.exists():
            task = ["--task", "classify", "--dev", str(self.dev), "--seed", "1"]
            where = ["--budget", self.budget, "--out", str(self.folder)]
            regard(["train", str(self.train), *COLUMNS, *task, *where])
            self.accuracy = self._evaluate(self.dev)
        return self._evaluate(table)

    def _evaluate(self, table: Path) -> float:
        found = regard(["evaluate", str(self.folder), str(table), *COLUMNS, "--json"])
        accuracy: float = json.loads(found)["metrics"]["accuracy"]
        return accuracy


def measure(cell: Cell, data: Recordings, recognizer: Recognizer, extra: list[str]) -> Cell:
    """Return the results of a cell."""
    work = Path(tempfile.mkdtemp(dir=data.folder))
    run = str(work / "run")
    kind = ["--task", "synthesize", "--set", f"model.decoder.kind={cell['kind']}"]
    limits = ["--budget", cell["budget"], "--seed", str(cell["seed"])]
    sets = [part for one in extra for part in ("--set", one)]
    start = time.monotonic()
    dev = ["--dev", str(recognizer.dev), "--out", run]
    regard(["train", str(recognizer.train), *TURNED, *kind, *dev, *limits, *sets])
    seconds = time.monotonic() - start
    scores = regard(["evaluate", run, str(recognizer.dev), *TURNED, "--json"])
    metrics = json.loads(scores)["metrics"]
    lines = ["file\tword\tspeaker"]
    for speaker in data.speakers():
        for speed in SPEEDS[cell["kind"]]:
            output = work / f"{speaker}-{speed}"
            faster = [] if speed is None else ["--speed", str(speed)]
            regard(["predict", run, *WORDS, "--speaker", speaker, "--output", str(output), *faster])
            lines += [f"{output.name}/{word}.wav\t{word}\t{speaker}" for word in WORDS]
    table = work / "made.tsv"
    table.write_text("\n".join([*lines, ""]))
    found = {name: round(metrics[name], 3) for name in SHOWN}
    recognized = recognizer.score(table)
    return {
        "recognized": recognized,
        "sounds": len(lines) - 1,
        "recordings": recognizer.accuracy,
        **found,
        "seconds": round(seconds),
    }


def report(rows: list[Cell]) -> int:
    """Print the results next to the bar; return 1 if one misses it."""
    for row in rows:
        met = "met" if row["recognized"] >= BAR else "MISSED"
        print(
            f"{row['kind']}, {row['budget']}: {row['recognized']:.1f} % of {row['sounds']} digits "
            f"recognized (bar >= {BAR:g}: {met}); recordings {row['recordings']:.1f} %, duration "
            f"error {row['duration_error']:.1f} %"
        )
    return int(any(row["recognized"] < BAR for row in rows))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kinds", default="recurrent,parallel", help="of decoders")
    parser.add_argument("--budget", default="5m", help="training time of each synthesizer")
    parser.add_argument("--recognizer", default="2m", help="training time of the classifier")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--set", action="append", default=[], help="settings of all synthesizers")
    parser.add_argument("--name", default="synthesis", help="of the file with the results")
    args = parser.parse_args()
    if not DATA.exists():
        print(f"skipped: no {DATA}")
        return 0
    with tempfile.TemporaryDirectory() as folder:
        data = Recordings(Path(folder))
        recognizer = Recognizer(data, args.recognizer)
        cells = [
            {"kind": kind, "budget": args.budget, "recognizer": args.recognizer, "seed": args.seed}
            for kind in args.kinds.split(",")
        ]
        run = lambda cell: measure(cell, data, recognizer, args.set)  # noqa: E731
        return report(run_cells(args.name, cells, run))


if __name__ == "__main__":
    sys.exit(main())
