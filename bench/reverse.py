"""Any encoder with any decoder on the built-in data `reverse`: 16 trainings, one table.

usage: python bench/reverse.py [--budget 50s] [--pairs rnn-gru transformer-lstm ..]
Each pair is a `regard train` and a `regard evaluate` of the command line. The bar: exact match on
the built-in test part >= 99 %, or >= 90 % with a plain rnn on either side, in under 60 s.
"""

import argparse
import json
import shlex
import subprocess
import sys
import tempfile
import time
from itertools import product
from pathlib import Path

from surroundings import REPOSITORY, RESULTS, machine, regard_command

CELLS = ("rnn", "gru", "lstm")
KINDS = (*CELLS, "transformer")
SECONDS = 60.0


def main() -> int:
    """Runs the pairs, prints the table, saves the results; 1 if a pair misses the bar."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--budget", default="50s", help="training time of a pair")
    parser.add_argument("--pairs", nargs="*", metavar="ENCODER-DECODER", default=all_pairs())
    parser.add_argument("--show", action="store_true", help="print the commands and leave")
    arguments = parser.parse_args()
    if unknown := sorted(set(arguments.pairs) - set(all_pairs())):
        parser.error(f"no such pair: {' '.join(unknown)}; choose from {' '.join(all_pairs())}")

    command = regard_command()
    if command is None:
        return 1
    if arguments.show:
        for pair in arguments.pairs:
            print(shlex.join([*command, *train_arguments(pair, arguments.budget, Path(pair))]))
        return 0

    about, rows = machine(), []
    for pair in arguments.pairs:
        rows.append(run(command, pair, arguments.budget))
        print(line(rows[-1]), file=sys.stderr, flush=True)
    RESULTS.mkdir(exist_ok=True)
    saved = {"machine": about, "budget": arguments.budget, "pairs": rows}
    (RESULTS / "reverse.json").write_text(json.dumps(saved, indent=1) + "\n")

    print("| encoder | decoder | exact % | bar | seconds | |\n|---|---|---|---|---|---|")
    print("\n".join(line(row) for row in rows))
    passed = sum(row["passed"] for row in rows)
    print(f"\n{passed} of {len(rows)} pairs reach the bar")
    return int(passed < len(rows))


def all_pairs() -> list[str]:
    """Every encoder-decoder, as they are named on the command line."""
    return [f"{encoder}-{decoder}" for encoder, decoder in product(KINDS, KINDS)]


def train_arguments(pair: str, budget: str, out: Path) -> list[str]:
    """The words after `regard` that train this pair."""
    words = ["train", "reverse", "--budget", budget, "--out", str(out)]
    for part, kind in zip(("encoder", "decoder"), pair.split("-"), strict=True):
        if kind in CELLS:
            words += ["--set", f"model.{part}.kind=recurrent", "--set", f"model.{part}.cell={kind}"]
        else:
            words += ["--set", f"model.{part}.kind={kind}"]
    return words


def run(command: list[str], pair: str, budget: str) -> dict[str, object]:
    """Trains and evaluates one pair. Seconds are those of the whole train command."""
    encoder, decoder = pair.split("-")
    bar = 90.0 if "rnn" in (encoder, decoder) else 99.0
    with tempfile.TemporaryDirectory(prefix="regard-reverse-") as folder:
        out = Path(folder) / "run"
        start = time.monotonic()
        trained = call([*command, *train_arguments(pair, budget, out)], pair)
        seconds = time.monotonic() - start
        answer = (
            call([*command, "evaluate", str(out), "reverse", "--json"], pair) if trained else None
        )
    exact = json.loads(answer.stdout)["metrics"]["exact_match"] if answer else None
    return {
        "encoder": encoder,
        "decoder": decoder,
        "exact_match": exact,
        "bar": bar,
        "seconds": round(seconds, 1),
        "passed": exact is not None and exact >= bar and seconds < SECONDS,
    }


def call(words: list[str], pair: str) -> subprocess.CompletedProcess[str] | None:
    """The finished process, or None and its last words if it failed."""
    done = subprocess.run(words, cwd=REPOSITORY, capture_output=True, text=True)
    if done.returncode == 0:
        return done
    print(f"{pair}: {shlex.join(words)} failed", file=sys.stderr)
    print("\n".join(done.stderr.splitlines()[-10:]), file=sys.stderr)
    return None


def line(row: dict[str, object]) -> str:
    """One row of the table."""
    exact = "failed" if row["exact_match"] is None else f"{row['exact_match']:.1f}"
    verdict = "pass" if row["passed"] else "**miss**"
    cells = (row["encoder"], row["decoder"], exact, f">= {row['bar']:.0f}", row["seconds"], verdict)
    return "| " + " | ".join(map(str, cells)) + " |"


if __name__ == "__main__":
    sys.exit(main())
