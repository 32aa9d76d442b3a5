"""Where things are (environment variables override each), and on what machine this runs."""

import os
import platform
import shlex
import shutil
import subprocess
import sys
import time
from pathlib import Path

BENCH = Path(__file__).resolve().parent
REPOSITORY = BENCH.parent
RESULTS = BENCH / "results"
VECTOR_FLAGS = ("sse4", "avx", "fma", "f16c", "amx")


def folder(variable: str, default: str | None = None) -> Path | None:
    """The folder that an environment variable names, or None after a message if it is not there."""
    name = os.environ.get(variable) or (str(REPOSITORY / default) if default else "")
    if name and Path(name).is_dir():
        return Path(name).resolve()
    print(f"no folder {name or 'given'}: set {variable}, see bench/README.md", file=sys.stderr)
    return None


def regard_command() -> list[str] | None:
    """The words that start regard: $REGARD, the command next to this Python, or one in the PATH."""
    if "REGARD" in os.environ:
        return shlex.split(os.environ["REGARD"])
    sibling = Path(sys.executable).parent / "regard"
    found = str(sibling) if sibling.exists() else shutil.which("regard")
    if found is None:
        print("no command regard: run `make setup`, or set REGARD", file=sys.stderr)
        return None
    return [found]


def commit() -> str:
    """Return the version of this checkout."""
    words = ["git", "-C", str(REPOSITORY), "rev-parse", "--short", "HEAD"]
    return subprocess.run(words, capture_output=True, text=True).stdout.strip()


def machine() -> dict[str, object]:
    """Processor and its vector instructions, cores, system, date, load of the last minute."""
    return {
        "processor": _cpu_field("model name") or platform.processor(),
        "flags": [flag for flag in _cpu_field("flags").split() if flag.startswith(VECTOR_FLAGS)],
        "cores": os.cpu_count(),
        "system": platform.platform(terse=True),
        "python": platform.python_version(),
        "date": time.strftime("%Y-%m-%d %H:%M"),
        "load": round(os.getloadavg()[0], 2),
    }


def _cpu_field(name: str) -> str:
    """A field of the first processor in /proc/cpuinfo; empty where there is none."""
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    found = [line.partition(":")[2].strip() for line in lines if line.startswith(name)]
    return found[0] if found else ""
