"""Attention kernels against explicit softmax: speed, memory, growth, and decoding at constant cost.

usage: python bench/kernels.py [--rounds 7] [--heads 1] [--threads 2] [--kernels local,linear]
An encoder of 2 layers, width 64, with 2 rows of 4,096 and of 8,192 positions, forward and backward;
then single decoding steps after 1,024 and after 8,192 tokens. Each model stays in a process of its
own. The processes take turns, so drift of the machine hits all alike. Ratios are
reported twice: of the fastest rounds, which the bars are held against (other work on the machine
only slows rounds down), and as the median over rounds of the ratio within a round. "processor"
ratios compare processor time, which other work disturbs less; with --threads 1 only, since idle
threads of OpenMP spin. No bar is held against them.
"""

import argparse
import json
import multiprocessing
import statistics
import sys
import time
from math import isqrt
from pathlib import Path
from typing import Any

from surroundings import RESULTS, machine

LENGTH, LONGER = 4096, 8192
EXPLICIT, FUSED = "softmax-explicit", "softmax"
FAST = ("local", "linear", "linformer", "performer")  # >= 5 x faster, <= 1/6 of the memory
LEAN = ("bigbird", "longformer", "reformer")  # not slower, <= 1/3 of the memory
KERNELS = (*FAST, *LEAN, "block", "nystrom", "strided")
GROWTH, STRIDED_GROWTH = 2.3, 2**1.5 * 1.15  # from 4k to 8k
PROCESSOR = "processor"
STEP_LENGTHS, STEP_GROWTH, STEPS = (1024, 8192), 1.15, 64


def main() -> int:
    """Prints every ratio with its bar; 1 where a bar is missed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--heads", type=int, default=1)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--kernels", default=",".join(KERNELS))
    parser.add_argument("--steps-only", action="store_true")
    parser.add_argument("--out", type=Path, default=RESULTS / "kernels.json")
    args = parser.parse_args()
    kernels = [] if args.steps_only else args.kernels.split(",")
    jobs = [(name, LENGTH) for name in (EXPLICIT, FUSED, *kernels) if kernels]
    jobs += [(name, LONGER) for name in kernels]
    found, memory = take_turns([(encoder, *job) for job in jobs], args)
    steps, step_memory = take_turns([(decoder, "linear", n) for n in STEP_LENGTHS], args)
    rows = [compare(name, found, memory) for name in kernels]
    rows.append(decoding(steps, step_memory))
    for row in rows:
        print(line(row), flush=True)
    args.out.parent.mkdir(exist_ok=True)
    record = {"machine": machine() | {"threads": args.threads}, "heads": args.heads, "rows": rows}
    args.out.write_text(json.dumps(record, indent=1) + "\n")
    return int(not all(bar["met"] for row in rows for bar in row["bars"]))


def take_turns(jobs: list[tuple[Any, ...]], args: Any) -> tuple[dict, dict]:
    """Seconds of each job, by round, and its peak memory in MB; the first round is not counted."""
    context = multiprocessing.get_context("fork")
    pipes = []
    for work, *job in jobs:
        ours, theirs = context.Pipe()
        context.Process(target=work, args=(*job, args, theirs), daemon=True).start()
        pipes.append(ours)
    names = [tuple(job) for _, *job in jobs]
    times: dict = {name: [] for name in names}
    times |= {(PROCESSOR, *name): [] for name in names}
    memory = {}
    for turn in range(args.rounds + 1):
        for name, pipe in zip(names, pipes, strict=True):
            pipe.send(True)
            seconds, processor, memory[name] = pipe.recv()
            if turn:
                times[name].append(seconds)
                times[(PROCESSOR, *name)].append(processor)
    for pipe in pipes:
        pipe.send(False)
    return times, memory


def encoder(name: str, length: int, args: Any, pipe: Any) -> None:
    """Times a forward and a backward pass whenever it is asked."""
    import torch

    from regard.data.tensors.padded import Padded

    start(args.threads)
    model = options(name, length, args.heads, "encoder").build()

    def run(n: int) -> None:
        x = torch.randn(2, n, 64, requires_grad=True)
        model(Padded(x, torch.ones(2, n, dtype=torch.bool))).data.sum().backward()

    serve(pipe, lambda: run(64), lambda: run(length))


def decoder(name: str, length: int, args: Any, pipe: Any) -> None:
    """Times decoding steps after a prefix whenever it is asked."""
    import torch

    start(1)  # a step is too small for several threads; searches use one per step
    model = options(name, length + STEPS, args.heads, "decoder").build().eval()
    x = torch.randn(1, length + STEPS, 64)
    with torch.inference_mode():
        _, after = model(x[:, :length], model.start(None))

        def run() -> None:
            state = after
            for at in range(length, length + STEPS):
                _, state = model(x[:, at : at + 1], state)

        serve(pipe, run, run)


def start(threads: int) -> None:
    import torch

    from regard.core.memory import tune_malloc

    torch.set_num_threads(threads)
    tune_malloc()
    torch.manual_seed(0)


def serve(pipe: Any, warm_up: Any, run: Any) -> None:
    """Answers with seconds and peak memory on top of the warm-up in MB, until told to end."""
    import resource

    warm_up()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    while pipe.recv():
        began, used = time.perf_counter(), time.process_time()
        run()
        spent = (time.perf_counter() - began, time.process_time() - used)
        pipe.send((*spent, (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024))


def options(name: str, length: int, heads: int, side: str) -> Any:
    """The model: 2 layers, width 64, default settings except those that depend on the length."""
    from regard.core.options import kinds_of
    from regard.models.transformer_options import (
        CausalTransformerOptions,
        TransformerEncoderOptions,
    )
    from regard.nn.kernels import Attention

    kind: Any = kinds_of(Attention)[name.removesuffix("-explicit")]
    sizes = {"length": length, "stride": isqrt(length), "fused": name != EXPLICIT}
    kernel = kind(**{key: value for key, value in sizes.items() if key in kind.model_fields})
    model = TransformerEncoderOptions if side == "encoder" else CausalTransformerOptions
    return model(
        layers=2, width=64, heads=heads, feedforward_width=256, dropout=0.0, attention=kernel
    )


def compare(name: str, times: dict, memory: dict) -> dict[str, Any]:
    """The ratios of a kernel, and the bars they are held against."""
    at, longer = (name, LENGTH), (name, LONGER)
    explicit = fastest(times[EXPLICIT, LENGTH], times[at])
    lean = memory[EXPLICIT, LENGTH] / memory[at]
    growth = fastest(times[longer], times[at])
    bars = []
    if name in FAST:
        bars += [bar("speed", explicit, 5.0), bar("memory", lean, 6.0)]
    if name in LEAN:
        bars += [bar("speed", explicit, 1.0), bar("memory", lean, 3.0)]
    bars.append(bar("growth", growth, STRIDED_GROWTH if name == "strided" else GROWTH, below=True))
    return {
        "kernel": name,
        "ms": round(1000 * min(times[at]), 1),
        "MB": round(memory[at], 1),
        "x as fast as explicit": round(explicit, 2),
        "by rounds": round(median_ratio(times[EXPLICIT, LENGTH], times[at]), 2),
        "x as fast as fused": round(fastest(times[FUSED, LENGTH], times[at]), 2),
        "x less memory than explicit": round(lean, 2),
        "x less memory than fused": round(memory[FUSED, LENGTH] / memory[at], 2),
        "processor explicit": round(
            fastest(times[PROCESSOR, EXPLICIT, LENGTH], times[(PROCESSOR, *at)]), 2
        ),
        "processor fused": round(
            fastest(times[PROCESSOR, FUSED, LENGTH], times[(PROCESSOR, *at)]), 2
        ),
        "processor 4k to 8k": round(
            fastest(times[(PROCESSOR, *longer)], times[(PROCESSOR, *at)]), 2
        ),
        "4k to 8k": round(growth, 2),
        "4k to 8k by rounds": round(median_ratio(times[longer], times[at]), 2),
        "memory 4k to 8k": round(memory[longer] / memory[at], 2),
        "bars": bars,
    }


def decoding(times: dict, memory: dict) -> dict[str, Any]:
    """The growth of a decoding step of linear attention."""
    short, long = (("linear", length) for length in STEP_LENGTHS)
    growth = fastest(times[long], times[short])
    return {
        "kernel": "linear, one decoding step",
        "ms": round(1000 * min(times[short]) / STEPS, 3),
        "1k to 8k": round(growth, 3),
        "processor 1k to 8k": round(
            fastest(times[(PROCESSOR, *long)], times[(PROCESSOR, *short)]), 3
        ),
        "1k to 8k by rounds": round(median_ratio(times[long], times[short]), 3),
        "MB": [round(memory[key], 2) for key in (short, long)],
        "bars": [bar("growth", growth, STEP_GROWTH, below=True)],
    }


def fastest(one: list[float], other: list[float]) -> float:
    """The ratio of the fastest rounds."""
    return min(one) / min(other)


def median_ratio(one: list[float], other: list[float]) -> float:
    """The median over rounds of the ratio of two times."""
    return statistics.median(a / b for a, b in zip(one, other, strict=True))


def bar(what: str, value: float, limit: float, below: bool = False) -> dict[str, Any]:
    met = value <= limit if below else value >= limit
    return {"what": what, "value": round(value, 2), "limit": round(limit, 2), "met": met}


def line(row: dict[str, Any]) -> str:
    """A row as text."""
    shown = [f"{key} {value}" for key, value in row.items() if key not in ("kernel", "bars")]
    bars = [f"{b['what']} {'met' if b['met'] else 'MISSED'} ({b['limit']})" for b in row["bars"]]
    return f"{row['kernel']}: {', '.join(shown)}; {', '.join(bars)}"


if __name__ == "__main__":
    sys.exit(main())
