"""The laws over many more models than `make test` has: any two choices meet, at another seed.

usage: python bench/cover.py [--seed N] [--workers 2] [words for pytest ...]
Takes about an hour. Prints the settings of each model that breaks a law, as a line to be put into
`FOUND` in tests/laws/unions.py, and the command that runs that law alone.
"""

import argparse
import os
import re
import subprocess
import sys
import time

from surroundings import REPOSITORY


def main() -> int:
    """Runs the laws; 1 if one fails."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--workers", type=int, default=2)
    given, words = parser.parse_known_args()
    print(f"seed {given.seed}", flush=True)
    command = [sys.executable, "-m", "pytest", "-q", "-n", str(given.workers), "-rfE", "--tb=short"]
    places = {"REGARD_COVER": str(given.seed), "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [*command, *(words or ["tests/laws"])],
        cwd=REPOSITORY,
        env=os.environ | places,
        stdout=subprocess.PIPE,
        text=True,
        check=False,
    )
    failed = re.findall(r"^(?:FAILED|ERROR) (\S+)", done.stdout, re.MULTILINE)
    for node in failed:
        chosen = re.search(r"\[(.*)\]", node)
        print(f"{chosen[1] if chosen else node}")
        print(f"    REGARD_COVER={given.seed} python -m pytest '{node}'")
    print(done.stdout.strip().splitlines()[-1])
    return int(bool(failed) or done.returncode != 0)


if __name__ == "__main__":
    sys.exit(main())
