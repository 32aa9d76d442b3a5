"""Measure speech on FSDD: features, digits, unheard speakers, spelled digits, digit strings.

    python bench/speech.py [--parts features,digits,speakers,letters,strings] [--budget 5m]

FSDD is read from REGARD_DATA (default ../shared/data) and unzipped into a temporary folder. Digit
strings are 3 to 6 recordings of a speaker with pauses. Results of trainings are stored in
bench/results/speech.json and not measured again; delete the file to measure again.
"""

import argparse
import csv
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
import wave
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from cells import Cell, run_cells
from surroundings import regard_command

DATA = Path(os.environ.get("REGARD_DATA", "../shared/data")) / "fsdd"
WORDS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
BARS = {
    "digits": ("accuracy", ">=", 98.0),
    "speakers": ("accuracy", ">=", 78.0),
    "letters": ("cer", "<=", 3.0),
    "strings-ctc": ("wer", "<=", 5.0),
    "strings-attention": ("wer", "<=", 8.0),
}
KINDS = {
    "ctc": ["model.decoder.kind=none", "model.decoder.upsample=1"],
    "attention": ["model.decoder.cross=location"],
}
STRINGS = {"train": 3000, "dev": 200}
HOUR = 3600


class Recordings:
    """FSDD in a folder: wav files and their rows in files.tsv."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        with open(DATA / "files.tsv", encoding="utf-8") as stream:
            self.rows = list(csv.DictReader(stream, delimiter="\t"))
        for name in sorted({row["zip"] for row in self.rows}):
            with zipfile.ZipFile(DATA / name) as archive:
                archive.extractall(folder)

    def table(self, name: str, rows: list[dict[str, str]]) -> Path:
        """Write a table of recordings; return its path."""
        path = self.folder / f"{name}.tsv"
        lines = [
            f"{r['file']}\t{r['digit']}\t{WORDS[int(r['digit'])]}\t{r['speaker']}" for r in rows
        ]
        path.write_text("\n".join(["file\tdigit\tword\tspeaker", *lines, ""]))
        return path

    def split(self, name: str) -> list[dict[str, str]]:
        return [row for row in self.rows if row["split"] == name]

    def speakers(self) -> list[str]:
        return sorted({row["speaker"] for row in self.rows})


def digit_strings(data: Recordings, split: str) -> Path:
    """Write recordings of 3 to 6 digits with pauses, and a table of them; return its path."""
    random = np.random.default_rng(0 if split == "train" else 1)
    by_speaker = {
        name: [row for row in data.split(split) if row["speaker"] == name]
        for name in data.speakers()
    }
    lines = ["file\twords\tspeaker"]
    (data.folder / "strings").mkdir(exist_ok=True)
    for number in range(STRINGS[split]):
        speaker = data.speakers()[number % len(by_speaker)]
        rows = random.choice(np.array(by_speaker[speaker]), random.integers(3, 7))
        parts = []
        for row in rows:
            parts += [pause(random), samples(data.folder / row["file"])]
        name = f"strings/{split}-{number}.wav"
        write_wav(data.folder / name, np.concatenate([*parts, pause(random)]))
        lines.append(f"{name}\t{' '.join(WORDS[int(row['digit'])] for row in rows)}\t{speaker}")
    path = data.folder / f"strings-{split}.tsv"
    path.write_text("\n".join([*lines, ""]))
    return path


def pause(random: np.random.Generator) -> np.ndarray:
    """Return a pause of 50 to 300 ms with faint noise."""
    count = int(random.integers(400, 2400))
    return np.rint(random.normal(0, 20, count)).astype(np.int16)


def samples(path: Path) -> np.ndarray:
    with wave.open(str(path), "rb") as file:
        return np.frombuffer(file.readframes(file.getnframes()), np.int16)


def write_wav(path: Path, values: np.ndarray, rate: int = 8000) -> None:
    with wave.open(str(path), "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(rate)
        file.writeframes(values.tobytes())


def trained(
    train: Path, test: Path, target: str, cell: Cell, settings: list[str], unheard: bool = False
) -> Cell:
    """Train on a table, evaluate on another one; return the metrics.

    unheard: whether the test table has other speakers, so that it does not select the checkpoint.
    Single digits are trained with the names of the speakers, so that features are normalized by
    speaker. Strings are long enough for their own mean.
    """
    work = Path(tempfile.mkdtemp(dir=train.parent))
    common = ["--source-column", "file", "--target-column", target]
    common += ["--speaker-column", "speaker"] if target != "words" else []
    sets = [part for one in settings for part in ("--set", one)]
    dev = [] if unheard else ["--dev", str(test)]
    training = [*common, *dev, "--out", str(work / "run"), *sets]
    budget = ["--budget", cell["budget"], "--seed", str(cell["seed"])]
    start = time.monotonic()
    regard(["train", str(train), *training, *budget])
    seconds = time.monotonic() - start
    scores = regard(["evaluate", str(work / "run"), str(test), *common, "--json", "--all"])
    found = json.loads(scores)["metrics"]
    wanted = ("accuracy", "macro_f1", "exact_match", "cer", "wer")
    return {name: found[name] for name in wanted if name in found} | {"seconds": round(seconds)}


def regard(args: list[str]) -> str:
    """Run a command; return what it prints to stdout."""
    command = [*(regard_command() or [sys.executable, "-m", "regard"]), *args]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"regard {' '.join(args)}\n{done.stderr[-3000:]}")
    return done.stdout


def cells(parts: list[str], data: Recordings, args: argparse.Namespace) -> Iterator[Cell]:
    """Yield what is to be measured."""
    rest = {"budget": args.budget, "seed": args.seed}
    if "digits" in parts:
        yield {"part": "digits", **rest}
    if "speakers" in parts:
        yield from ({"part": "speakers", "speaker": name, **rest} for name in data.speakers())
    for part in ("letters", "strings"):
        if part in parts:
            yield from ({"part": f"{part}-{kind}", **rest} for kind in args.kinds.split(","))


def measure(cell: Cell, data: Recordings, extra: list[str]) -> Cell:
    """Return the results of a cell."""
    part, _, kind = cell["part"].partition("-")
    train, dev = (data.table(name, data.split(name)) for name in ("train", "dev"))
    if part == "digits":
        return trained(train, dev, "digit", cell, ["task.kind=classify", *extra])
    if part == "speakers":
        name = cell["speaker"]
        others = [row for row in data.rows if row["speaker"] != name]
        own = [row for row in data.rows if row["speaker"] == name]
        tables = data.table(f"not-{name}", others), data.table(f"only-{name}", own)
        return trained(*tables, "digit", cell, ["task.kind=classify", *extra], unheard=True)
    if part == "letters":
        return trained(
            train, dev, "word", cell, ["task.target.tokenizer=char", *KINDS[kind], *extra]
        )
    tables = digit_strings(data, "train"), digit_strings(data, "dev")
    word = ["task.target.tokenizer=whitespace"]
    return trained(*tables, "words", cell, [*word, *KINDS[kind], *extra])


def features(folder: Path) -> None:
    """Print the time and memory of the features of one hour of sound, each in its own process."""
    for rate in (8000, 16000, 44100):
        path = folder / f"hour-{rate}.wav"
        random = np.random.default_rng(0)
        values = random.normal(0, 3000, HOUR * rate).clip(-32768, 32767).astype(np.int16)
        write_wav(path, values, rate)
        del values
        subprocess.run([sys.executable, __file__, "--hour", str(path)], check=True)
        path.unlink()


def one_hour(path: str) -> None:
    """Print the time and memory of the features of a file."""
    from regard.data.reading.sound_files import read_sound
    from regard.inputs.sound_options import Sounds

    before = peak_memory()
    start = time.process_time()
    sound = read_sound(path)
    made, options = Sounds().fit([sound], "task.source", [])
    rows = made.encode([sound])
    seconds = time.process_time() - start
    print(
        f"features of one hour, {sound.rate:,} Hz (model {options.rate:,} Hz, {options.bands} "
        f"bands): {seconds:.1f} s of processor time (bar 60), {len(rows.flat):,} windows, "
        f"{rows.flat.nbytes / 1e6:.0f} MB, peak memory +{peak_memory() - before:.0f} MB"
    )


def peak_memory() -> float:
    """Return the peak memory of this process in MB (Linux)."""
    status = Path("/proc/self/status").read_text()
    return float(status.partition("VmHWM:")[2].split()[0]) / 1024


def report(rows: list[Cell]) -> int:
    """Print the results next to their bars; return 1 if one is missed."""
    missed = 0
    groups: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        groups.setdefault(row["part"], []).append(row)
    for part, some in groups.items():
        metric, sign, bar = BARS.get(part) or BARS[part.partition("-")[0]]
        value = statistics.mean(row[metric] for row in some)
        met = value >= bar if sign == ">=" else value <= bar
        missed |= not met
        each = ", ".join(f"{row['speaker']} {row[metric]:.1f}" for row in some if "speaker" in row)
        print(
            f"{part}: {metric} {value:.2f} (bar {sign} {bar:g}: {'met' if met else 'MISSED'})"
            + (f"; {each}" if each else "")
        )
    return int(missed)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--parts", default="features,digits,speakers,letters,strings")
    parser.add_argument("--kinds", default="ctc,attention", help="of models for letters, strings")
    parser.add_argument("--budget", default="5m", help="training time of each model")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--set", action="append", default=[], help="settings of all models")
    parser.add_argument("--name", default="speech", help="of the file with the results")
    parser.add_argument("--hour", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.hour:
        one_hour(args.hour)
        return 0
    parts = args.parts.split(",")
    with tempfile.TemporaryDirectory() as folder:
        if "features" in parts:
            features(Path(folder))
        if set(parts) <= {"features"}:
            return 0
        if not DATA.exists():
            print(f"skipped: no {DATA}")
            return 0
        data = Recordings(Path(folder))
        return report(
            run_cells(args.name, cells(parts, data, args), lambda c: measure(c, data, args.set))
        )


if __name__ == "__main__":
    sys.exit(main())
