"""int8 weights compared with fp32: size, memory, speed and quality of the same models.

usage: python bench/int8.py [--multi30k RUN] [--g2p RUN] [--large] [--kernels] [--rounds 3]
Runs are folders that `regard train` made. Answers the Multi30k test part (English to German) with
beam 5, and 2,000 words of the g2p test set, greedily, alternating between fp32 and int8 weights,
each time in a process of its own. --large: the memory of a Transformer of 6+6 layers, width 768,
with random weights. --kernels: one product by all ways that torch has. Ends with 1 where a bar is
missed.
"""

import argparse
import gzip
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

from surroundings import RESULTS, folder, machine

BLEU, EXACT = 0.3, 0.5  # most that quality may fall
SIZE, MEMORY = 0.3, 0.5  # most that stays of the bytes of weights, of the memory of a large model
SHAPES = [(128, 384), (128, 256), (256, 128), (128, 8000), (512, 512), (512, 2048), (512, 32000)]
ROWS = (1, 5, 32, 160)
Examples = list[tuple[str, list[str]]]


def examples(name: str) -> Examples:
    """Sources of a test part, each with its targets."""
    if name == "multi30k":
        data = folder("REGARD_DATA", "../shared/data")
        assert data is not None
        places = [data / "multi30k" / f"test_2016_flickr.{side}.gz" for side in ("en", "de")]
        sources, targets = (_lines(place) for place in places)
        return [(source, [target]) for source, target in zip(sources, targets, strict=True)]
    from regard.data.reading.read import group
    from regard.data.sources.builtin import builtin

    return [(one.source, list(one.references)) for one in group(builtin("g2p").test)]


def _lines(path: Path) -> list[str]:
    with gzip.open(path, "rt", encoding="utf-8", newline="\n") as file:
        return file.read().removesuffix("\n").split("\n")


def answer(name: str, run: str, quantize: str) -> None:
    """What a process of its own finds out about one model, as JSON."""
    import regard
    from regard.nn.quantize import size_of

    before = resident()
    began = time.perf_counter()
    model = regard.load(run, quantize=None if quantize == "fp32" else quantize)
    found: dict[str, Any] = {"load_seconds": time.perf_counter() - began}
    found |= {"weights": size_of(model.model_), "imports_mb": before, "load_peak_mb": peak()}
    found["loaded_mb"] = resident()
    if name != "large":
        pairs = examples(name)
        sources, beam = [source for source, _ in pairs], 5 if name == "multi30k" else 1
        model.predict(sources[:32], beam=beam, batch_size=32)
        began = time.perf_counter()
        answers = model.predict(sources, beam=beam, batch_size=32)
        found |= {"rate": len(sources) / (time.perf_counter() - began), "peak_mb": peak()}
        found |= quality(name, answers, [targets for _, targets in pairs])
        found["answers"] = answers
    print(json.dumps(found))


def quality(name: str, answers: list[str], targets: list[list[str]]) -> dict[str, float]:
    """The measure of a test part."""
    if name == "g2p":
        pairs = zip(answers, targets, strict=True)
        return {"exact_match": 100 * statistics.mean(answer in right for answer, right in pairs)}
    import sacrebleu

    return {"bleu": sacrebleu.corpus_bleu(answers, [[one for (one,) in targets]]).score}


def peak() -> float:
    """The most memory that this process had so far, in MB; not that of the one it came from."""
    return _memory("VmHWM")


def resident() -> float:
    """The memory of this process now, in MB."""
    return _memory("VmRSS")


def _memory(name: str) -> float:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(name)) / 1024


def compare(name: str, run: str, rounds: int) -> tuple[dict[str, Any], bool]:
    """Both kinds of weights, alternating; the results, and whether the bars are met."""
    found: dict[str, list[dict[str, Any]]] = {"fp32": [], "int8": []}
    for _ in range(rounds if name != "large" else 1):
        for kind, records in found.items():
            words = [sys.executable, __file__, "--one", name, run, kind]
            said = subprocess.run(words, check=True, stdout=subprocess.PIPE, text=True)
            records.append(json.loads(said.stdout.splitlines()[-1]))
    answers = [records[0].pop("answers", []) for records in found.values()]
    figures: dict[str, Any] = {"same": sum(a == b for a, b in zip(*answers, strict=True))}
    for kind, records in found.items():
        for record in records:
            record.pop("answers", None)
        figures[kind] = {
            key: statistics.median(record[key] for record in records) for key in records[0]
        }
        print(f"{name} {kind}: " + ", ".join(f"{k} {v:,.2f}" for k, v in figures[kind].items()))
    whole, rounded = figures["fp32"], figures["int8"]
    print(f"{name}: {figures['same']:,} of {len(answers[0]):,} answers are the same")
    met = rounded["weights"] <= SIZE * whole["weights"]
    for measure, bar in (("bleu", BLEU), ("exact_match", EXACT)):
        met &= measure not in whole or rounded[measure] >= whole[measure] - bar
    if name == "large":
        growth = [one["loaded_mb"] - one["imports_mb"] for one in (whole, rounded)]
        tops = [one["load_peak_mb"] - one["imports_mb"] for one in (whole, rounded)]
        for kind, now, top in zip(("fp32", "int8"), growth, tops, strict=True):
            print(f"large: {kind} weights took {now:,.0f} MB, {top:,.0f} MB while being read")
        met &= growth[1] <= MEMORY * growth[0] and tops[1] < tops[0]
    return figures, met


def make_large(out: Path) -> None:
    """A run folder with random weights, as if it had been trained."""
    from regard.config.load import load_config
    from regard.data.reading.read import Pair
    from regard.storage.weights import save_weights
    from regard.training.describe import describe
    from regard.training.start import start_run

    sizes = [("layers", 6), ("width", 768), ("heads", 12), ("feedforward_width", 3072)]
    sides = ("model.encoder", "model.decoder")
    settings = [f"{side}.{name}={value}" for side in sides for name, value in sizes]
    settings += [f"{side}.kind=transformer" for side in sides] + ["training.steps=1"]
    pairs = [Pair("abc", "cba", 1), Pair("ab", "ba", 2)]
    run = start_run(out, load_config(None, settings), pairs, pairs)
    describe(run, {})
    save_weights(run.model, out / "model.safetensors")


def kernels() -> dict[str, dict[str, float]]:
    """Microseconds of one product, one thread: fp32, ours, and torch's other ways to int8."""
    import torch

    from regard.core.memory import tune_malloc
    from regard.nn.int8 import Int8Linear, Int8Matrix

    warnings.simplefilter("ignore")  # torch means to give up its quantized tensors
    tune_malloc()
    torch.set_num_threads(1)
    table = {}
    for inputs, outputs in SHAPES:
        weight, bias = torch.randn(outputs, inputs), torch.randn(outputs)
        ours = Int8Linear(Int8Matrix.of(weight), bias).eval()
        for rows in ROWS:
            with torch.inference_mode():
                ways = products(torch.randn(rows, inputs), weight, bias, ours)
                table[f"{inputs} x {outputs}, {rows} rows"] = fastest(ways)
            name, figures = list(table.items())[-1]
            print(name, " ".join(f"{way} {value:.0f}" for way, value in figures.items()))
    return table


def products(x: Any, weight: Any, bias: Any, ours: Any) -> dict[str, Callable[[], Any]]:
    """The ways to a product."""
    import torch

    values, scale, turned = ours.matrix.values, ours.matrix.scale, weight.t()
    zeros = torch.zeros(len(scale), dtype=torch.long)
    kept = torch.quantize_per_channel(weight, scale.double(), zeros, 0, torch.qint8)
    packed = torch.ops.quantized.linear_prepack(kept, bias)
    found = {
        "fp32": lambda: torch.addmm(bias, x, turned),
        "ours": ours.bare(),
        "linear_dynamic": lambda: torch.ops.quantized.linear_dynamic(x, packed, True),
        "weight_int8pack_mm": lambda: torch._weight_int8pack_mm(x, values, scale) + bias,
        "weight_int8pack_mm bf16": lambda: (
            torch._weight_int8pack_mm(x.bfloat16(), values, scale.bfloat16()).float() + bias
        ),
    }
    if len(x) > 16:  # fewer rows are not supported

        def by_rows() -> Any:
            step = x.abs().amax(1, keepdim=True) / 127
            rounded = (x / step).round().to(torch.int8)
            return torch.addcmul(bias, torch._int_mm(rounded, values.t()) * step, scale)

        found["int_mm"] = by_rows
    return {
        name: (lambda way=way: way(x)) if name == "ours" else way for name, way in found.items()
    }


def fastest(ways: dict[str, Callable[[], Any]]) -> dict[str, float]:
    """The minimum microseconds of each, alternating."""
    best = dict.fromkeys(ways, 1.0)
    for _ in range(25):
        for name, way in ways.items():
            count = max(1, int(1e-3 / best[name]))
            began = time.perf_counter()
            for _ in range(count):
                way()
            best[name] = min(best[name], (time.perf_counter() - began) / count)
    return {name: 1e6 * seconds for name, seconds in best.items()}


def main() -> int:
    """Runs what was asked for; 1 where a bar is missed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--multi30k", metavar="RUN")
    parser.add_argument("--g2p", metavar="RUN")
    parser.add_argument("--large", action="store_true")
    parser.add_argument("--kernels", action="store_true")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--one", nargs=3, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.one:
        answer(*args.one)
        return 0
    results: dict[str, Any] = {"machine": machine()}
    met = True
    for name in ("multi30k", "g2p"):
        if run := getattr(args, name):
            results[name], good = compare(name, run, args.rounds)
            met &= good
    if args.large:
        with tempfile.TemporaryDirectory() as place:
            make_large(Path(place))
            results["large"], good = compare("large", place, 1)
            met &= good
    if args.kernels:
        results["kernels"] = kernels()
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / "int8.json").write_text(json.dumps(results, indent=1) + os.linesep)
    return int(not met)


if __name__ == "__main__":
    sys.exit(main())
