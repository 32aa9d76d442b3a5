"""Counts of the plan of the house: rooms, sizes, ladders over kinds, names used twice.

usage: python bench/house.py [CHECKOUT ...] [--list WHAT]
Counted from the syntax trees of src/regard, so that two checkouts can be put side by side.
`--list` names what one row counts, such as `--list ladders`.
"""

import argparse
import ast
import builtins
import json
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path

from surroundings import REPOSITORY, RESULTS, machine

LONG = 250  # lines of a file
KINDS = (  # of which there are several: code that branches on them is a ladder
    *("Task", "TaskOptions", "Estimator", "Engine", "Search", "Beam", "Sample", "Argmax"),
    *("Corpus", "Inputs", "Input", "Tokenizer", "Question", "Module"),
)
OTHERS = {  # classes of Python, numpy and torch's tensor
    *(name for name in dir(builtins) if isinstance(getattr(builtins, name), type)),
    *("Path", "Tensor", "ndarray", "Mapping", "Sequence", "Callable", "Iterable", "Iterator"),
    *("Number", "integer", "floating", "generic", "date", "UnionType", "BaseModel", "Parameter"),
}


class House:
    """The syntax trees of a checkout."""

    def __init__(self, checkout: Path) -> None:
        self.root = checkout / "src" / "regard"
        self.files = sorted(self.root.rglob("*.py"))
        self.trees = {path: ast.parse(path.read_text()) for path in self.files}
        self.bases: dict[str, set[str]] = defaultdict(set)
        self.layers: set[str] = set()  # classes of nn/, parts of models: not counted as kinds
        for path in self.files:
            for node in self.walk(path, ast.ClassDef):
                self.bases[node.name] |= {_name(base) for base in node.bases}
                if path.relative_to(self.root).parts[0] == "nn":
                    self.layers.add(node.name)

    def walk(self, path: Path, kind: type) -> Iterator:
        """The nodes of a kind in a file."""
        return (node for node in ast.walk(self.trees[path]) if isinstance(node, kind))

    def where(self, path: Path, node: ast.AST) -> str:
        """File and line."""
        return f"{path.relative_to(self.root)}:{getattr(node, 'lineno', 0)}"

    def lines(self, path: Path) -> int:
        """Lines of a file."""
        return len(path.read_text().splitlines())

    def hall(self) -> list[str]:
        """Files that are in no room."""
        return [path.name for path in self.files if path.parent == self.root]

    def rooms(self) -> list[str]:
        """Packages at the top."""
        return sorted({p.relative_to(self.root).parts[0] for p in self.files} - {*self.hall()})

    def leaves(self) -> dict[str, int]:
        """Lines of the files that lie directly in each package."""
        count: Counter[str] = Counter()
        for path in self.files:
            count[str(path.parent.relative_to(self.root))] += self.lines(path)
        return dict(count.most_common())

    def long(self) -> list[str]:
        """Files of more than 250 lines."""
        return [str(p.relative_to(self.root)) for p in self.files if self.lines(p) > LONG]

    def instances(self) -> list[str]:
        """`isinstance` on classes that are not Python's, numpy's or Tensor."""
        return [f"{self.where(path, call)} {named}" for path, call, named in self._instances()]

    def ladders(self) -> list[str]:
        """Those of them, asserts apart, that tell kinds of one thing apart."""
        found = []
        for path, call, names in self._instances():
            asserted = any(call in ast.walk(node.test) for node in self.walk(path, ast.Assert))
            if not asserted and any(self._is_kind(name) for name in names):
                found.append(f"{self.where(path, call)} {names}")
        return found

    def _instances(self) -> Iterator[tuple[Path, ast.Call, list[str]]]:
        for path in self.files:
            for call in self.walk(path, ast.Call):
                if _name(call.func) == "isinstance" and len(call.args) == 2:
                    names = [name for name in _classes(call.args[1]) if name not in OTHERS]
                    if names:
                        yield path, call, names

    def _is_kind(self, name: str) -> bool:
        """Whether a class is one kind of several: it, or what it comes from, is among KINDS."""
        todo, seen = [name], set()
        while todo:
            one = todo.pop()
            if one in KINDS:
                return name not in self.layers
            if one not in seen:
                seen.add(one)
                todo += self.bases.get(one, ())
        return False

    def words(self) -> list[str]:
        """Comparisons of a kind with a word: `part.kind == "linear"`."""
        found = []
        for path in self.files:
            for node in self.walk(path, ast.Compare):
                sides = [node.left, *node.comparators]
                kind = any(_name(side) in ("kind", "kinds", "task") for side in sides)
                word = any(_is_word(side) for side in sides)
                if kind and word:
                    found.append(self.where(path, node))
        return found

    def classes(self) -> list[str]:
        """Class names that occur in several files."""
        places: dict[str, list[str]] = defaultdict(list)
        for path in self.files:
            for node in self.trees[path].body:
                if isinstance(node, ast.ClassDef):
                    places[node.name].append(str(path.relative_to(self.root)))
        return [f"{n}: {', '.join(p)}" for n, p in sorted(places.items()) if len(p) > 1]

    def names(self) -> list[str]:
        """File names that occur in several packages."""
        places: dict[str, list[str]] = defaultdict(list)
        for path in self.files:
            if not path.name.startswith("__"):
                places[path.name].append(str(path.parent.relative_to(self.root)))
        return [f"{n}: {', '.join(p)}" for n, p in sorted(places.items()) if len(p) > 1]

    def locals(self) -> list[str]:
        """Thread-locals."""
        return [
            self.where(path, node)
            for path in self.files
            for kind in (ast.Attribute,)
            for node in self.walk(path, kind)
            if node.attr == "local" and _name(node.value) == "threading"
        ]

    def searches(self) -> list[str]:
        """Files outside of `search` that name both beam search and sampling."""
        return [
            str(path.relative_to(self.root))
            for path in self.files
            if path.relative_to(self.root).parts[0] != "search"
            and "Beam | Sample" in path.read_text()
        ]


def _name(node: ast.AST) -> str:
    """The last word of a name."""
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""


def _classes(node: ast.AST) -> list[str]:
    """The names of the classes that `isinstance` asks for."""
    if isinstance(node, ast.Tuple):
        return [name for one in node.elts for name in _classes(one)]
    if isinstance(node, ast.BinOp):
        return _classes(node.left) + _classes(node.right)
    return [_name(node)] if _name(node) else []


def _is_word(node: ast.AST) -> bool:
    """Whether a node is a word, or a collection of words."""
    if isinstance(node, ast.Tuple | ast.List | ast.Set):
        return any(_is_word(one) for one in node.elts)
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


LISTS = {
    "hall": ("files in the hall", House.hall),
    "rooms": ("rooms", House.rooms),
    "long": (f"files over {LONG} lines", House.long),
    "ladders": ("isinstance over kinds, asserts apart", House.ladders),
    "instances": ("isinstance on other classes than Python's, numpy's, Tensor", House.instances),
    "words": ("comparisons of a kind with a word", House.words),
    "classes": ("class names that occur twice", House.classes),
    "names": ("file names that occur twice", House.names),
    "locals": ("thread-locals", House.locals),
    "searches": ("files outside search/ with `Beam | Sample`", House.searches),
}


def main() -> int:
    """Prints a row for each count, a column for each checkout."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("checkouts", nargs="*", type=Path, default=[REPOSITORY])
    parser.add_argument("--list", choices=[*LISTS, "packages"])
    given = parser.parse_args()
    houses = [House(checkout) for checkout in given.checkouts]
    if given.list == "packages":
        for name, count in houses[-1].leaves().items():
            print(f"{count:6,}  {name}")
        return 0
    if given.list:
        print("\n".join(map(str, LISTS[given.list][1](houses[-1]))))
        return 0
    rows = {
        "lines": [sum(map(house.lines, house.files)) for house in houses],
        "files": [len(house.files) for house in houses],
        "lines of the largest package": [max(house.leaves().values()) for house in houses],
    }
    rows |= {about: [len(of(house)) for house in houses] for about, of in LISTS.values()}
    for about, counts in rows.items():
        print(f"{about:62}" + "".join(f"{count:>9,}" for count in counts))
    RESULTS.mkdir(exist_ok=True)
    record = {"machine": machine(), "rows": {about: counts[-1] for about, counts in rows.items()}}
    (RESULTS / "house.json").write_text(json.dumps(record, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
