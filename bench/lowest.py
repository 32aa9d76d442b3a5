"""Run the command-line tests with the lowest versions that pyproject.toml allows.

usage: python bench/lowest.py [--work FOLDER] [TEST ...]
Creates a new environment and installs each direct dependency, extras included, in the lowest
version that its bound allows. Two exceptions: torch has the version of constraints.txt, because
older files of it are large, and so have the tools of the extra `test`. Ends with 1 if a version
cannot be installed or a test fails.
"""

import argparse
import os
import re
import subprocess
import sys
import tempfile
import time
import venv
from pathlib import Path

from surroundings import REPOSITORY

TESTS = ("tests/test_cli.py", "tests/test_cli_tasks.py")
TOOLS = ("pytest", "filelock", "hypothesis")  # that these tests and tests/conftest.py import
PINNED = ("torch",)  # in the version of constraints.txt
BOUND = re.compile(r"([A-Za-z0-9_.-]+)>=([0-9.]+)")


def lowest(text: str) -> dict[str, str]:
    """Return the lowest version of each direct dependency, by name, the extra `test` excluded."""
    main = re.search(r"^dependencies = \[(.*?)^\]", text, re.S | re.M)
    extras = re.search(r"^\[project.optional-dependencies\]\n(.*?)^test = ", text, re.S | re.M)
    assert main and extras, "pyproject.toml has another layout"
    return dict(BOUND.findall(main[1] + extras[1]))


def constrained(text: str) -> dict[str, str]:
    """Return the versions of constraints.txt by name."""
    return dict(re.findall(r"^([A-Za-z0-9_.-]+)==([^\s;]+)", text, re.M))


def requirements() -> list[str]:
    """Return what is installed, as `name==version`."""
    known = constrained((REPOSITORY / "constraints.txt").read_text())
    found = lowest((REPOSITORY / "pyproject.toml").read_text())
    found |= {name: known[name] for name in PINNED}
    return [f"{name}=={version}" for name, version in found.items()] + list(TOOLS)


def main() -> int:
    """Install and test; print a line per step."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("tests", nargs="*", default=list(TESTS))
    parser.add_argument("--work", type=Path, default=None)
    arguments = parser.parse_args()
    work = arguments.work or Path(tempfile.mkdtemp(prefix="regard-lowest-"))
    work.mkdir(parents=True, exist_ok=True)
    needed = requirements()
    print("installing", *needed, flush=True)
    venv.create(work / "venv", with_pip=True, clear=True)
    python = str(work / "venv/bin/python")
    pip = [python, "-m", "pip", "install", "--quiet", "--no-compile"]
    start = time.monotonic()
    if subprocess.run([*pip, *needed], cwd=work).returncode:
        print("these versions cannot be installed together: raise a bound in pyproject.toml")
        return 1
    print(f"installed in {time.monotonic() - start:.0f} s", flush=True)
    surroundings = {**os.environ, "PYTHONPATH": str(REPOSITORY / "src")}
    tests = [python, "-m", "pytest", *arguments.tests]
    done = subprocess.run(tests, cwd=REPOSITORY, env=surroundings)
    print("the lowest versions work" if done.returncode == 0 else "the lowest versions fail")
    return int(done.returncode != 0)


if __name__ == "__main__":
    sys.exit(main())
