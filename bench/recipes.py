"""What each choice of the presets is worth: a row for each variant, trained for a number of steps.

usage: python bench/recipes.py g2p|multi30k [--steps 1000] [--only NAME ...] [--seed 1]
A variant is a set of settings. Quality at a number of steps does not depend on the load of
the machine; the cost of a step is processor time of one thread, relative to the first row.
Only dev parts are read: letters greedily on 2,000 words, Multi30k greedily on all of val.
"""

import argparse
import math
import statistics
import sys
import time
from pathlib import Path

import torch
from surroundings import folder

from regard.config.load import load_config
from regard.core.memory import tune_malloc
from regard.data.sources.open import DataSpec
from regard.inference.predictor import Predictor
from regard.search import Beam
from regard.training.loop import train
from regard.training.start import start_run

RECURRENT = ["model.encoder.kind=recurrent", "model.decoder.kind=recurrent"]
TRANSFORMER = ["model.encoder.kind=transformer", "model.decoder.kind=transformer"]
ADAMW, MUON = "training.optimizer.kind=adamw", "training.optimizer.kind=muon"
ADDITIVE, BILINEAR = "model.decoder.cross=additive", "model.decoder.cross=bilinear"
LONG, SHORT = "model.embedding_width=0", "model.embedding_width=64"
LSTM = [*RECURRENT, ADAMW, "training.batch_tokens=800"]
SMALL = [
    *RECURRENT,
    BILINEAR,
    *(
        f"model.{side}.{size}"
        for side in ("encoder", "decoder")
        for size in ("width=256", "layers=1")
    ),
    "training.batch_tokens=800",
    "training.lr=3e-3",
]
# The first of each is what regard chose before.
VARIANTS: dict[str, dict[str, list[str]]] = {
    "g2p": {
        "before": [*LSTM, ADDITIVE, LONG, "training.lr=2e-3"],
        "short": [*LSTM, BILINEAR, SHORT, "training.lr=2e-3"],
        "short-4e-3": [*LSTM, BILINEAR, SHORT, "training.lr=4e-3"],
        "short-8e-3": [*LSTM, BILINEAR, SHORT, "training.lr=8e-3"],
        "short-4e-3-additive": [*LSTM, ADDITIVE, SHORT, "training.lr=4e-3"],
        "short-muon": [
            *RECURRENT,
            BILINEAR,
            SHORT,
            MUON,
            "training.lr=2e-3",
            "training.batch_tokens=800",
        ],
    },
    "multi30k": {
        "before": [*TRANSFORMER, ADAMW, "training.lr=2e-3", "training.batch_tokens=800"],
        "muon": [*TRANSFORMER, MUON, "training.lr=2e-3", "training.batch_tokens=800"],
        "muon-1600": [*TRANSFORMER, MUON, "training.lr=2e-3", "training.batch_tokens=1600"],
        "lstm": [*SMALL, ADAMW],
        "lstm-muon": [*SMALL, MUON],
    },
}


def main() -> int:
    """Trains each variant and prints its row."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", choices=sorted(VARIANTS))
    parser.add_argument("--steps", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", nargs="*", help="names of variants")
    parser.add_argument("--set", action="append", default=[], help="a setting for all of them")
    arguments = parser.parse_args()
    data = folder("REGARD_DATA", "../shared/data")
    if data is None:
        return 1
    torch.set_num_threads(1)
    tune_malloc()
    variants = VARIANTS[arguments.data]
    first = 0.0
    print("| variant | steps | cost of a step | dev nll | dev exact_match | dev BLEU |")
    print("|---|---|---|---|---|---|")
    for name in arguments.only or variants:
        always = [f"training.steps={arguments.steps}", f"training.seed={arguments.seed}"]
        cost, scores = trained(arguments.data, data, [*variants[name], *always, *arguments.set])
        first = first or cost
        print(
            f"| {name} | {arguments.steps} | {cost / first:.2f} "
            f"| {math.log(scores['perplexity']):.3f} | {scores['exact_match']:.1f} "
            f"| {scores['bleu']:.1f} |",
            flush=True,
        )
    return 0


def trained(name: str, data: Path, settings: list[str]) -> tuple[float, dict[str, float]]:
    """The mean processor time of a step, and the scores on dev."""
    config = load_config(settings=settings)
    found = config.task.open(*places(name, data))
    run = start_run(Path("unwritten"), config, found.train, found.dev)
    costs, before = [], time.process_time()
    for _ in train(run):
        now = time.process_time()
        costs.append(now - before)
        before = now
    examples = run.dev[:2000] if name == "g2p" else run.dev
    predictor = Predictor.of(run.task, run.config, run.model, run.folder)
    scores = predictor.evaluate(examples, Beam(beam=1), 128).scores
    return statistics.mean(costs), scores


def places(name: str, data: Path) -> tuple[DataSpec, DataSpec]:
    """Training and dev data."""
    if name == "g2p":
        part = data / "cmudict_g2p"
        return DataSpec(str(part / "train.tsv.gz")), DataSpec(str(part / "dev.tsv.gz"))
    train_part, dev_part = (
        DataSpec(
            source=str(data / "multi30k" / f"{part}.en.gz"),
            target=str(data / "multi30k" / f"{part}.de.gz"),
        )
        for part in ("train", "val")
    )
    return train_part, dev_part


if __name__ == "__main__":
    sys.exit(main())
