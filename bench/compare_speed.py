"""The speed of this version relative to an older one: training, decoding, and starting a process.

usage: python bench/compare_speed.py OLD [--alternations 21] [--work FOLDER]
OLD is a checkout of the older version. A worker of each version holds the same models; they take
turns, in an order that changes, so that drift of the machine hits both alike. Printed is the speed
of this version divided by that of the older one: the median over all turns, and an interval that
holds the true median with 95 %. Ends with 1 if an interval is below 0.97.
"""

import argparse
import json
import math
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from older_names import has_old_names, old_setting

BAR = 0.97
SIDES = ("encoder", "decoder")
MODELS = {
    "lstm": {"kind": "recurrent", "layers": 2, "width": 256, "dropout": 0.1},
    "transformer": {"kind": "transformer", "layers": 3, "width": 256, "dropout": 0.1},
}
UPDATES = {"lstm": 24, "transformer": 10}
SEARCHES = [(batch, beam) for batch in (1, 32) for beam in (1, 5)]
TEXTS = {1: 6, 32: 64}
LENGTHS = {"search.min_length": 24, "search.max_length": 24}  # what is not trained ends at once


def pairs(count: int) -> list[tuple[str, str]]:
    """Words and what they are turned into, always the same."""
    draw = random.Random(1)
    words = ["".join(draw.choices("abcdefghijklmnop", k=draw.randint(4, 14))) for _ in range(count)]
    return [(word, word[::-1]) for word in words]


def settings(name: str) -> dict[str, Any]:
    """Those of a model."""
    return {f"model.{side}.{key}": v for side in SIDES for key, v in MODELS[name].items()}


def worker() -> None:
    """Answers the name of a measurement on stdin with the seconds it took."""
    import regard

    measures: dict[str, Callable[[], None]] = {}
    folder = Path(tempfile.mkdtemp())
    for name in MODELS:
        own = settings(name) | {"training.steps": 2, **LENGTHS}
        regard.Transducer(settings=own, out=folder / name).fit(pairs(400), dev=pairs(20))
        for quantize in (None, "int8"):
            model = regard.load(folder / name, quantize=quantize)
            for batch, beam in SEARCHES:
                kind = f"{name}{' int8' if quantize else ''}, batch {batch}, beam {beam}"
                measures[f"decoding: {kind}"] = decoding(model, batch, beam)
        measures[f"training: {name}"] = training(name)
    print(json.dumps(list(measures)), flush=True)
    for line in sys.stdin:
        start = time.perf_counter()
        measures[line.strip()]()
        print(time.perf_counter() - start, flush=True)


def decoding(model: Any, batch: int, beam: int) -> Callable[[], None]:
    """Return a call that predicts texts batch by batch."""
    texts = [source for source, _ in pairs(TEXTS[batch])]

    def run() -> None:
        for at in range(0, len(texts), batch):
            model.predict(texts[at : at + batch], beam=beam, batch_size=batch)

    return run


def training(name: str) -> Callable[[], None]:
    """Return a call that makes updates."""
    import regard
    from regard.config.load import load_config
    from regard.data.reading.read import Pair
    from regard.training.loop import train
    from regard.training.start import start_run

    more = [
        "training.steps=1000000",
        "training.batch_tokens=2000",
        "training.validate_every=1000000",
    ]
    given = [f"{key}={value}" for key, value in settings(name).items()] + more
    if has_old_names(Path(regard.__file__).parents[1]):
        given = list(map(old_setting, given))
    made = [Pair(source, target, 0) for source, target in pairs(4000)]
    run = start_run(Path(tempfile.mkdtemp()), load_config(None, given), made, made[:20])
    records = train(run)
    return lambda: [next(records) for _ in range(UPDATES[name])] and None


class Version:
    """A worker of a checkout."""

    def __init__(self, checkout: Path) -> None:
        self.environment = os.environ | {
            "PYTHONPATH": str(checkout / "src"),
            "OMP_NUM_THREADS": "2",
            "MKL_NUM_THREADS": "2",
        }
        self.process = subprocess.Popen(
            [sys.executable, __file__, "--worker"],
            env=self.environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        assert self.process.stdout
        self.measures: list[str] = json.loads(self.process.stdout.readline())

    def seconds(self, measure: str) -> float:
        """What a measurement takes."""
        if measure.startswith("process: "):
            words = {
                "import regard": ["-c", "import regard; regard.Transducer"],
                "regard --version": ["-m", "regard", "--version"],
            }[measure.removeprefix("process: ")]
            start = time.perf_counter()
            subprocess.run([sys.executable, *words], env=self.environment, capture_output=True)
            return time.perf_counter() - start
        assert self.process.stdin and self.process.stdout
        self.process.stdin.write(f"{measure}\n")
        self.process.stdin.flush()
        return float(self.process.stdout.readline())


def interval(ratios: list[float]) -> tuple[float, float]:
    """The order statistics that contain the median with at least 95 %."""
    ordered, n = sorted(ratios), len(ratios)
    below, k = 0.0, 0
    while below + math.comb(n, k) / 2**n <= 0.025:
        below += math.comb(n, k) / 2**n
        k += 1
    return ordered[max(0, k - 1)], ordered[n - max(1, k)]


def main() -> int:
    """Runs all measurements; 1 if one of them has become slower."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("old", nargs="?", type=Path)
    parser.add_argument("--worker", action="store_true")
    parser.add_argument("--alternations", type=int, default=21)
    parser.add_argument("--only", default="")
    given = parser.parse_args()
    if given.worker:
        worker()
        return 0
    from surroundings import REPOSITORY, RESULTS, machine

    versions = [Version(given.old.resolve()), Version(REPOSITORY)]
    measures = [*versions[1].measures, "process: import regard", "process: regard --version"]
    measures = [one for one in measures if given.only in one]
    ratios: dict[str, list[float]] = {measure: [] for measure in measures}
    for turn in range(given.alternations + 1):
        for measure in measures:
            order = versions if turn % 2 else versions[::-1]
            taken = {id(version): version.seconds(measure) for version in order}
            if turn:  # the first one warms up
                ratios[measure].append(taken[id(versions[0])] / taken[id(versions[1])])
    slower, rows = [], {}
    for measure, found in ratios.items():
        low, high = interval(found)
        median = statistics.median(found)
        rows[measure] = {"median": median, "low": low, "high": high, "alternations": len(found)}
        slower += [measure] if high < BAR else []
        mark = "" if high >= BAR else "  SLOWER"
        print(f"{measure:48} {median:5.3f}  [{low:5.3f}, {high:5.3f}]{mark}")
    RESULTS.mkdir(exist_ok=True)
    words = ["git", "-C", str(given.old), "rev-parse", "--short", "HEAD"]
    old = subprocess.run(words, capture_output=True, text=True, check=True).stdout.strip()
    result = {"machine": machine(), "old": old, "speed": rows}
    (RESULTS / "compare_speed.json").write_text(json.dumps(result, indent=1) + "\n")
    print(f"{len(measures) - len(slower)} of {len(measures)} reach {BAR}")
    return int(bool(slower))


if __name__ == "__main__":
    sys.exit(main())
