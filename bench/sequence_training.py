"""Training on exact match against equal further minutes of cross entropy, on CMUdict.

usage: python bench/sequence_training.py [--objectives cross_entropy,risk,reinforce] [--seeds 1,2,3]
           [--base 30] [--minutes 10] [--width N] [--set KEY=VALUE]... [--results NAME]
           [--work FOLDER]
An LSTM trains with cross entropy once, for `base` minutes of processor time of one core. Each cell
continues from it, with one objective and one seed, for the same further minutes; cross entropy
continues at the same reduced learning rate as the others, and at the usual one. It scores the
complete dev set with beam 5. Cells are stored in bench/results/NAME.json as they finish.
"""

import argparse
import statistics
import sys
from pathlib import Path

import torch
from cells import Cell, run_cells, use_processor_clock
from surroundings import folder

from regard.config.load import Config, load_config
from regard.core.memory import tune_malloc
from regard.data.reading.read import Pair
from regard.data.sources.open import DataSpec
from regard.inference.predictor import Predictor
from regard.search import Beam
from regard.storage.run_files import read_config
from regard.training.describe import describe
from regard.training.log import Display
from regard.training.loop import train
from regard.training.session import train_run
from regard.training.start import start_run
from regard.training.transfer import read_pretrained

OBJECTIVES = {
    "cross_entropy": ["objective.kind=cross_entropy", "training.lr=4e-4"],
    "cross_entropy, usual lr": ["objective.kind=cross_entropy"],
    "risk": ["objective.kind=risk"],
    "risk, n-best": ["objective.kind=risk", "objective.candidates=nbest"],
    "reinforce": ["objective.kind=reinforce"],
    "self-critical": ["objective.kind=reinforce", "objective.baseline=greedy"],
    "mixer": ["objective.kind=mixer"],
}
TOKENS = ["task.source.tokenizer=char", "task.target.tokenizer=whitespace"]
COMMON = [*TOKENS, "task.metric=exact_match", "training.precision=float32"]
T_QUANTILES = {1: 12.71, 2: 4.303, 3: 3.182, 4: 2.776}  # 97.5 %, by degrees of freedom


def main() -> int:
    """Runs the cells that are missing, prints scores and differences from cross entropy."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--objectives", default="cross_entropy,cross_entropy, usual lr,risk,reinforce"
    )
    parser.add_argument("--seeds", default="1,2,3")
    parser.add_argument("--base", type=float, default=30.0, help="minutes of the first training")
    parser.add_argument("--minutes", type=float, default=10.0, help="further minutes of a cell")
    parser.add_argument("--examples", type=int, help="train on a sample of the training set")
    parser.add_argument("--set", action="append", default=[], help="setting of all cells")
    parser.add_argument("--width", type=int, help="of the LSTM; default: derived from the data")
    parser.add_argument("--results", default="sequence_training")
    parser.add_argument("--work", default="/tmp/regard-sequence-training", type=Path)
    arguments = parser.parse_args()
    if folder("REGARD_DATA", "../shared/data") is None:
        return 1
    tune_malloc()
    use_processor_clock()
    sizes = [f"-{n}" for n in (arguments.width, arguments.examples) if n]
    name = f"base-{arguments.base:g}{''.join(sizes)}"
    base = train_base(arguments.work / name, arguments.base, arguments.width, arguments.examples)
    names = [name for name in OBJECTIVES if name in split_names(arguments.objectives)]
    cells = [
        {
            "objective": name,
            "seed": seed,
            "base": arguments.base,
            "minutes": arguments.minutes,
            "width": arguments.width,
            "examples": arguments.examples,
            "settings": " ".join(arguments.set),
        }
        for seed in map(int, arguments.seeds.split(","))
        for name in names
    ]
    rows = run_cells(arguments.results, cells, lambda cell: run(cell, base))
    print_table(rows, names)
    return 0


def split_names(text: str) -> list[str]:
    """The objectives in a list separated by commas, which some names contain too."""
    longest_first = sorted(OBJECTIVES, key=len, reverse=True)
    found = []
    while text:
        name = next((name for name in longest_first if text.startswith(name)), None)
        if name is None:
            raise SystemExit(f"unknown objective: {text}; available: {', '.join(OBJECTIVES)}")
        found.append(name)
        text = text[len(name) :].lstrip(",")
    return found


def read(settings: list[str], examples: int | None) -> tuple[Config, list[Pair], list[Pair]]:
    """Configuration, training data and dev data. Every seed has the same sample of the data."""
    data = folder("REGARD_DATA", "../shared/data")
    assert data is not None
    if examples:
        settings = [*settings, f"task.examples={examples}"]
    config = load_config(settings=[*COMMON, *settings])
    files = [str(data / f"cmudict_g2p/{part}.tsv.gz") for part in ("train", "dev")]
    both = config.task.open(*(DataSpec(name) for name in files))
    train, _ = config.task.sample(both.train, 1)
    return config, train, both.dev


def model(width: int | None) -> list[str]:
    """Settings of an LSTM of this width."""
    return [f"model.{side}.width={width}" for side in ("encoder", "decoder")] if width else []


def train_base(path: Path, minutes: float, width: int | None, examples: int | None) -> Path:
    """The run folder of the model that all cells continue."""
    if (path / "scores.json").exists():
        return path
    config, pairs, dev = read([f"training.budget={60 * minutes:g}", *model(width)], examples)
    run = start_run(path, config, pairs, dev)
    describe(run, {})
    train_run(run, Display())
    return path


def run(cell: Cell, base: Path) -> Cell:
    """Continues one model and scores it."""
    settings = [*OBJECTIVES[cell["objective"]], *model(cell["width"]), *cell["settings"].split()]
    settings += [f"training.budget={60 * cell['minutes']:g}", f"training.seed={cell['seed']}"]
    config, pairs, dev = read(settings, cell["examples"])
    pretrained = read_pretrained(base, read_config(base))
    job = start_run(Path("unwritten"), config, pairs, dev, pretrained)
    rewards, steps, words = [], 0, 0
    for record in train(job):
        rewards.append(record.parts.get("reward", 0.0))
        steps, words = steps + 1, words + record.examples
    predictor = Predictor.of(job.task, job.config, job.model, job.folder)
    found = {}
    for beam in (1, 5):
        scores = predictor.evaluate(job.dev, Beam(beam=beam, stopping="optimal"), 128).scores
        found |= {f"beam {beam}": scores["exact_match"], f"ser {beam}": scores["ser"]}
    tenth = max(1, steps // 10)
    return found | {
        "steps": steps,
        "updates_per_second": round(steps / (60 * cell["minutes"]), 2),
        "epochs": round(words / len(job.corpus), 2),
        "lr": job.config.training.lr,
        "reward": [round(statistics.mean(part), 4) for part in (rewards[:tenth], rewards[-tenth:])],
    }


def print_table(rows: list[Cell], names: list[str]) -> None:
    """Exact match per objective, and the paired difference from the better cross entropy."""
    means = {
        name: statistics.mean(row["beam 5"] for row in rows if row["objective"] == name)
        for name in names
    }
    rivals = [name for name in names if name.startswith("cross_entropy")]
    rival = max(rivals, key=means.__getitem__, default=None)
    columns = ("objective", "exact match, beam 5", "beam 1", "updates/s", "difference (95 %)")
    print(f"| {' | '.join(columns)} |\n|{'---|' * len(columns)}")
    for name in names:
        mine = [row for row in rows if row["objective"] == name]
        shown = " | ".join(
            f"{statistics.mean(row[key] for row in mine):.2f}"
            for key in ("beam 5", "beam 1", "updates_per_second")
        )
        print(f"| {name} | {shown} | {difference(rows, name, rival)} |")


def difference(rows: list[Cell], name: str, rival: str | None) -> str:
    """Mean difference of the scores of equal seeds, with the t interval."""
    if rival is None or name == rival:
        return ""
    scores = {(row["objective"], row["seed"]): row["beam 5"] for row in rows}
    gaps = [scores[name, seed] - scores[rival, seed] for one, seed in scores if one == name]
    mean = statistics.mean(gaps)
    if len(gaps) < 2:
        return f"{mean:+.2f}"
    width = T_QUANTILES.get(len(gaps) - 1, 2.0) * statistics.stdev(gaps) / len(gaps) ** 0.5
    return f"{mean:+.2f} ({mean - width:+.2f} to {mean + width:+.2f})"


if __name__ == "__main__":
    torch.set_num_threads(1)
    sys.exit(main())
