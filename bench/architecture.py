"""The layers of regard, drawn from the import graph.

usage: python bench/architecture.py [--out docs/architecture.png]
A row for each room with its lines of code, in the order of the layers contract in pyproject.toml,
which `make lint` checks; in its columns how many imports it makes from each other room. All are to
the right of the diagonal; the script ends with 1 if one goes upwards.
"""

import argparse
import sys
from collections import Counter
from pathlib import Path

if sys.version_info >= (3, 11):
    import tomllib

import grimp
import numpy as np
from matplotlib.colors import LinearSegmentedColormap
from surroundings import REPOSITORY

from regard.views.figures.style import (
    COLORS,
    FAINT,
    GRID,
    INK,
    PAPER,
    hide_frame,
    new_figure,
    save,
    styled,
)

WHAT = {
    "cli": "a file a command: parsing and printing",
    "serve": "HTTP, the queue, the web UI",
    "estimators": "fit, predict, save: Python",
    "experiments": "training jobs, diagnosis",
    "exchange": "export, import, engines by name",
    "training": "the loop, checkpoints, resume",
    "views": "reports, inspection, plots",
    "inference": "Predictor and engines",
    "storage": "run folders",
    "config": "settings and their defaults",
    "tasks": "requests, predictions, metrics",
    "baselines": "trivial models to compare with",
    "optim": "optimizers, schedules",
    "objectives": "losses: a sum and a count",
    "models": "encoders, decoders, heads",
    "search": "beam, sampling, decisions",
    "inputs": "what is read, and its frontend",
    "nn": "attention, norms, cells",
    "data": "reading, vocabularies, batches",
    "metrics": "BLEU, F1, error rates",
    "core": "options, errors, threads",
}


def layers() -> list[list[str]]:
    """The rooms from the top, those of one layer together."""
    settings = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())
    contract = settings["tool"]["importlinter"]["contracts"][0]
    return [layer.split(" | ") for layer in contract["layers"]]


def imports() -> Counter[tuple[str, str]]:
    """How many imports go from room to room."""
    graph = grimp.build_graph("regard", cache_dir=None)
    count: Counter[tuple[str, str]] = Counter()
    for module in graph.modules:
        for other in graph.find_modules_directly_imported_by(module):
            rooms = [name.split(".")[1] for name in (module, other) if name.count(".")]
            if len(rooms) == 2 and rooms[0] != rooms[1] and "__main__" not in rooms:
                count[rooms[0], rooms[1]] += 1
    return count


def lines(room: str) -> int:
    """Lines of Python of a room."""
    files = (REPOSITORY / "src" / "regard" / room).rglob("*.py")
    return sum(len(path.read_text().splitlines()) for path in files)


def draw(out: Path) -> int:
    """Write the figure; return the number of imports that go upwards."""
    rows, count = layers(), imports()
    level = {room: n for n, row in enumerate(rows) for room in row}
    rooms = list(level)
    upwards = sum(number for (a, b), number in count.items() if level[a] >= level[b])
    table = [[count[a, b] or None for b in rooms] for a in rooms]
    total = sum(map(lines, rooms))
    with styled():
        figure = new_figure(
            8.8, 6.4, f"Imports go down only: {total:,} lines in {len(rooms)} rooms"
        )
        axes = figure.subplots()
        hide_frame(axes)
        shades = [[np.nan if n is None else np.log1p(n) for n in row] for row in table]
        axes.imshow(shades, cmap=LinearSegmentedColormap.from_list("", (GRID, COLORS[0])))
        for y, row in enumerate(table):
            for x, number in enumerate(row):
                if number is not None:
                    color = PAPER if number > 6 else INK
                    axes.text(x, y, str(number), ha="center", va="center", size=7.5, color=color)
        axes.plot([-0.5, len(rooms) - 0.5], [-0.5, len(rooms) - 0.5], color=FAINT, lw=0.8)
        names = [f"{WHAT[room]}   $\\bf{{{room}}}$ {lines(room):>5,}" for room in rooms]
        axes.set_yticks(range(len(rooms)), names, color=INK)
        axes.set_xticks(range(len(rooms)), rooms, rotation=60, ha="left", rotation_mode="anchor")
        axes.xaxis.tick_top()
        axes.set_xlabel("each row: how many imports its files make from the rooms below it")
        save(figure, out)
    return upwards


def main() -> int:
    """Draws, and says how many imports go upwards."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=REPOSITORY / "docs" / "architecture.png")
    upwards = draw(parser.parse_args().out)
    print(f"imports that go upwards: {upwards}")
    return 1 if upwards else 0


if __name__ == "__main__":
    sys.exit(main())
