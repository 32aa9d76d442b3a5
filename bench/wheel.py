"""Build the wheel, install it in a new environment, and use it as a newcomer would.

usage: python bench/wheel.py [--work FOLDER]
The environment knows nothing of this checkout. It gets the wheel with the extra `serve` and the
versions of constraints.txt. Ends with 1 if a command fails or prints a traceback.
"""

import argparse
import subprocess
import sys
import tempfile
import venv
import zipfile
from pathlib import Path

from surroundings import REPOSITORY

DATA_FILES = ("regard/py.typed", "regard/config/recipes/bahdanau.yaml")
PAIRS = "".join(f"{word}\t{word[::-1]}\n" for word in ("abc", "bca", "cab", "aabb", "cc")) * 20
MODEL = "runs/pairs-1"
COMMANDS = (
    ["--version"],
    ["recipes"],
    ["check", "pairs.tsv"],
    ["train", "pairs.tsv", "--steps", "30"],
    ["predict", MODEL, "abc"],
    ["evaluate", MODEL, "pairs.tsv"],
    ["inspect", MODEL, "abc", "--out", "page.html"],
    ["serve", "--help"],
)


def main() -> int:
    """Build, install, run; print a line per step."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--work", type=Path, default=None)
    arguments = parser.parse_args()
    work = arguments.work or Path(tempfile.mkdtemp(prefix="regard-wheel-"))
    work.mkdir(parents=True, exist_ok=True)
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet"]
    run([*pip, "wheel", "--no-deps", "--wheel-dir", str(work), str(REPOSITORY)], work)
    wheel = max(work.glob("regard-*.whl"), key=lambda path: path.stat().st_mtime)
    names = zipfile.ZipFile(wheel).namelist()
    missing = [name for name in DATA_FILES if name not in names]
    print(f"{wheel.name}: {wheel.stat().st_size / 1e6:.2f} MB, {len(names)} files", flush=True)
    if missing:
        print(f"not in the wheel: {', '.join(missing)}")
        return 1
    venv.create(work / "venv", with_pip=True, clear=True)
    python = work / "venv/bin/python"
    install = [str(python), "-m", "pip", "install", "--quiet", "--no-compile"]
    constraints = ["-c", str(REPOSITORY / "constraints.txt")]
    run([*install, *constraints, f"regard[serve] @ file://{wheel}"], work)
    (work / "pairs.tsv").write_text(PAIRS)
    failed = 0
    for words in COMMANDS:
        done = run([str(work / "venv/bin/regard"), *words], work, check=False)
        failed += done.returncode != 0 or "Traceback" in done.stderr
    print(f"{len(COMMANDS) - failed} of {len(COMMANDS)} commands work")
    return int(failed > 0)


def run(words: list[str], folder: Path, check: bool = True) -> subprocess.CompletedProcess[str]:
    """Run a program and say how it ended; exit with its messages if it failed and must not."""
    done = subprocess.run(words, cwd=folder, capture_output=True, text=True)
    name = " ".join(Path(word).name if word.startswith("/") else word for word in words[:6])
    print(f"{'ok' if done.returncode == 0 else f'exit {done.returncode}'}: {name}", flush=True)
    if done.returncode:
        print(done.stderr[-2000:])
        if check:
            raise SystemExit(1)
    return done


if __name__ == "__main__":
    sys.exit(main())
