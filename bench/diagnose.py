"""Ten planted faults and three healthy runs: does `regard diagnose` name the fault, and only that?

usage: python bench/diagnose.py [--work FOLDER] [--only NAME ..] [--other] [--seed 1]
Each fault is a `regard train` of a few hundred steps on data made on the spot (`g2p`, `dates`,
sentences with tags; with REGARD_DATA also Tatoeba and Multi30k) and a `regard diagnose`. A fault
is named where the first finding is its own; a healthy run must have no problem. The bar: 9 of 10,
and 3 of 3. `--other` plants the faults in the other one of the two models. Runs are kept in the
work folder and used again.
"""

import argparse
import json
import sys
from pathlib import Path

from planted import FAULTS, ONLY_ONE, Bench, Planted
from surroundings import REPOSITORY, RESULTS, machine, regard_command


def main() -> int:
    """Plants, trains, diagnoses, prints the table; 1 if the bar is missed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--work", type=Path, default=REPOSITORY / "runs/bench-diagnose")
    parser.add_argument("--only", nargs="*", metavar="NAME", default=[f.name for f in FAULTS])
    parser.add_argument("--other", action="store_true", help="plant in the other model")
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    command = regard_command()
    if command is None:
        return 1
    bench = Bench(arguments.work.resolve(), command, arguments.seed)
    chosen = [fault for fault in FAULTS if fault.name in arguments.only]
    right, lines = {True: 0, False: 0}, list[str]()
    print("| planted | in | first finding | problems | |\n|---|---|---|---|---|", flush=True)
    for fault in chosen:
        setup = fault.setup
        if arguments.other and fault.name not in ONLY_ONE:
            setup = "dates" if setup == "letters" else "letters"
        passed, line = diagnosed(bench, fault, setup)
        right[bool(fault.expected)] += passed
        lines.append(line)
        print(line, flush=True)
    faults = sum(bool(fault.expected) for fault in chosen)
    healthy = len(chosen) - faults
    print(
        f"\n{right[True]} of {faults} faults named, {right[False]} of {healthy} healthy runs clean"
    )
    RESULTS.mkdir(exist_ok=True)
    saved = {"machine": machine(), "seed": arguments.seed, "other": arguments.other, "rows": lines}
    name = "diagnose-other.json" if arguments.other else "diagnose.json"
    (RESULTS / name).write_text(json.dumps(saved, indent=1) + "\n")
    return int(right[True] < 0.9 * faults or right[False] < healthy)


def diagnosed(bench: Bench, fault: Planted, setup: str) -> tuple[bool, str]:
    """Whether the fault was named, and the row of the table."""
    out = bench.work / f"{fault.name.replace(' ', '-').replace('/', 'by')}-{setup}-{bench.seed}"
    fault.plant(bench, setup, out)
    done = bench.regard("diagnose", out, "--json")
    if done.returncode not in (0, 1):
        raise SystemExit(f"{fault.name}: {done.stderr[-600:]}")
    found = json.loads(done.stdout)["findings"]
    problems = [f["name"] for f in found if f["severity"] == "problem"]
    first = found[0]["name"] if found else "none"
    passed = problems[:1] == [first] and first in fault.expected if fault.expected else not problems
    verdict = "named" if passed and fault.expected else "clean" if passed else "**miss**"
    cells = (fault.name, setup, first, ", ".join(problems) or "none", verdict)
    return passed, "| " + " | ".join(cells) + " |"


if __name__ == "__main__":
    sys.exit(main())
