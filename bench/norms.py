"""Norms on Multi30k: pre-norm and post-norm with and without warmup; layer, batch and PowerNorm.

usage: python bench/norms.py [--minutes 12] [--only NAME,...] [--seed 1] [--plot FILE.png]
Each cell trains English to German for the same time: 6 + 6 layers of width 256 for the position of
norms, the default size for the kind of norm. It scores the validation set. Cells are stored in
bench/results/norms.json as they finish; a second call continues where the first one stopped.
"""

import argparse
import math
import sys
from pathlib import Path

import torch
from cells import Cell, run_cells
from surroundings import folder

from regard.config.load import load_config
from regard.core.errors import UserError
from regard.core.memory import tune_malloc
from regard.data.sources.open import DataSpec
from regard.inference.predictor import Predictor
from regard.search import Beam
from regard.training.loop import train
from regard.training.start import start_run
from regard.views.figures.style import COLORS, new_figure, panels, save, styled

DEEP = {"layers": 6, "width": 256, "heads": 4, "feedforward_width": 1024}
NO_WARMUP = ["training.schedule.warmup=0"]
WARMUP = ["training.schedule.warmup=400"]
POINTS = 100  # of a loss curve


def both(**settings: object) -> list[str]:
    """Settings of the encoder and of the decoder."""
    named = {"kind": "transformer"} | settings
    return [f"model.{side}.{k}={v}" for side in ("encoder", "decoder") for k, v in named.items()]


CELLS = {
    "pre": [*both(norm_position="pre", **DEEP), *WARMUP],
    "pre, no warmup": [*both(norm_position="pre", **DEEP), *NO_WARMUP],
    "post": [*both(norm_position="post", **DEEP), *WARMUP],
    "post, no warmup": [*both(norm_position="post", **DEEP), *NO_WARMUP],
    "layer": both(norm="layer"),
    "batch": both(norm="batch"),
    "power": both(norm="power"),
}
PANELS = {"6 + 6 layers": list(CELLS)[:4], "kind of norm": list(CELLS)[4:]}


def main() -> int:
    """Runs the cells that are missing, prints the table, saves the plot."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=float, default=12.0, help="training time of a cell")
    parser.add_argument("--only", default=",".join(name.replace(", ", "+") for name in CELLS))
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--plot", type=Path, help="PNG to write")
    arguments = parser.parse_args()
    if folder("REGARD_DATA", "../shared/data") is None:
        return 1
    tune_malloc()
    names = [name.replace("+", ", ") for name in arguments.only.split(",")]
    rows = run_cells(
        "norms",
        [{"cell": n, "minutes": arguments.minutes, "seed": arguments.seed} for n in names],
        run,
    )
    print("| cell | steps | dev loss | dev BLEU | |\n|---|---|---|---|---|")
    for row in rows:
        scores = f"{row['dev_loss']:.3f} | {row['bleu']:.1f}" if "bleu" in row else "- | -"
        print(f"| {row['cell']} | {row['steps']:,} | {scores} | {row.get('failed', '')} |")
    if arguments.plot:
        plot(rows, arguments.plot)
    return 0


def run(cell: Cell) -> Cell:
    """Trains and scores one cell. Training that diverges is a result too."""
    data = folder("REGARD_DATA", "../shared/data")
    assert data is not None
    settings = [*CELLS[cell["cell"]], "training.optimizer.kind=adamw", "training.lr=1e-3"]
    settings += [f"training.budget={60 * cell['minutes']:g}", f"training.seed={cell['seed']}"]
    config = load_config(settings=settings)
    sides = [
        DataSpec(
            source=str(data / f"multi30k/{split}.en.gz"),
            target=str(data / f"multi30k/{split}.de.gz"),
        )
        for split in ("train", "val")
    ]
    found = config.task.open(*sides)
    job = start_run(Path("unwritten"), config, found.train, found.dev)
    losses: list[float] = []
    try:
        losses += (record.parts.get("nll", record.loss) for record in train(job))
    except UserError as error:
        return {"steps": len(losses), "losses": thinned(losses), "failed": str(error)}
    predictor = Predictor.of(job.task, job.config, job.model, job.folder)
    scores = predictor.evaluate(job.dev, Beam(beam=1), 128).scores
    dev_loss = math.log(scores["perplexity"])
    return {
        "steps": len(losses),
        "losses": thinned(losses),
        "dev_loss": dev_loss,
        "bleu": scores["bleu"],
    }


def thinned(losses: list[float]) -> list[float]:
    """The mean loss of each of at most `POINTS` equal parts of the training."""
    size = max(1, len(losses) // POINTS)
    parts = [losses[i : i + size] for i in range(0, len(losses), size)]
    return [round(sum(part) / len(part), 4) for part in parts]


def plot(rows: list[Cell], path: Path) -> None:
    """Training loss over the fraction of the run."""
    known = {row["cell"]: row for row in rows}
    shown = {title: [n for n in names if n in known] for title, names in PANELS.items()}
    shown = {title: names for title, names in shown.items() if names}
    with styled():
        figure = new_figure(4.8 * len(shown), 3.6, "Training loss on Multi30k at equal time")
        for axes, (title, names) in zip(panels(figure, 1, len(shown)), shown.items(), strict=True):
            for name, color in zip(names, COLORS, strict=False):
                values = known[name]["losses"]
                axes.plot(
                    [i / len(values) for i in range(len(values))], values, color=color, label=name
                )
            axes.set_title(title)
            axes.set_xlabel("fraction of the run")
            axes.legend()
        save(figure, path)


if __name__ == "__main__":
    torch.set_num_threads(2)
    sys.exit(main())
