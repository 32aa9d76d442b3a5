"""Autoregressive and parallel decoders after equal training time: quality, speed, decoder calls.

usage: python bench/nat.py [--data cmudict|multi30k] [--minutes 10] [--systems 'ctc;cmlm']
           [--figure docs/nat-cmudict.png]
A teacher with default settings; deep encoders with a shallow decoder (6+1, 12+1); CTC with and
without a decoder; mask-predict (CMLM) with 1, 4 and 10 passes, and with rescoring by the teacher.
The parallel models are trained on the data and on the outputs of the teacher for its sources
(`regard distill`). Quality on the dev set (Multi30k: test_2016_flickr) by `regard evaluate`; speed
with one thread on 256 sources, alternating. Cells are stored in bench/results/nat-DATA.json as they
finish; a second call continues where the first one stopped. Prints bars that are missed.
"""

import argparse
import gzip
import json
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from cells import Cell, run_cells
from surroundings import REPOSITORY, folder, regard_command

WORK = REPOSITORY / "runs" / "nat"
TEACHER, METRIC = "teacher", {"cmudict": "exact_match", "multi30k": "bleu"}
SYSTEMS: dict[str, list[str]] = {
    TEACHER: [],
    "6+1": ["--recipe", "deep-shallow-6"],
    "12+1": ["--recipe", "deep-shallow-12"],
    "ctc": ["--recipe", "nat-ctc"],
    "ctc, no decoder": ["--set", "model.decoder.kind=none"],
    "ctc, Transformer": [
        *("--set", "model.decoder.kind=none", "--set", "model.encoder.kind=transformer"),
        *("--set", "model.encoder.layers=4", "--set", "model.encoder.width=128"),
    ],
    "ctc, one layer": [
        *("--set", "model.decoder.kind=none", "--set", "model.encoder.kind=recurrent"),
        *("--set", "model.encoder.layers=1", "--set", "model.encoder.width=384"),
    ],
    "cmlm": ["--recipe", "nat-cmlm"],
}
AUTOREGRESSIVE = (TEACHER, "6+1", "12+1")
SEARCHES: dict[str, list[dict[str, Any]]] = {
    "cmlm": [
        {"passes": 1, "lengths": 1},
        {"passes": 1},
        {"passes": 4},
        {"passes": 10},
        {"passes": 4, "rescore": True},
    ],
    "ctc": [{"beam": 1}, {"beam": 8}, {"beam": 8, "rescore": True}],
    "ctc, no decoder": [{"beam": 1}, {"beam": 8}],
    "ctc, Transformer": [{"beam": 1}, {"beam": 8}],
    "ctc, one layer": [{"beam": 1}, {"beam": 8}],
}
GREEDY_AND_BEAM = [{"beam": 1}, {"beam": 5}]
NUM_TIMED, ROUNDS = 256, 5
MAX_LOSS = {"cmudict": 2.7, "multi30k": 4.0}  # points below the teacher
MIN_SPEEDUP = 3.0


def main() -> int:
    """Runs the cells that are missing, prints the table, saves the figure; 1 if a bar is missed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--data", choices=METRIC, default="cmudict")
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--systems", default=";".join(SYSTEMS), help="separated by ;")
    parser.add_argument("--figure", type=Path)
    args = parser.parse_args()
    source = folder("REGARD_DATA", "../shared/data")
    if source is None:
        return 1
    systems = [TEACHER, *(n for n in args.systems.split(";") if n != TEACHER)]
    files = {"raw": prepare(args.data, source), "test": test_file(args.data, source)}

    def run(cell: Cell) -> Cell:
        return {"train": train, "score": score, "speed": speed}[cell["part"]](cell, files)

    name = f"nat-{args.data}"
    trained = cells_of(args, systems, "raw", [TEACHER])
    run_cells(name, trained, run)
    files["distilled"] = distill(args.data, args.minutes, files["raw"])
    parallel = [s for s in systems if s not in AUTOREGRESSIVE]
    cells = cells_of(args, systems, "distilled", parallel)  # first: the bars need these
    cells += cells_of(args, systems, "raw", systems)
    rows = run_cells(name, cells, run)
    missed = report(rows, args.data)
    if args.figure:
        plot(rows, args.data, args.figure)
    return int(missed)


def cells_of(args: Any, systems: list[str], data: str, trained: list[str]) -> list[Cell]:
    """The cells of some systems trained on `data`: training, then scores and speeds per search."""
    found: list[Cell] = []
    for system in systems:
        if system not in trained:
            continue
        about = {"data": args.data, "system": system, "on": data, "minutes": args.minutes}
        found.append({"part": "train", **about})
        for search in SEARCHES.get(system, GREEDY_AND_BEAM):
            found.append({"part": "score", **about, "search": search})
            timed = "raw" if system in AUTOREGRESSIVE else "distilled"  # equal for both data
            if data == timed and "rescore" not in search:
                found.append({"part": "speed", **about, "search": search})
    return found


def run_folder(cell: Cell) -> Path:
    name = f"{cell['system']}-{cell['on']}-{cell['minutes']:g}".replace(", ", "-").replace("+", "-")
    return WORK / cell["data"] / name


def regard(*words: object) -> str:
    """Standard output of a command of this checkout."""
    command = [*(regard_command() or [sys.executable, "-m", "regard"]), *map(str, words)]
    return subprocess.run(command, check=True, text=True, stdout=subprocess.PIPE).stdout


def prepare(data: str, source: Path) -> Path:
    """The training pairs as one TSV."""
    path = WORK / data / "train.tsv"
    if path.exists():
        return path
    path.parent.mkdir(parents=True, exist_ok=True)
    if data == "cmudict":
        path.write_bytes(gzip.decompress((source / "cmudict_g2p/train.tsv.gz").read_bytes()))
        return path
    sides = [
        gzip.decompress((source / f"multi30k/train.{side}.gz").read_bytes()).decode().splitlines()
        for side in ("en", "de")
    ]
    path.write_text("".join(f"{a}\t{b}\n" for a, b in zip(*sides, strict=True)), "utf-8")
    return path


def test_file(data: str, source: Path) -> Path:
    """The pairs that are scored, as a TSV; for CMUdict also the dev set of training."""
    path = WORK / data / "test.tsv"
    path.parent.mkdir(parents=True, exist_ok=True)
    if data == "cmudict":
        path.write_bytes(gzip.decompress((source / "cmudict_g2p/dev.tsv.gz").read_bytes()))
        return path
    for name, out in (("val", "dev.tsv"), ("test_2016_flickr", "test.tsv")):
        sides = [
            gzip.decompress((source / f"multi30k/{name}.{side}.gz").read_bytes())
            .decode()
            .splitlines()
            for side in ("en", "de")
        ]
        lines = (f"{a}\t{b}\n" for a, b in zip(*sides, strict=True))
        (path.parent / out).write_text("".join(lines), "utf-8")
    return path


def dev_file(cell: Cell, files: dict[str, Path]) -> Path:
    return files["test"] if cell["data"] == "cmudict" else files["test"].with_name("dev.tsv")


def train(cell: Cell, files: dict[str, Path]) -> Cell:
    """A run of `minutes` minutes; what it printed about itself."""
    out = run_folder(cell)
    began = time.monotonic()
    regard(
        *("train", files[cell["on"]], "--dev", dev_file(cell, files), "--out", out, "--force"),
        *("--budget", f"{cell['minutes'] * 60:g}s", *SYSTEMS[cell["system"]]),
    )
    about = json.loads((out / "run.json").read_text())
    scores = json.loads((out / "scores.json").read_text())
    return {
        "parameters": about["parameters"],
        "steps": scores["step"],
        "dev": scores["scores"],
        "seconds": round(time.monotonic() - began),
    }


def distill(data: str, minutes: float, pairs: Path) -> Path:
    """The training sources with the outputs of the teacher, by `regard distill` (beam 5)."""
    path = WORK / data / f"distilled-{minutes:g}.tsv"
    teacher = run_folder({"data": data, "system": TEACHER, "on": "raw", "minutes": minutes})
    if path.exists():
        return path
    sources = dict.fromkeys(line.split("\t")[0] for line in pairs.read_text("utf-8").splitlines())
    lines = path.with_suffix(".sources")
    lines.write_text("".join(f"{one}\n" for one in sources), "utf-8")
    regard("distill", teacher, "--input", lines, "--out", path, "--beam", 5)
    return path


def score(cell: Cell, files: dict[str, Path]) -> Cell:
    """The metrics of a run with some search settings."""
    words: list[object] = ["evaluate", run_folder(cell), files["test"], "--json", "--all"]
    for key, value in cell["search"].items():
        if key == "rescore":
            teacher = run_folder(cell | {"system": TEACHER, "on": "raw"})
            words += ["--rescore", teacher]
        else:
            words += ["--set", f"search.{key}={value}"]
    return {"scores": json.loads(regard(*words))["metrics"]}


def speed(cell: Cell, files: dict[str, Path]) -> Cell:
    """Sources per second at batch 1 and 32 with one thread, and decoder calls per source.

    For parallel models also `calls_per_second`: encoder and one decoder call, without a search.
    """
    import torch

    from regard.inference.predictor import Predictor

    torch.set_num_threads(1)
    predictor = Predictor.load(run_folder(cell))
    search = predictor.search_options(**cell["search"])
    rows = files["test"].read_text("utf-8").splitlines()
    sources = list(dict.fromkeys(line.split("\t")[0] for line in rows))[:NUM_TIMED]
    found: Cell = {}
    encoded, task = predictor.task.rows(sources), predictor.task
    for size in (1, 32):
        parts = [list(range(a, min(a + size, len(sources)))) for a in range(0, len(sources), size)]
        requests = [task.search_request(encoded, part, search) for part in parts]
        stepper = predictor.engine.stepper()
        seconds = fastest(partial(search.run, stepper), requests)
        found[f"per_second_{size}"] = round(len(sources) / seconds, 1)
        if size == 1:
            found["calls"] = count_calls(stepper, search, requests) / len(sources)
            if predictor.config.model.gives != "steps":
                once = fastest(partial(one_call, stepper), requests)
                found["calls_per_second"] = round(len(sources) / once, 1)
    return found


def fastest(run: Callable[[Any], Any], requests: list[Any]) -> float:
    """The shortest of some rounds: other work on the machine only slows rounds down."""
    import torch

    seconds = []
    with torch.inference_mode():
        for _ in range(ROUNDS + 1):
            began = time.perf_counter()
            for request in requests:
                run(request)
            seconds.append(time.perf_counter() - began)
    return min(seconds[1:])


def one_call(stepper: Any, request: Any) -> Any:
    """One pass of a parallel model: all frames, or all positions of a length like the source's."""
    import torch

    from regard.data.tensors.special import MASK

    if hasattr(stepper, "frames"):
        return stepper.frames(request.source)
    mask = request.source.mask
    return stepper.fill(torch.full(mask.shape, MASK), mask, stepper.start(request.source))


def count_calls(stepper: Any, search: Any, requests: list[Any]) -> int:
    """How often the decoder is called for these requests of one source each."""
    calls = 0
    name = next(n for n in ("step", "fill", "frames") if hasattr(stepper, n))
    own = getattr(stepper, name)

    def counted(*args: Any) -> Any:
        nonlocal calls
        calls += 1
        return own(*args)

    setattr(stepper, name, counted)
    try:
        for request in requests:
            search.run(stepper, request)
    finally:
        delattr(stepper, name)
    return calls


def table(rows: list[Cell], data: str) -> list[Cell]:
    """One row per system, data and search: quality and speed."""
    speeds = {
        (row["system"], json.dumps(row["search"])): row for row in rows if row["part"] == "speed"
    }
    found = []
    for row in rows:
        if row["part"] == "score":
            fast = speeds.get((row["system"], json.dumps(row["search"])), {})
            found.append(
                {
                    "system": row["system"],
                    "trained on": row["on"],
                    "search": ", ".join(f"{k} {v}" for k, v in row["search"].items()),
                    METRIC[data]: round(row["scores"][METRIC[data]], 2),
                    "calls": fast.get("calls"),
                    "batch 1": fast.get("per_second_1"),
                    "batch 32": fast.get("per_second_32"),
                    "one call": fast.get("calls_per_second"),
                }
            )
    return found


def report(rows: list[Cell], data: str) -> bool:
    """Prints the table and the bars; whether a bar is missed."""
    lines = table(rows, data)
    names = list(lines[0])
    print("| " + " | ".join(names) + " |\n|" + "---|" * len(names))
    for line in lines:
        print("| " + " | ".join("" if v is None else f"{v}" for v in line.values()) + " |")
    metric, missed = METRIC[data], False
    best = max(line[metric] for line in lines if line["system"] == TEACHER)
    greedy = next(line for line in lines if line["system"] == TEACHER)["batch 1"]
    ctc = [(name, "beam 1") for name in SYSTEMS if name.startswith("ctc")]
    for name, search in (*ctc, ("cmlm", "passes 4")):
        for line in lines:
            if (line["system"], line["trained on"], line["search"]) == (name, "distilled", search):
                lost = best - line[metric]
                missed |= bar(
                    f"{name}, {search}, distilled: below the teacher", lost, MAX_LOSS[data]
                )
    for line in lines:
        if line["one call"]:
            ratio = line["one call"] / greedy
            print(f"{line['system']}, {line['search']}: one call {ratio:.2f} x greedy teacher")
    ratios = [line["one call"] / greedy for line in lines if line["one call"]]
    if ratios and max(ratios) < MIN_SPEEDUP:
        print(f"MISSED: one call at batch 1: {max(ratios):.2f} x, bar {MIN_SPEEDUP} x")
        missed = True
    return missed


def bar(what: str, value: float, most: float) -> bool:
    """Prints a bar; whether it is missed."""
    print(f"{'MISSED' if value > most else 'met'}: {what}: {value:.2f}, at most {most}")
    return value > most


def plot(rows: list[Cell], data: str, path: Path) -> None:
    """Quality over speed at batch 1; a line joins the searches of a system."""
    from regard.views.figures.style import COLORS, new_figure, save, styled

    lines = [line for line in table(rows, data) if line["batch 1"]]
    with styled():
        figure = new_figure(7.0, 4.4, f"{METRIC[data]} and speed, {data}")
        axes = figure.subplots(1, 1)
        names = list(dict.fromkeys((line["system"], line["trained on"]) for line in lines))
        for system, on in names:
            own = [x for x in lines if (x["system"], x["trained on"]) == (system, on)]
            style = "o-" if on == "raw" else "s--"
            color = COLORS[[s for s in SYSTEMS].index(system) % len(COLORS)]
            label = system if on == "raw" else f"{system}, distilled"
            axes.plot(
                [x["batch 1"] for x in own], [x[METRIC[data]] for x in own], style,
                color=color, label=label, markersize=5,
            )  # fmt: skip
        axes.set_xscale("log")
        axes.set_xlabel("outputs per second, batch 1, one thread")
        axes.set_ylabel(METRIC[data])
        axes.legend(fontsize=7, frameon=False)
        save(figure, path)


if __name__ == "__main__":
    sys.exit(main())
