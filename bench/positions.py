"""Positional encodings beyond the training length: `copy` and `reverse`, trained to length 40.

usage: python bench/positions.py [--minutes 3] [--tasks copy,reverse] [--kinds NAME,...]
           [--seed 1] [--results NAME] [--plot FILE.png]
Each cell trains a small Transformer on random letters, of length 1 to 40, with one encoding on both
sides, and tests it at lengths 10 to 160. Cells are stored in bench/results/NAME.json as they
finish; a second call continues where the first one stopped. Time is processor time of one core.
Token accuracy is 100 minus the symbol error rate, at least 0.
"""

import argparse
import random
import string
import sys
from pathlib import Path

import torch
from cells import Cell, run_cells, use_processor_clock

from regard.config.load import load_config
from regard.core.memory import tune_malloc
from regard.core.options import kinds_of
from regard.data.reading.read import Example, Pair
from regard.inference.predictor import Predictor
from regard.nn.positions import Positions
from regard.search import Beam
from regard.training.loop import train
from regard.training.start import start_run
from regard.views.figures.style import COLORS, new_figure, panels, save, styled

KINDS = list(kinds_of(Positions))
TASKS = {"copy": str, "reverse": lambda text: text[::-1]}
TRAINED, LENGTHS = 40, (10, 20, 30, 40, 50, 60, 80, 100, 120, 160)
PAIRS, TESTED = 100_000, 64
SIZES = {"kind": "transformer", "layers": 2, "width": 128, "heads": 4, "dropout": 0.0}


def main() -> int:
    """Runs the cells that are missing, prints the table, saves the plot."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=float, default=3.0, help="training time of a cell")
    parser.add_argument("--tasks", default=",".join(TASKS))
    parser.add_argument("--kinds", default=",".join(KINDS))
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--results", default="positions", help="name of the file in bench/results")
    parser.add_argument("--plot", type=Path, help="PNG to write")
    arguments = parser.parse_args()
    tune_malloc()
    use_processor_clock()
    wanted = [
        {"task": task, "kind": kind, "minutes": arguments.minutes, "seed": arguments.seed}
        for task in arguments.tasks.split(",")
        for kind in arguments.kinds.split(",")
    ]
    rows = run_cells(arguments.results, wanted, run)
    print("| task | positions | steps | " + " | ".join(map(str, LENGTHS)) + " |")
    print("|---" * (3 + len(LENGTHS)) + "|")
    for row in rows:
        scores = " | ".join(f"{row['exact'][str(length)]:.0f}" for length in LENGTHS)
        print(f"| {row['task']} | {row['kind']} | {row['steps']:,} | {scores} |")
    if arguments.plot:
        plot(rows, arguments.plot)
    return 0


def pairs(task: str, count: int, low: int, high: int, seed: int) -> list[Pair]:
    """Random texts of these lengths, with their targets."""
    chance = random.Random(f"{task} {low} {high} {seed}")
    texts = (
        "".join(chance.choices(string.ascii_lowercase, k=chance.randint(low, high)))
        for _ in range(count)
    )
    return [Pair(text, TASKS[task](text), line) for line, text in enumerate(texts, 1)]


def run(cell: Cell) -> Cell:
    """Trains and tests one cell."""
    settings = [
        f"model.{side}.{name}={value}"
        for side in ("encoder", "decoder")
        for name, value in (SIZES | {"positions.kind": cell["kind"]}).items()
    ]
    settings += [f"training.budget={60 * cell['minutes']:g}", f"training.seed={cell['seed']}"]
    settings += ["task.source.tokenizer=char", "task.target.tokenizer=char"]
    training = pairs(cell["task"], PAIRS, 1, TRAINED, cell["seed"])
    dev = pairs(cell["task"], TESTED, TRAINED, TRAINED, 0)
    job = start_run(Path("unwritten"), load_config(settings=settings), training, dev)
    losses = [record.loss for record in train(job)]
    predictor = Predictor.of(job.task, job.config, job.model, job.folder)
    exact, tokens = {}, {}
    for length in LENGTHS:
        found = pairs(cell["task"], TESTED, length, length, 0)
        tested = [Example(pair.source, (pair.target,)) for pair in found]
        scores = predictor.evaluate(tested, Beam(beam=1, max_length=200), TESTED).scores
        exact[str(length)] = scores["exact_match"]
        tokens[str(length)] = max(0.0, 100 - scores["ser"])
    return {"steps": len(losses), "loss": losses[-1], "exact": exact, "tokens": tokens}


def plot(rows: list[Cell], path: Path) -> None:
    """Token accuracy by length, a panel for each task."""
    tasks = list(dict.fromkeys(row["task"] for row in rows))
    with styled():
        figure = new_figure(4.6 * len(tasks) + 1, 3.8, f"Trained up to length {TRAINED}")
        for axes, task in zip(panels(figure, 1, len(tasks), sharey=True), tasks, strict=True):
            axes.axvspan(0, TRAINED, color="#00000008")
            for row in (row for row in rows if row["task"] == task):
                color = COLORS[KINDS.index(row["kind"]) % len(COLORS)]
                values = [row["tokens"][str(length)] for length in LENGTHS]
                axes.plot(LENGTHS, values, "o-", markersize=3, color=color, label=row["kind"])
            axes.set_title(task)
            axes.set_xlabel("length")
        figure.axes[0].set_ylabel("token accuracy, %")
        figure.axes[-1].legend(loc="upper left", bbox_to_anchor=(1.0, 1.0))
        save(figure, path)


if __name__ == "__main__":
    torch.set_num_threads(1)
    sys.exit(main())
