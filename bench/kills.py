"""A run of 200 steps that is killed 20 times with `kill -9`, and one that nothing stopped.

Kills come at random moments: while data are read, between updates, in the middle of a validation
or of a checkpoint. After each the same command is given again. At the end weights, averages and
all lines of metrics.jsonl but the clock's must be the same to the last bit.

usage: python bench/kills.py [--kills 20] [--seed 1] [--processes 1 2]
"""

import argparse
import json
import os
import random
import shutil
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).parents[1]
STEPS = 200
SMALL = "--set model.encoder.kind=transformer --set model.encoder.width=32 \
--set model.encoder.layers=2 --set model.encoder.dropout=0.1 --set model.decoder.dropout=0.1 \
--set training.batch_tokens=400 --set training.validate_every=40 --set training.checkpoint_every=5 \
--set training.validation_examples=40 --set training.average.kind=ema"
CLOCK = ("elapsed_seconds", "tokens_per_second")


def command(out: Path, processes: int) -> list[str]:
    """The command that starts or resumes the run."""
    python = [sys.executable, "-m"]
    if processes > 1:
        python += [
            "torch.distributed.run",
            "--standalone",
            "--nproc-per-node",
            str(processes),
            "-m",
        ]
    run = ["regard", "train", "reverse", "--steps", str(STEPS), "--resume", "--out", str(out)]
    return [*python, *run, *SMALL.split()]


def start(out: Path, processes: int) -> subprocess.Popen[bytes]:
    """The run in the background."""
    places = os.environ | {"OMP_NUM_THREADS": "1", "PYTHONPATH": str(HERE / "src")}
    log = open(out.with_suffix(".log"), "ab")  # noqa: SIM115 -- the process keeps it
    return subprocess.Popen(command(out, processes), env=places, stdout=log, stderr=log)


def kill(process: subprocess.Popen[bytes], out: Path) -> None:
    """Ends the process and all that it started, without a word."""
    subprocess.run(["pkill", "-9", "-f", str(out)], check=False)
    process.wait()


def step(out: Path) -> int:
    """The step of the newest checkpoint."""
    try:
        return int(json.loads((out / "checkpoint" / "state.json").read_text())["step"])
    except (OSError, ValueError):
        return 0


def lines(out: Path) -> list[dict[str, object]]:
    """The lines of metrics.jsonl, without what the clock says."""
    text = (out / "metrics.jsonl").read_text().splitlines()
    return [{k: v for k, v in json.loads(line).items() if k not in CLOCK} for line in text]


def killed(out: Path, processes: int, kills: int, draw: random.Random, life: float) -> list[int]:
    """Run to the end in spite of the kills; return their steps."""
    steps: list[int] = []
    while len(steps) < kills:
        process = start(out, processes)
        # so late that on average a little is done in each life, and not all before the last kill
        end = time.monotonic() + draw.uniform(0.2, 1.0) * life
        aim = STEPS * (len(steps) + 1) // (kills + 1)
        while time.monotonic() < end or step(out) + 10 < aim:
            if process.poll() is not None:
                raise SystemExit(f"ended by itself: see {out.with_suffix('.log')}")
            if step(out) >= aim:
                break
            time.sleep(0.01)
        time.sleep(draw.uniform(0, 0.5))
        kill(process, out)
        steps.append(step(out))
        print(f"  kill {len(steps)} after step {steps[-1]}", flush=True)
    assert start(out, processes).wait() == 0
    return steps


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--processes", type=int, nargs="*", default=[1, 2])
    given = parser.parse_args()
    failed = False
    for processes in given.processes:
        folder = Path(f"/tmp/regard-kills-{os.getpid()}-{processes}")
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        began = time.monotonic()
        assert start(folder / "whole", processes).wait() == 0
        life = time.monotonic() - began
        print(f"{processes} process(es): {STEPS} steps in {life:.0f} s without a kill", flush=True)
        draw = random.Random(given.seed)
        steps = killed(folder / "killed", processes, given.kills, draw, life / 2)
        whole, other = folder / "whole", folder / "killed"
        files = (
            "model.safetensors",
            "checkpoint/model.safetensors",
            "checkpoint/training.safetensors",
        )
        same = [n for n in files if (whole / n).read_bytes() == (other / n).read_bytes()]
        logs = lines(whole) == lines(other)
        failed |= len(same) < len(files) or not logs
        print(
            f"{processes} process(es): {len(steps)} kills; bit-identical: {', '.join(same)}; "
            f"metrics.jsonl {'the same' if logs else 'DIFFERS'}",
            flush=True,
        )
        if not failed:
            shutil.rmtree(folder)
    sys.exit(failed)


if __name__ == "__main__":
    main()
