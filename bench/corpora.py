"""Large corpora: peak memory of check and train, speed of tokenizing, start of a second run.

Makes random sentences (8 to 10 words a side, word forms by Zipf's law), runs the commands on them
with a cache of its own, and prints each value with its bar. Memory is the resident memory of
the command and all its child processes together, sampled 20 times a second; pages they share
count several times.
"""

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import sentencepiece
from surroundings import RESULTS, machine, regard_command

FORMS = 30_000
BARS = {
    "check, peak GB": ("<=", 2.0),
    "train, peak GB": ("<=", 2.0),
    "second run, seconds to the first step": ("<=", 10.0),
    "tokenizing against the raw library": (">=", 0.6),
}
SMALL_MODEL = [
    *("model.encoder.kind=transformer", "model.encoder.width=64", "model.encoder.layers=1"),
    *("model.decoder.width=64", "model.decoder.layers=1"),
    *("training.batch_tokens=1024", "training.validation_examples=20"),
]
LETTERS = np.array(list("abcdefghijklmnopqrstuvwxyz"))


def write_pairs(path: Path, count: int) -> None:
    """A TSV file of random sentences."""
    random = np.random.default_rng(0)
    known: set[str] = set()
    while len(known) < FORMS:
        known.add("".join(LETTERS[random.integers(0, 26, random.integers(2, 9))]))
    forms = np.array(sorted(known))
    random.shuffle(forms)
    chances = np.cumsum(1 / np.arange(1, FORMS + 1))
    with open(path.with_suffix(".new"), "w") as file:
        for start in range(0, count, 100_000):
            rows = min(100_000, count - start)
            lengths = random.integers(8, 11, 2 * rows)
            drawn = np.searchsorted(chances, random.random(lengths.sum()) * chances[-1])
            words = iter(forms[drawn].tolist())
            texts = [" ".join(next(words) for _ in range(n)) for n in lengths.tolist()]
            file.write("".join(f"{texts[2 * i]}\t{texts[2 * i + 1]}\n" for i in range(rows)))
    path.with_suffix(".new").rename(path)


class Watched:
    """A command that runs, and the most memory that it and its children took together."""

    def __init__(self, words: list[str], cache: Path, log: Path) -> None:
        self.peak, self.seconds, self.worked = 0, 0.0, 0.0
        self.first: float | None = None
        self.began = time.monotonic()
        environment = {**os.environ, "REGARD_CACHE": str(cache)}
        with open(log, "w") as file:
            self.process = subprocess.Popen(words, stdout=file, stderr=file, env=environment)

    def wait(self, watch: Path | None = None) -> "Watched":
        """Waits for its end; notes when the file `watch` came into being."""
        while self.process.poll() is None:
            self.peak = max(self.peak, sum(map(resident, family(self.process.pid))))
            if watch is not None and self.first is None and watch.exists():
                self.first = time.monotonic() - self.began
                self.worked = sum(map(processor_seconds, family(self.process.pid)))
            time.sleep(0.05)
        self.seconds = time.monotonic() - self.began
        if self.process.returncode:
            sys.exit(f"{self.process.args} ended with {self.process.returncode}")
        return self


def family(process: int) -> Iterator[int]:
    """The process and all its descendants."""
    yield process
    for task in Path(f"/proc/{process}/task").glob("*/children"):
        try:
            children = task.read_text().split()
        except OSError:
            continue
        for child in children:
            yield from family(int(child))


def resident(process: int) -> int:
    """Bytes of memory that a process has now."""
    try:
        pages = int(Path(f"/proc/{process}/statm").read_text().split()[1])
    except (OSError, IndexError):
        return 0
    return pages * os.sysconf("SC_PAGE_SIZE")


def processor_seconds(process: int) -> float:
    """How long a process has had a core."""
    try:
        fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def speed(data: Path, folder: Path, count: int, rounds: int) -> dict[str, list[float]]:
    """Texts a second of the raw library and of regard, alternating, on the first pairs."""
    os.environ.update(REGARD_MEMORY="1", REGARD_CACHE=str(folder / "cache-speed"))
    from regard.data.corpus.encode import encode_pairs
    from regard.data.sources.open_large import read_large
    from regard.data.tokenizers.subword import BpeTokenizer

    part = folder / "part.tsv"
    with open(data, encoding="utf-8") as file, open(part, "w", encoding="utf-8") as out:
        out.writelines(line for line, _ in zip(file, range(count), strict=False))
    texts = [text for line in part.read_text("utf-8").splitlines() for text in line.split("\t")]
    tokenizer = BpeTokenizer.build(texts[:100_000], 8_000)
    raw = sentencepiece.SentencePieceProcessor(model_proto=tokenizer._model)
    read = read_large([str(part)])
    assert read is not None
    found: dict[str, list[float]] = {"raw": [], "regard": []}
    for _ in range(rounds):
        began = time.monotonic()
        raw.encode(texts, num_threads=2)
        found["raw"].append(len(texts) / (time.monotonic() - began))
        shutil.rmtree(folder / "cache-speed" / "tokens", ignore_errors=True)
        began = time.monotonic()
        encode_pairs(read.pairs, tokenizer, tokenizer)
        found["regard"].append(len(texts) / (time.monotonic() - began))
    return found


def measure(arguments: argparse.Namespace, regard: list[str]) -> Iterator[tuple[str, float]]:
    """Runs what was asked for; the name and the value of each figure."""
    folder = Path(arguments.folder)
    data = folder / f"pairs-{arguments.pairs}.tsv"
    if not data.exists():
        folder.mkdir(parents=True, exist_ok=True)
        write_pairs(data, arguments.pairs)
    settings = [word for setting in SMALL_MODEL for word in ("--set", setting)]
    train = [*regard, "train", str(data), *settings, "--force", "--out"]
    steps = arguments.only.split(",")
    if "train" in steps:
        shutil.rmtree(folder / "cache", ignore_errors=True)
        words = [*train, str(folder / "run-1"), "--steps", str(arguments.steps)]
        run = Watched(words, folder / "cache", folder / "train.log").wait()
        yield "train, peak GB", run.peak / 1e9
        yield "train, seconds in all", run.seconds
    if "second" in steps:
        shutil.rmtree(folder / "run-2", ignore_errors=True)
        words = [*train, str(folder / "run-2"), "--steps", "1"]
        run = Watched(words, folder / "cache", folder / "second.log")
        run.wait(folder / "run-2" / "metrics.jsonl")
        yield "second run, seconds to the first step", run.first or run.seconds
        yield "second run, of them with a core", run.worked
    if "check" in steps:
        shutil.rmtree(folder / "cache-check", ignore_errors=True)
        words = [*regard, "check", str(data)]
        run = Watched(words, folder / "cache-check", folder / "check.log").wait()
        yield "check, peak GB", run.peak / 1e9
        yield "check, seconds in all", run.seconds
    if "speed" in steps:
        found = speed(data, folder, min(arguments.pairs, arguments.sample), arguments.rounds)
        raw, ours = (statistics.median(rates) for rates in found.values())
        yield "raw library, texts/s", raw
        yield "regard, texts/s", ours
        yield "tokenizing against the raw library", ours / raw


def main() -> None:
    """Prints each figure as it comes, and writes them to bench/results."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=int, default=10_000_000)
    parser.add_argument("--folder", default="/tmp/big", help="some 4 GB")
    parser.add_argument("--steps", type=int, default=100, help="updates of the first run")
    parser.add_argument("--sample", type=int, default=200_000, help="pairs to measure speed on")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", default="train,second,check,speed")
    parser.add_argument("--keep", action="store_true", help="do not delete the data")
    arguments = parser.parse_args()
    regard = regard_command()
    if regard is None:
        sys.exit(2)
    figures: dict[str, float] = {}
    for name, value in measure(arguments, regard):
        figures[name] = round(value, 3)
        sign, bar = BARS.get(name, ("", 0.0))
        held = "" if not sign else f"   bar {sign} {bar:g}: "
        held += "" if not sign else "yes" if (value <= bar) == (sign == "<=") else "NO"
        print(f"{name:<40}{value:>12,.2f}{held}", flush=True)
    RESULTS.mkdir(exist_ok=True)
    record = {"pairs": arguments.pairs, "figures": figures, "machine": machine()}
    (RESULTS / "corpora.json").write_text(json.dumps(record, indent=1) + "\n")
    if not arguments.keep:
        shutil.rmtree(arguments.folder)


if __name__ == "__main__":
    main()
