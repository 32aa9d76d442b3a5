"""A random sample of help strings, messages and docstrings, to be read with fresh eyes.

python bench/wording.py [--seed 1] [--count 30]

A reader who knows PyTorch and scikit-learn should stumble over at most 3 of the 90.
"""

import argparse
import ast
import random
from collections.abc import Iterator
from pathlib import Path

import regard

HELP = {"help", "description"}  # keywords of typer options and pydantic fields
PRINTS = {"UserError", "info", "warn", "note", "skip", "ApiError", "problem"}
DOCUMENTED = ast.Module | ast.ClassDef | ast.FunctionDef


def main() -> None:
    """Print the sample."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=30)
    options = parser.parse_args()
    root = Path(regard.__file__).parent
    kinds: dict[str, list[str]] = {"help": [], "message": [], "docstring": []}
    for path in sorted(root.rglob("*.py")):
        for kind, line, text in strings(ast.parse(path.read_text("utf-8"))):
            kinds[kind].append(f"{path.relative_to(root)}:{line}: {text}")
    for kind, found in kinds.items():
        print(f"\n## {options.count} of {len(found):,} {kind}s, seed {options.seed}")
        for text in random.Random(options.seed).sample(found, options.count):
            print(f"- {text}")


def strings(tree: ast.Module) -> Iterator[tuple[str, int, str]]:
    """Yield the kind, line and text of each string that a user or reader sees."""
    for node in ast.walk(tree):
        if isinstance(node, DOCUMENTED) and (text := ast.get_docstring(node)):
            yield "docstring", getattr(node, "lineno", 1), text.replace("\n", " ")
        if not isinstance(node, ast.Call):
            continue
        for keyword in node.keywords:
            if keyword.arg in HELP and (text := _text(keyword.value)):
                yield "help", node.lineno, text
        name = node.func.id if isinstance(node.func, ast.Name) else ""
        if name in PRINTS and node.args and (text := _text(node.args[0])):
            yield "message", node.lineno, text


def _text(node: ast.expr) -> str:
    """Return a string or f-string as in the source, with {...} for expressions."""
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else ""
    if isinstance(node, ast.JoinedStr):
        parts = (part.value if isinstance(part, ast.Constant) else "{...}" for part in node.values)
        return "".join(map(str, parts))
    return ""


if __name__ == "__main__":
    main()
