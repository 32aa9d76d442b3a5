"""Fail if a phrase of `banned_phrases.txt` occurs in code, tests, benchmarks or docs."""

import re
import sys
from pathlib import Path

HERE = Path(__file__).parent
PATHS = ("src", "tests", "bench", "docs", "README.md", "Makefile", "pyproject.toml")
NOT_CHECKED = {"bench/older_names.py"}  # the old names themselves
TEXT = {".py", ".md", ".js", ".html", ".css", ".yaml", ".sh", ".toml", ""}


def main() -> int:
    """Print each occurrence with its replacement; return the exit code."""
    rules = [
        (re.compile(rf"(?<![\w-])(?:{phrase.strip()})(?![\w-])", re.IGNORECASE), instead.strip())
        for line in (HERE / "banned_phrases.txt").read_text("utf-8").splitlines()
        if not line.startswith("#")
        for phrase, instead in [line.split("=>")]
    ]
    root = HERE.parent
    files = [file for path in PATHS for file in (root / path, *sorted((root / path).rglob("*")))]
    found = 0
    for file in files:
        path = file.relative_to(root)
        if not file.is_file() or path.suffix not in TEXT or path.as_posix() in NOT_CHECKED:
            continue
        for number, line in enumerate(file.read_text("utf-8").splitlines(), 1):
            words = line.replace("_", " ")
            for rule, instead in rules:
                if match := rule.search(words):
                    found += 1
                    print(f"{path}:{number}: banned phrase {match[0]!r}; write: {instead}")
    print(f"{found} banned phrases" if found else "no banned phrases")
    return int(found > 0)


if __name__ == "__main__":
    sys.exit(main())
