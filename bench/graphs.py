"""Measure graphs: Cora over seeds, and the time and memory of large random graphs.

    python bench/graphs.py [--parts cora,large] [--seeds 20] [--recipes gcn,gat]

Cora is read from REGARD_DATA (default ../shared/data). Large graphs run in processes of their own,
so that the peak memory is that of the run.
"""

import argparse
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

DATA = Path(os.environ.get("REGARD_DATA", "../shared/data")) / "cora"
BARS = {"gcn": 81.0, "gat": 82.0}
LARGE_NODES, LARGE_EDGES, LARGE_FEATURES, LARGE_CLASSES = 100_000, (500_000, 1_000_000), 64, 10


def cora(recipes: list[str], seeds: int, settings: list[str]) -> None:
    """Print the test accuracy of the recipes on the Planetoid split of Cora, over seeds."""
    from regard.config.load import load_config
    from regard.data.sources.open import DataSpec
    from regard.inference.predictor import Predictor
    from regard.training.describe import describe
    from regard.training.log import Display
    from regard.training.session import train_run
    from regard.training.start import start_run

    if not (DATA / "nodes.tsv.gz").exists():
        print(f"cora: skipped: no {DATA}")
        return
    nodes, edges = str(DATA / "nodes.tsv.gz"), str(DATA / "edges.tsv.gz")
    spec = DataSpec(
        nodes, source_column="4", target_column="2", split_column="3", edges=edges, id_column="1"
    )
    for recipe in recipes:
        accuracies, seconds = [], []
        for seed in range(1, seeds + 1):
            config = load_config(recipe, [f"training.seed={seed}", *settings])
            data = config.task.open(spec, DataSpec())
            test = config.task.read(DataSpec(**{**vars(spec), "split": "test"}))
            with tempfile.TemporaryDirectory() as folder:
                start = time.monotonic()
                run = start_run(Path(folder) / "run", config, data.train, data.dev)
                describe(run, {})
                train_run(run, Display())
                seconds.append(time.monotonic() - start)
                predictor = Predictor.load(run.folder)
                scores = predictor.evaluate(predictor.task.examples(test.pairs)).scores
            accuracies.append(scores["accuracy"])
            best, state = run.state.best_score, run.state
            print(
                f"  {recipe} seed {seed}: test {accuracies[-1]:.1f}, dev {best:.1f}, "
                f"step {state.best_step} of {state.step}, {seconds[-1]:.1f} s",
                flush=True,
            )
        mean = statistics.mean(accuracies)
        deviation = statistics.stdev(accuracies) if seeds > 1 else 0.0
        bar = f", bar {BARS[recipe]}" if recipe in BARS else ""
        print(
            f"cora {recipe}: test accuracy {mean:.2f} +- {1.96 * deviation / seeds**0.5:.2f} "
            f"(95 %, {seeds} seeds, deviation {deviation:.2f}){bar}; "
            f"median {statistics.median(seconds):.1f} s per run"
        )


def large(recipes: list[str]) -> None:
    """Print time and memory of an epoch on random graphs, each in a process of its own."""
    for recipe in recipes:
        times = []
        for edges in LARGE_EDGES:
            command = [sys.executable, __file__, "--one", recipe, "--edges", str(edges)]
            found = subprocess.run(command, capture_output=True, text=True, check=True).stdout
            seconds, gigabytes = map(float, found.split())
            times.append(seconds)
            print(
                f"large {recipe}: {LARGE_NODES:,} nodes, {edges:,} edges: {seconds:.2f} s per "
                f"epoch, peak memory {gigabytes:.2f} GB"
            )
        print(
            f"large {recipe}: twice the edges take {times[1] / times[0]:.2f} times as long "
            "(bar 2.2)"
        )


def one(recipe: str, edges: int) -> None:
    """Print the seconds of an epoch and the peak memory in GB of this process."""
    import numpy as np

    from regard.config.load import load_config
    from regard.data.reading.graph import Graph
    from regard.data.reading.read import Pair
    from regard.training.loop import train
    from regard.training.start import start_run

    rng = np.random.default_rng(0)
    ends = np.unique(np.sort(rng.integers(0, LARGE_NODES, (2, edges * 11 // 10)), 0), axis=1)
    ends = ends[:, ends[0] != ends[1]]
    ends = ends[:, np.sort(rng.permutation(ends.shape[1])[:edges])]
    names = tuple(map(str, range(LARGE_NODES)))
    features = rng.normal(size=(LARGE_NODES, LARGE_FEATURES))
    graph = Graph("random", names, features, ends, np.zeros(ends.shape[1], np.int64))
    labels = tuple(str(label) for label in rng.integers(0, LARGE_CLASSES, LARGE_NODES))
    config = load_config(recipe, ["training.epochs=5", "task.source.scaling=columns"])
    pairs = [Pair(graph, labels, 1)]
    run = start_run(Path("nowhere"), config, pairs, pairs)
    times = []
    start = time.monotonic()
    for _ in train(run):
        times.append(time.monotonic() - start)
        start = time.monotonic()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024**2
    print(statistics.median(times[1:]), peak)


def main() -> None:
    """Run the parts that were asked for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--parts", default="cora,large")
    parser.add_argument("--recipes", default="gcn,gat")
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--set", action="append", default=[], dest="settings")
    parser.add_argument("--one")
    parser.add_argument("--edges", type=int, default=LARGE_EDGES[0])
    options = parser.parse_args()
    if options.one:
        one(options.one, options.edges)
        return
    recipes = options.recipes.split(",")
    if "cora" in options.parts:
        cora(recipes, options.seeds, options.settings)
    if "large" in options.parts:
        large(recipes)


if __name__ == "__main__":
    main()
