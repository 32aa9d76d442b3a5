"""Parts of a Transformer on Multi30k at equal time: positional encodings, norms, their position.

usage: python bench/parts.py [--groups positions,norm,norm-position] [--minutes 12] [--seed 1]
           [--results NAME] [--plot PREFIX]
Each cell trains English to German for the same processor time of one core, so that other work on
the machine does not change the outcome: the default size for positions and kinds of norm, 6 + 6
layers of width 256 for the position of norms. It scores the validation set by greedy search, with
95 % bootstrap intervals. Cells are stored in bench/results/NAME.json as they finish; a second call
continues where the first one stopped.
"""

import argparse
import math
import sys
from itertools import cycle
from pathlib import Path

import torch
from cells import Cell, run_cells, use_processor_clock
from surroundings import folder

from regard.config.load import load_config
from regard.core.errors import UserError
from regard.core.memory import tune_malloc
from regard.core.options import kinds_of
from regard.data.sources.open import DataSpec
from regard.inference.predictor import Predictor
from regard.nn.positions import Positions
from regard.search import Beam
from regard.training.loop import train
from regard.training.start import start_run
from regard.views.figures.style import COLORS, new_figure, panels, save, styled

DEEP = {"layers": 6, "width": 256, "heads": 4, "feedforward_width": 1024}
NO_WARMUP = ["training.schedule.warmup=0"]
WARMUP = ["training.schedule.warmup=400"]
OPTIMIZER = ["training.optimizer.kind=adamw", "training.lr=1e-3"]
POINTS = 100  # of a loss curve


def both(**settings: object) -> list[str]:
    """Settings of the encoder and of the decoder."""
    named = {"kind": "transformer"} | settings
    return [f"model.{side}.{k}={v}" for side in ("encoder", "decoder") for k, v in named.items()]


# The same model by two names: it is trained once.
SAME = {("norm", "layer"): ("positions", "sinusoidal")}
GROUPS = {
    "positions": {kind: both(**{"positions.kind": kind}) for kind in kinds_of(Positions)},
    "norm": {norm: both(norm=norm) for norm in ("layer", "batch", "power")},
    "norm-position": {
        "pre": [*both(norm_position="pre", **DEEP), *WARMUP],
        "pre, no warmup": [*both(norm_position="pre", **DEEP), *NO_WARMUP],
        "post": [*both(norm_position="post", **DEEP), *WARMUP],
        "post, no warmup": [*both(norm_position="post", **DEEP), *NO_WARMUP],
    },
}


def main() -> int:
    """Runs the cells that are missing, prints the table, saves the plot."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=float, default=12.0, help="training time of a cell")
    parser.add_argument("--groups", default=",".join(GROUPS))
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--results", default="parts", help="name of the file in bench/results")
    parser.add_argument("--plot", help="prefix of the PNG files to write, one per group")
    arguments = parser.parse_args()
    if folder("REGARD_DATA", "../shared/data") is None:
        return 1
    tune_malloc()
    use_processor_clock()
    asked = [(group, name) for group in arguments.groups.split(",") for name in GROUPS[group]]
    sizes = {"minutes": arguments.minutes, "seed": arguments.seed}
    trained = [SAME.get(one, one) for one in asked]
    wanted = [{"group": group, "cell": name} | sizes for group, name in trained]
    found = run_cells(arguments.results, wanted, run)
    rows = [
        row | {"group": group, "cell": name}
        for (group, name), row in zip(asked, found, strict=True)
    ]
    print("| | | steps | dev loss | dev BLEU (95 % interval) |\n|---|---|---|---|---|")
    for row in rows:
        low, high = row.get("interval", (0, 0))
        scored = f"{row['dev_loss']:.3f} | {row['bleu']:.1f} ({low:.1f} to {high:.1f})"
        scores = scored if "bleu" in row else f"- | {row['failed']}"
        print(f"| {row['group']} | {row['cell']} | {row['steps']:,} | {scores} |")
    if arguments.plot:
        for group in arguments.groups.split(","):
            chosen = [row for row in rows if row["group"] == group]
            plot(group, chosen, Path(f"{arguments.plot}-{group}.png"))
    return 0


def run(cell: Cell) -> Cell:
    """Trains and scores one cell. Training that diverges is a result too."""
    data = folder("REGARD_DATA", "../shared/data")
    assert data is not None
    settings = [*GROUPS[cell["group"]][cell["cell"]], *OPTIMIZER]
    settings += [f"training.budget={60 * cell['minutes']:g}", f"training.seed={cell['seed']}"]
    config = load_config(settings=settings)
    sides = [
        DataSpec(
            source=str(data / f"multi30k/{split}.en.gz"),
            target=str(data / f"multi30k/{split}.de.gz"),
        )
        for split in ("train", "val")
    ]
    data_sets = config.task.open(*sides)
    job = start_run(Path("unwritten"), config, data_sets.train, data_sets.dev)
    losses: list[float] = []
    try:
        losses += (record.parts.get("nll", record.loss) for record in train(job))
    except UserError as error:
        return {"steps": len(losses), "losses": thinned(losses), "failed": str(error)}
    predictor = Predictor.of(job.task, job.config, job.model, job.folder)
    found = predictor.evaluate(job.dev, Beam(beam=1), 128)
    return {
        "steps": len(losses),
        "losses": thinned(losses),
        "dev_loss": math.log(found.scores["perplexity"]),
        "bleu": found.scores["bleu"],
        "interval": job.task.intervals(found.predictions, job.dev)["bleu"],
    }


def thinned(losses: list[float]) -> list[float]:
    """The mean loss of each of at most `POINTS` equal parts of the training."""
    size = max(1, len(losses) // POINTS)
    parts = [losses[i : i + size] for i in range(0, len(losses), size)]
    return [round(sum(part) / len(part), 4) for part in parts]


def plot(group: str, rows: list[Cell], path: Path) -> None:
    """Training loss over the fraction of the run, and dev BLEU with its interval."""
    with styled():
        figure = new_figure(9.6, 3.6, f"Multi30k at equal time: {group}")
        curves, bars = panels(figure, 1, 2)
        for index, (row, color) in enumerate(zip(rows, cycle(COLORS), strict=False)):
            losses = row["losses"]
            shares = [i / len(losses) for i in range(len(losses))]
            curves.plot(shares, losses, color=color, label=row["cell"])
            if "bleu" in row:
                low, high = row["interval"]
                around = [[row["bleu"] - low], [high - row["bleu"]]]
                bars.barh(index, row["bleu"], color=color, xerr=around)
        curves.set_xlabel("fraction of the run")
        curves.set_ylabel("training loss")
        bars.set_yticks(range(len(rows)), [row["cell"] for row in rows])
        bars.invert_yaxis()
        bars.set_xlabel("dev BLEU")
        save(figure, path)


if __name__ == "__main__":
    torch.set_num_threads(1)
    sys.exit(main())
