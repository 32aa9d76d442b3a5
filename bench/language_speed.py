"""Training speed of a small GPT compared with a plain loop over torch.nn.TransformerEncoder.

Two processes take turns: each trains for a slice while the other one waits, so that drift of the
machine hits both alike. Same size, same batches of 12 windows of 64 characters.
usage: python bench/language_speed.py [--slices 8] [--seconds 10]
"""

import argparse
import gzip
import json
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from surroundings import RESULTS, folder, machine

ROWS, CONTEXT, LAYERS, WIDTH, HEADS = 12, 64, 4, 128, 4
BAR = 1.0
Step = Callable[[], int]


def ours(text: str) -> Step:
    """One update of regard's loop; tokens trained on."""
    import tempfile

    import regard  # noqa: F401 -- first: it sets how threads wait
    from regard.config.load import load_config
    from regard.core.memory import tune_malloc
    from regard.data.reading.read import Pair
    from regard.training.loop import train
    from regard.training.start import start_run

    settings = [
        *("task.kind=language-model", f"task.context_length={CONTEXT}", "training.steps=1000000"),
        *(f"training.batch_tokens={ROWS * CONTEXT}", "model.decoder.kind=transformer"),
        *(f"model.decoder.layers={LAYERS}", f"model.decoder.width={WIDTH}"),
        *(f"model.decoder.heads={HEADS}", "model.decoder.dropout=0", "training.lr=1e-3"),
    ]
    tune_malloc()
    folder_ = Path(tempfile.mkdtemp())
    dev = [Pair("", text[-2000:], 1)]
    run = start_run(folder_, load_config(None, settings), [Pair("", text, 1)], dev)
    records = train(run)
    return lambda: int(next(records).tokens)


def plain(text: str) -> Step:
    """One update of a loop as anyone would write it; tokens trained on."""
    import torch
    from torch import nn

    letters = sorted(set(text))
    tokens = torch.tensor([letters.index(letter) for letter in text])

    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.tokens = nn.Embedding(len(letters), WIDTH)
            self.places = nn.Embedding(CONTEXT, WIDTH)
            layer = nn.TransformerEncoderLayer(
                WIDTH, HEADS, 4 * WIDTH, dropout=0.0, batch_first=True, norm_first=True
            )
            self.body = nn.TransformerEncoder(layer, LAYERS, nn.LayerNorm(WIDTH))
            self.head = nn.Linear(WIDTH, len(letters), bias=False)
            self.mask = nn.Transformer.generate_square_subsequent_mask(CONTEXT)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            h = self.tokens(x) + self.places.weight
            return self.head(self.body(h, mask=self.mask, is_causal=True))

    model = Model()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)

    def step() -> int:
        starts = torch.randint(len(tokens) - CONTEXT - 1, (ROWS,)).tolist()
        x = torch.stack([tokens[s : s + CONTEXT] for s in starts])
        y = torch.stack([tokens[s + 1 : s + CONTEXT + 1] for s in starts])
        loss = nn.functional.cross_entropy(model(x).flatten(0, 1), y.flatten())
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        return x.numel()

    return step


def work(name: str, path: str) -> None:
    """Train for the seconds on each line of stdin, and print tokens per second."""
    with gzip.open(path, "rt", encoding="utf-8", newline="\n") as file:
        step = {"regard": ours, "plain": plain}[name](file.read())
    for _ in range(20):
        step()
    print("ready", flush=True)
    for line in sys.stdin:
        began, done = time.perf_counter(), 0
        while time.perf_counter() - began < float(line):
            done += step()
        print(done / (time.perf_counter() - began), flush=True)


def main() -> int:
    """Prints the median rates and their ratio; 1 where the bar is missed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--slices", type=int, default=8)
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--work", nargs=2)
    args = parser.parse_args()
    if args.work:
        work(*args.work)
        return 0
    data = folder("REGARD_DATA", "../shared/data")
    if data is None:
        return 1
    path = data / "small_texts" / "tinyshakespeare.train.txt.gz"
    command = [sys.executable, __file__, "--work"]
    workers = {
        name: subprocess.Popen(
            [*command, name, str(path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
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
        print(f"slice {turn + 1}: {shown} tokens/s", flush=True)
    for worker in workers.values():
        worker.stdin.close()  # type: ignore[union-attr]
        worker.wait()
    middle = {name: statistics.median(rate) for name, rate in rates.items()}
    ratio = middle["regard"] / middle["plain"]
    print(f"regard {middle['regard']:,.0f}, plain {middle['plain']:,.0f}: {ratio:.2f} x")
    RESULTS.mkdir(exist_ok=True)
    record = {"rates": rates, "medians": middle, "ratio": ratio, "machine": machine()}
    (RESULTS / "language_speed.json").write_text(json.dumps(record, indent=1) + "\n")
    return 0 if ratio >= BAR else 1


if __name__ == "__main__":
    sys.exit(main())
