"""One million short lines through `regard predict`: peak memory and lines a second.

Trains a small model on the built-in `reverse` for a few seconds, writes random words, one a line,
and answers them into a file. Memory is the resident memory of the command and all its child
processes together, sampled ten times a second; pages they share count several times.

usage: python bench/million.py [--lines 1000000] [--work FOLDER] [--budget 60s] [-- MORE OPTIONS]
"""

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from surroundings import RESULTS, machine, regard_command

BAR = 1.5  # GB
MODEL = ["model.encoder.kind=recurrent", "model.encoder.width=64", "model.decoder.width=64"]


def write_words(path: Path, count: int) -> None:
    """Random words of three to twelve letters."""
    draw = random.Random(1)
    with open(path, "w") as file:
        for _ in range(count):
            word = "".join(draw.choices("abcdefghijklmnopqrstuvwxyz", k=draw.randint(3, 12)))
            file.write(word + "\n")


def resident(process: int) -> int:
    """The resident bytes of a process and all below it."""
    total = 0
    try:
        pages = int(Path(f"/proc/{process}/statm").read_text().split()[1])
        total = pages * os.sysconf("SC_PAGE_SIZE")
        for task in Path(f"/proc/{process}/task").iterdir():
            total += sum(resident(int(child)) for child in (task / "children").read_text().split())
    except (OSError, IndexError):  # it has ended
        pass
    return total


def watched(command: list[str]) -> tuple[float, float]:
    """The seconds a command takes and its peak memory in GB."""
    begun, peak = time.monotonic(), 0
    process = subprocess.Popen(command)
    while process.poll() is None:
        peak = max(peak, resident(process.pid))
        time.sleep(0.1)
    if process.returncode:
        sys.exit(process.returncode)
    return time.monotonic() - begun, peak / 1e9


def main() -> int:
    """Trains, answers, prints the figures; 1 where too much memory was taken."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--lines", type=int, default=1_000_000)
    parser.add_argument("--budget", default="60s")
    parser.add_argument("--work", type=Path)
    parser.add_argument("more", nargs="*", help="more options of predict, behind --")
    options = parser.parse_args()
    regard = regard_command()
    if regard is None:
        return 2
    work = options.work or Path(tempfile.mkdtemp(prefix="million-"))
    work.mkdir(parents=True, exist_ok=True)
    model, words, answers = work / "model", work / f"{options.lines}.txt", work / "answers.txt"
    if not (model / "scores.json").exists():
        settings = [word for setting in MODEL for word in ("--set", setting)]
        train = ["train", "reverse", "--budget", options.budget, "--out", str(model), "--force"]
        subprocess.run([*regard, *train, *settings], check=True)
    if not words.exists():
        write_words(words, options.lines)
    predict = ["predict", str(model), "--input", str(words), "--output", str(answers), "--force"]
    seconds, peak = watched([*regard, *predict, *options.more])
    with open(answers, "rb") as file:
        assert sum(1 for _ in file) == options.lines
    speed = options.lines / seconds
    figures = {"lines": options.lines, "seconds": round(seconds), "lines a second": round(speed)}
    record = {"machine": machine(), "options": options.more, **figures, "peak GB": round(peak, 2)}
    (RESULTS / "million.json").write_text(json.dumps(record, indent=2) + "\n")
    print(f"{options.lines:,} lines in {seconds:,.0f} s, {speed:,.0f} lines/s, start included")
    print(f"peak memory, children included: {peak:.2f} GB (bar: {BAR} GB)")
    return int(peak > BAR)


if __name__ == "__main__":
    sys.exit(main())
