"""Attention kernels at equal time: accuracy on nested lists (ListOps) over training speed.

usage: python bench/kernel_quality.py [--minutes 1.5] [--kernels NAME,...] [--seed 1]
           [--results NAME] [--plot FILE.png]
Each cell trains an encoder of 2 layers, width 64, 2 heads, for the same processor time of one core,
on lists of 100 to 250 tokens made by the generator of the built-in data `listops`. The output layer
reads the first position, so the kernel has to carry the arguments there. Each cell has a process of
its own. Memory is the peak of training on top of the process before the first update. Baselines are
the most frequent label, and the most frequent label per outermost operator. Cells are stored in
bench/results/NAME.json as they finish; a second call continues where the first one stopped. The
chart is that of Long Range Arena (Tay et al. 2021, figure 3).
"""

import argparse
import math
import random
import resource
import sys
from itertools import cycle, product
from pathlib import Path
from typing import Any

import torch
from cells import Cell, run_cells, use_processor_clock

from regard.baselines.constant import most_frequent
from regard.config.load import load_config
from regard.core.memory import tune_malloc
from regard.data.reading.read import Pair
from regard.data.sources.listops import ListShape, nested_list
from regard.experiments.crossover.own_process import Limits, call_in_process
from regard.inference.predictor import Predictor
from regard.metrics.label_metrics import measure_labels
from regard.nn.kernels import SEQUENCE_KERNELS
from regard.training.loop import train
from regard.training.start import start_run
from regard.views.figures.style import COLORS, FAINT, INK, new_figure, panels, save, styled

BASELINES = {"constant": lambda text: "", "outermost operator": lambda text: text.split()[0]}
KERNELS = list(SEQUENCE_KERNELS)
SHAPE = ListShape(depth=6, arguments=10, shortest=100, longest=250)
PAIRS, TESTED, BATCH = 20_000, 1_000, 16
SETTINGS: dict[str, dict[str, int]] = {  # of kernels, for these lengths
    "local": {"window": 16},
    "strided": {"stride": 16},
    "block": {"size": 32},
    "longformer": {"window": 16, "tokens": 1},
    "bigbird": {"size": 16, "window": 1, "first": 1, "random": 1},
    "linformer": {"length": 256, "rank": 32},
    "nystrom": {"landmarks": 32},
    "reformer": {"chunk": 32, "rounds": 2},
    "performer": {"features": 64},
    "synthesizer": {"length": 256},
    "topk": {"count": 8},
    "convolution": {"window": 8},
}
MODEL = {"kind": "transformer", "layers": 2, "width": 64, "heads": 2, "feedforward_width": 128}
FIXED = [
    *("task.kind=classify", "task.source.tokenizer=whitespace", "model.pooling=first"),
    *(f"model.encoder.{name}={value}" for name, value in (MODEL | {"dropout": 0.0}).items()),
    *("objective.adversarial=0", "training.epochs=1000", "training.batch_tokens=2500"),
    *("training.lr=2e-3", "training.schedule.warmup=100"),
]
HOURS = 24  # limit of a cell; never reached
POINTS = 100  # of a loss curve
MEGABYTE = 1024  # in the kilobytes of Linux
AREA = 3.0  # points² of a circle per megabyte


def main() -> int:
    """Run the missing cells, print the table, save the plot."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--minutes", type=float, default=1.5, help="training time of a cell")
    parser.add_argument("--kernels", default=",".join(KERNELS))
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--results", default="kernel_quality", help="name in bench/results")
    parser.add_argument("--plot", type=Path, help="PNG to write")
    arguments = parser.parse_args()
    tune_malloc()
    use_processor_clock()
    train_pairs, dev = pairs(PAIRS, "train"), pairs(TESTED, "dev")
    known = {pair.source for pair in train_pairs}
    dev = [pair for pair in dev if pair.source not in known]
    wanted = [
        {"kernel": kernel, "minutes": arguments.minutes, "seed": arguments.seed}
        for kernel in (*BASELINES, *arguments.kernels.split(","))
    ]

    def run(cell: Cell) -> Cell:
        work = baseline if cell["kernel"] in BASELINES else trained
        return call_in_process(work, (cell, train_pairs, dev), Limits(3600 * HOURS, None))

    rows = sorted(run_cells(arguments.results, wanted, run), key=lambda row: -row["accuracy"])
    print("| kernel | steps | examples/s | dev accuracy (95 % interval) | peak memory, MB |")
    print("|---|---|---|---|---|")
    for row in rows:
        low, high = row["interval"]
        speed = f"{row['steps']:,} | {row['speed']:,.0f}" if row["steps"] else "- | -"
        memory = f"{row['peak_mb']:,.0f}" if row["steps"] else "-"
        score = f"{row['accuracy']:.1f} ({low:.1f} to {high:.1f})"
        print(f"| {row['kernel']} | {speed} | {score} | {memory} |")
    if arguments.plot:
        plot(rows, arguments.minutes, arguments.plot)
    return 0


def pairs(count: int, split: str) -> list[Pair]:
    """Return distinct nested lists with their values."""
    generator = random.Random(f"kernel_quality {split}")
    found: dict[str, tuple[str]] = {}
    while len(found) < count:
        text, label = nested_list(generator, SHAPE)
        found[text] = label
    return [Pair(text, label, line) for line, (text, label) in enumerate(found.items(), 1)]


def baseline(cell: Cell, train_pairs: list[Pair], dev: list[Pair]) -> Cell:
    """Score the most frequent label of the lists that look the same to this baseline."""
    seen = BASELINES[cell["kernel"]]
    labels: dict[str, list[str]] = {}
    for pair in train_pairs:
        labels.setdefault(seen(pair.source), []).append(pair.target[0])
    best = {part: (most_frequent(found),) for part, found in labels.items()}
    predicted, expected = [best[seen(pair.source)] for pair in dev], [pair.target for pair in dev]
    found = measure_labels(predicted, expected, False)
    return {
        "steps": 0,
        "accuracy": round(found.scores()["accuracy"], 2),
        "interval": rounded(found.intervals()),
    }


def rounded(intervals: dict[str, tuple[float, float]]) -> list[float]:
    """Return the interval of accuracy."""
    return [round(bound, 2) for bound in intervals["accuracy"]]


def trained(cell: Cell, train_pairs: list[Pair], dev: list[Pair]) -> Cell:
    """Train and score one kernel."""
    torch.set_num_threads(1)
    kernel = {"kind": cell["kernel"]} | SETTINGS.get(cell["kernel"], {})
    settings = [*FIXED, *(f"model.encoder.attention.{k}={v}" for k, v in kernel.items())]
    settings += [f"training.budget={60 * cell['minutes']:g}", f"training.seed={cell['seed']}"]
    job = start_run(Path("unwritten"), load_config(settings=settings), train_pairs, dev)
    before = peak_memory()
    records = list(train(job))
    memory = (peak_memory() - before) / MEGABYTE
    predictor = Predictor.of(job.task, job.config, job.model, job.folder)
    found = predictor.evaluate(job.dev, predictor.search_options(), BATCH)
    return {
        "steps": len(records),
        "speed": round(sum(record.examples for record in records) / records[-1].seconds, 2),
        "peak_mb": round(memory, 1),
        "losses": thinned([record.loss for record in records]),
        "accuracy": round(found.scores["accuracy"], 2),
        "interval": rounded(job.task.intervals(found.predictions, job.dev)),
    }


def peak_memory() -> int:
    """Return the peak memory of this process, in kilobytes (Linux)."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def thinned(losses: list[float]) -> list[float]:
    """Return the mean loss of each of at most `POINTS` equal parts of the training."""
    size = max(1, len(losses) // POINTS)
    parts = [losses[i : i + size] for i in range(0, len(losses), size)]
    return [round(sum(part) / len(part), 4) for part in parts]


def plot(rows: list[Cell], minutes: float, path: Path) -> None:
    """Plot accuracy with its interval over training speed, with memory as the circle area."""
    from matplotlib.ticker import LogLocator

    measured = [row for row in rows if row["steps"]]
    with styled():
        title = f"Attention kernels on nested lists, {minutes:g} minutes of one core each"
        figure = new_figure(8.6, 5.2, title)
        (axes,) = panels(figure, 1, 1)
        axes.set_xscale("log")
        axes.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        axes.xaxis.set_major_formatter("{x:g}")
        axes.minorticks_off()
        for row, color in zip(measured, cycle(COLORS), strict=False):
            speed, accuracy = row["speed"], row["accuracy"]
            axes.plot([speed, speed], row["interval"], color=color, linewidth=1, alpha=0.6)
            axes.scatter(speed, accuracy, AREA * row["peak_mb"], color=color, alpha=0.55)
        for row in (row for row in rows if not row["steps"]):
            axes.axhspan(*row["interval"], color=FAINT, alpha=0.1, linewidth=0)
            axes.axhline(row["accuracy"], color=FAINT, linewidth=1, linestyle="dashed")
            at = axes.get_yaxis_transform()
            axes.text(0.01, row["accuracy"], row["kernel"], transform=at, va="bottom", color=FAINT)
        axes.set_xlabel("training speed, examples/s (circle area: peak memory)")
        axes.set_ylabel("dev accuracy, %")
        axes.margins(x=0.12, y=0.12)
        figure.draw_without_rendering()
        figure.set_layout_engine("none")  # the labels must not move the axes
        label(axes, measured)
        save(figure, path)


def label(axes: Any, rows: list[Cell]) -> None:
    """Write each name next to its circle, or further away with a line if it would overlap."""
    scale = 72 / axes.figure.dpi  # all lengths are in points
    edge = axes.bbox.x1 * scale
    taken: list[tuple[float, float, float, float]] = []  # left, bottom, right, top
    places = []
    for row in rows:
        x, y = scale * axes.transData.transform((row["speed"], row["accuracy"]))
        radius = math.sqrt(AREA * row["peak_mb"] / math.pi)
        places.append((row, x, y, radius))
        taken.append((x - radius, y - radius, x + radius, y + radius))
    for row, x, y, radius in places:
        width, half = 4.8 * len(row["kernel"]), 5.0
        for step, side in product(range(40), (1, -1, 0)):  # right, left, above or below
            up = half * ((step + 1) // 2) * (-1) ** step
            left = x + side * (radius + 3) - (width if side < 0 else 0 if side else width / 2)
            box = (left, y + up - half, left + width, y + up + half)
            if box[2] < edge and not any(overlap(box, other) for other in taken):
                break
        taken.append(box)
        axes.annotate(
            row["kernel"],
            (row["speed"], row["accuracy"]),
            xytext=(left - x, up),
            textcoords="offset points",
            arrowprops={"arrowstyle": "-", "color": FAINT, "linewidth": 0.5} if step > 4 else None,
            **{"va": "center", "fontsize": 8, "color": INK},
        )


def overlap(one: tuple[float, ...], other: tuple[float, ...]) -> bool:
    """Return whether two boxes overlap."""
    return all(one[i] < other[i + 2] and other[i] < one[i + 2] for i in (0, 1))


if __name__ == "__main__":
    torch.set_num_threads(1)
    sys.exit(main())
