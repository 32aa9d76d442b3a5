"""Exposure bias on CMUdict: what follows a first error, with and without scheduled sampling.

usage: python bench/exposure.py [--minutes 10] [--seeds 1,2,3] [--examples N] [--objectives ...]
           [--results NAME] [--plot FILE]
Each cell trains an LSTM for the same processor time of one core, with teacher forcing or with
scheduled sampling, and scores the complete dev set. Then it reads the true tokens of each dev
example up to a position, one wrong token there (the most probable one), and continues in two ways:
with true tokens (forced) or with its own predictions (free). The error rate at each distance from
that position is compared with that of a continuation without the wrong token. Cells are stored in
bench/results/NAME.json as they finish.
"""

import argparse
import random
import statistics
import sys
from pathlib import Path

import numpy as np
import torch
from cells import Cell, run_cells, use_processor_clock
from sequence_training import difference, read
from surroundings import folder
from torch import Tensor

from regard.core.memory import tune_malloc
from regard.data.reading.read import Pair
from regard.data.tensors.padded import Batch
from regard.data.tensors.special import BOS, EOS
from regard.inference.predictor import Predictor
from regard.search import Beam
from regard.search.logit_masks import mask_specials
from regard.training.loop import train
from regard.training.run import Run
from regard.training.start import start_run
from regard.views.figures.style import COLORS, new_figure, panels, save, styled

OBJECTIVES = {
    "cross_entropy": ["objective.kind=cross_entropy"],
    "scheduled": ["objective.kind=scheduled"],
    "scheduled, 0.75": ["objective.kind=scheduled", "objective.decay.final=0.75"],
    "scheduled, half": ["objective.kind=scheduled", "objective.decay.final=0.5"],
    "scheduled, two passes": ["objective.kind=scheduled", "objective.passes=2"],
    "scheduled, argmax": ["objective.kind=scheduled", "objective.mix=argmax"],
}
DISTANCES = 5
SHORTEST = DISTANCES + 2  # tokens with EOS of an example that can show what follows an error
BATCH = 256


def main() -> int:
    """Runs the cells that are missing, prints two tables, saves the plot."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=float, default=10.0, help="training time of a cell")
    parser.add_argument("--seeds", default="1,2,3")
    parser.add_argument("--examples", type=int, help="train on a sample of the training set")
    parser.add_argument("--objectives", default="cross_entropy;scheduled", help="separated by ;")
    parser.add_argument("--results", default="exposure")
    parser.add_argument("--plot", type=Path, help="PNG file to write")
    arguments = parser.parse_args()
    if folder("REGARD_DATA", "../shared/data") is None:
        return 1
    tune_malloc()
    use_processor_clock()
    shared = {"minutes": arguments.minutes, "examples": arguments.examples}
    names = arguments.objectives.split(";")
    cells = [
        {"objective": name, "seed": int(seed), **shared}
        for seed in arguments.seeds.split(",")
        for name in names
    ]
    rows = run_cells(arguments.results, cells, run)
    print("| objective | exact match, beam 5 | beam 1 | difference (95 %) |\n|---|---|---|---|")
    for name in names:
        mine = [row for row in rows if row["objective"] == name]
        scores = [statistics.mean(row[key] for row in mine) for key in ("beam 5", "beam 1")]
        gap = difference(rows, name, names[0])
        print(f"| {name} | {scores[0]:.2f} | {scores[1]:.2f} | {gap} |")
    heads = " | ".join(f"+{distance}" for distance in range(1, DISTANCES + 1))
    print(f"\n| objective | continuation | {heads} |\n|---|---|{'---|' * DISTANCES}")
    for name in names:
        for kind, rates in mean_rates(rows, name).items():
            print(f"| {name} | {kind} | {' | '.join(f'{100 * rate:.1f}' for rate in rates)} |")
    if arguments.plot:
        plot(rows, names, arguments.plot)
    return 0


def run(cell: Cell) -> Cell:
    """Trains and measures one cell."""
    settings = [*OBJECTIVES[cell["objective"]], f"training.budget={60 * cell['minutes']:g}"]
    config, pairs, dev = read([*settings, f"training.seed={cell['seed']}"], cell["examples"])
    job = start_run(Path("unwritten"), config, pairs, dev)
    steps = sum(1 for _ in train(job))
    predictor = Predictor.of(job.task, job.config, job.model, job.folder)
    found: Cell = {"steps": steps}
    for beam in (1, 5):
        search = Beam(beam=beam, stopping="optimal")
        found[f"beam {beam}"] = predictor.evaluate(job.dev, search, 128).scores["exact_match"]
    return found | {"rates": error_rates(job)}


@torch.inference_mode()
def error_rates(run: Run) -> dict[str, list[float]]:
    """Error rates at each distance from a position, per kind of continuation."""
    run.model.eval()
    pairs = [Pair(one.source, one.references[0], 0) for one in run.dev]
    corpus = run.task.corpus(pairs)
    long = np.flatnonzero(corpus.lengths[:, 1] >= SHORTEST)
    print(f"{len(long):,} of {len(pairs):,} dev sources are long enough", file=sys.stderr)
    generator = random.Random(0)
    last = corpus.lengths[long, 1] - SHORTEST + 1
    at = torch.tensor([generator.randint(1, int(n)) for n in last])
    kinds = {
        f"{how}, {what}": (how == "free", what == "after an error")
        for what in ("without an error", "after an error")
        for how in ("forced", "free")
    }
    errors: dict[str, list[Tensor]] = {kind: [] for kind in kinds}
    for start in range(0, len(long), BATCH):
        some = slice(start, start + BATCH)
        batch = corpus.batch(long[some])
        for kind, (free, wrong) in kinds.items():
            errors[kind].append(continued(run, batch, at[some], free, wrong))
    return {kind: torch.cat(rows).double().mean(0).tolist() for kind, rows in errors.items()}


def continued(run: Run, batch: Batch, at: Tensor, free: bool, wrong: bool) -> Tensor:
    """Whether each prediction (B, DISTANCES) after position `at` (B,) is an error.

    free: the model reads its own predictions from `at` on. wrong: it reads a wrong token at `at`.
    """
    true, rows = batch.target.data, torch.arange(batch.rows)
    state, last, predicted = run.model.start(batch.source), torch.full_like(true[:, :1], BOS), []
    for t in range(true.shape[1]):
        logits, state = run.model.step(last, state)
        scores = logits[:, 0].clone()
        mask_specials(scores)
        own = scores.argmax(-1)
        predicted.append(own)
        read = torch.where(at <= t, own, true[:, t]) if free else true[:, t].clone()
        if wrong:
            scores[rows, true[:, t]] = float("-inf")
            scores[:, EOS] = float("-inf")
            read = torch.where(at == t, scores.argmax(-1), read)
        last = read[:, None]
    errors = torch.stack(predicted, 1) != true
    return torch.stack([errors[rows, at + n] for n in range(1, DISTANCES + 1)], 1)


def mean_rates(rows: list[Cell], name: str) -> dict[str, list[float]]:
    """Error rates of an objective, mean over seeds."""
    mine = [row["rates"] for row in rows if row["objective"] == name]
    return {kind: np.mean([one[kind] for one in mine], 0).tolist() for kind in mine[0]}


def plot(rows: list[Cell], names: list[str], path: Path) -> None:
    """Error rates over the distance, a panel per kind of continuation."""
    distances = list(range(1, DISTANCES + 1))
    with styled():
        figure = new_figure(8.4, 3.4, "Errors after one wrong token (CMUdict)")
        both = panels(figure, 1, 2, sharey=True)
        titles = ("it reads true tokens again", "it reads its own predictions")
        for axes, how, title in zip(both, ("forced", "free"), titles, strict=True):
            for name, color in zip(names, COLORS, strict=False):
                rates = mean_rates(rows, name)
                after, without = (
                    [100 * rate for rate in rates[f"{how}, {what}"]]
                    for what in ("after an error", "without an error")
                )
                axes.plot(distances, after, color=color, marker="o", label=name)
                axes.plot(distances, without, color=color, linestyle=":", marker=".")
            axes.set_title(title)
            axes.set_xlabel("tokens after the wrong one (dotted: without it)")
            axes.set_xticks(distances)
        both[0].set_ylabel("wrong predictions, %")
        both[0].legend()
        save(figure, path)


if __name__ == "__main__":
    torch.set_num_threads(1)
    sys.exit(main())
