"""Training speed of lenet and the small resnet compared with a plain loop with the same layers.

Two processes take turns: each trains for a slice while the other one waits, so that drift of the
machine hits both alike. Same layers, same batches of 64 digits, no augmentation, AdamW, gradients
clipped. --cpu: processor time of one thread, for a machine with other work.
usage: python bench/image_speed.py [--slices 8] [--seconds 6] [--cpu]
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from surroundings import RESULTS, folder, machine

ROWS = 64
BAR = 0.95
Step = Callable[[], int]


def ours(path: str, recipe: str) -> Step:
    """One update of regard's loop; images trained on."""
    import regard  # noqa: F401 -- first: it sets how threads wait
    from regard.config.load import load_config
    from regard.core.memory import tune_malloc
    from regard.data.reading.image_arrays import read_npz
    from regard.data.reading.read import Pair
    from regard.training.loop import train
    from regard.training.start import start_run

    settings = ["training.steps=1000000", f"training.batch_tokens={ROWS}", "training.lr=1e-3"]
    settings.append("model.frontend={kind: grid, augment: {shift: 0}}")
    tune_malloc()
    pairs = [Pair(one.source, (str(one.target[0]),), one.line) for one in read_npz(path).pairs]
    folder_ = Path(tempfile.mkdtemp())
    run = start_run(folder_, load_config(recipe, settings), pairs, pairs[:100])
    records = train(run)
    return lambda: int(next(records).tokens)


def plain(path: str, recipe: str) -> Step:
    """One update of a loop as anyone would write it; images trained on."""
    import numpy as np
    import torch
    from torch import Tensor, nn

    archive = np.load(path)
    pixels = torch.from_numpy(archive["images"]).float()[:, None]
    images = (pixels - pixels.mean()) / pixels.std()
    labels = torch.from_numpy(archive["labels"]).long()

    class Residual(nn.Module):
        def __init__(self, inputs: int, width: int, stride: int) -> None:
            super().__init__()
            self.one = nn.Conv2d(inputs, width, 3, stride, 1, bias=False)
            self.two = nn.Conv2d(width, width, 3, 1, 1, bias=False)
            self.norms = nn.ModuleList(nn.BatchNorm2d(width) for _ in range(2))
            self.short: nn.Module = nn.Identity()
            if stride > 1 or inputs != width:
                conv = nn.Conv2d(inputs, width, 1, stride, bias=False)
                self.short = nn.Sequential(conv, nn.BatchNorm2d(width))

        def forward(self, x: Tensor) -> Tensor:
            y = torch.relu(self.norms[0](self.one(x)))
            return torch.relu(self.norms[1](self.two(y)) + self.short(x))

    networks = {
        "lenet": lambda: nn.Sequential(
            *(nn.Conv2d(1, 6, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2)),
            *(nn.Conv2d(6, 16, 5), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten()),
            *(nn.Linear(400, 120), nn.ReLU(), nn.Linear(120, 84), nn.ReLU(), nn.Linear(84, 10)),
        ),
        "resnet": lambda: nn.Sequential(
            *(nn.Conv2d(1, 16, 3, padding=1, bias=False), nn.BatchNorm2d(16), nn.ReLU()),
            *(Residual(16, 16, 1), Residual(16, 32, 2), Residual(32, 64, 2)),
            *(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, 10)),
        ),
    }
    model = networks[recipe]()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    order = iter(torch.randperm(len(images)).split(ROWS))

    def step() -> int:
        nonlocal order
        rows = next(order, None)
        if rows is None:
            order = iter(torch.randperm(len(images)).split(ROWS))
            rows = next(order)
        loss = nn.functional.cross_entropy(model(images[rows]), labels[rows])
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        return len(rows)

    return step


def work(name: str, path: str, recipe: str, clock: str) -> None:
    """Train for the seconds on each line of stdin, and print images per second."""
    now = {"cpu": time.process_time, "wall": time.perf_counter}[clock]
    step = {"regard": ours, "plain": plain}[name](path, recipe)
    for _ in range(20):
        step()
    print("ready", flush=True)
    for line in sys.stdin:
        began, done = now(), 0
        while now() - began < float(line):
            done += step()
        print(done / (now() - began), flush=True)


def compare(recipe: str, path: str, args: argparse.Namespace) -> dict[str, list[float]]:
    """Return the rates of both workers, slice by slice."""
    clock = "cpu" if args.cpu else "wall"
    threads = {"OMP_NUM_THREADS": "1"} if args.cpu else {}
    workers = {
        name: subprocess.Popen(
            [sys.executable, __file__, "--work", name, path, recipe, clock],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=os.environ | threads,
        )
        for name in ("regard", "plain")
    }
    rates: dict[str, list[float]] = {name: [] for name in workers}
    for worker in workers.values():
        assert worker.stdout is not None
        worker.stdout.readline()
    for turn in range(args.slices):
        for name, worker in workers.items():
            assert worker.stdin is not None and worker.stdout is not None
            worker.stdin.write(f"{args.seconds}\n")
            worker.stdin.flush()
            rates[name].append(float(worker.stdout.readline()))
        shown = ", ".join(f"{name} {rate[-1]:,.0f}" for name, rate in rates.items())
        print(f"{recipe} slice {turn + 1}: {shown} images/s", file=sys.stderr, flush=True)
    for worker in workers.values():
        worker.stdin.close()  # type: ignore[union-attr]
        worker.wait()
    return rates


def main() -> int:
    """Print the median rates and their ratios; return 1 if the target is missed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--slices", type=int, default=8)
    parser.add_argument("--seconds", type=float, default=6)
    parser.add_argument("--cpu", action="store_true")
    parser.add_argument("--only", nargs="*", default=["lenet", "resnet"])
    parser.add_argument("--work", nargs=4)
    args = parser.parse_args()
    if args.work:
        work(*args.work)
        return 0
    data = folder("REGARD_DATA", "../shared/data")
    if data is None:
        return 1
    found = {}
    for recipe in args.only:
        rates = compare(recipe, str(data / "mnist10k" / "train.npz"), args)
        middle = {name: statistics.median(rate) for name, rate in rates.items()}
        ratio = middle["regard"] / middle["plain"]
        found[recipe] = {"rates": rates, "medians": middle, "ratio": ratio}
        shown = f"regard {middle['regard']:,.0f}, plain {middle['plain']:,.0f} images/s"
        print(f"{recipe}: {shown}: {ratio:.2f} x")
    if not args.cpu:
        RESULTS.mkdir(exist_ok=True)
        record = {**found, "machine": machine()}
        (RESULTS / "image_speed.json").write_text(json.dumps(record, indent=1) + "\n")
    return 0 if all(one["ratio"] >= BAR for one in found.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
