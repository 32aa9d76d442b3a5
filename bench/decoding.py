"""Speed of decoding compared with other systems with the same weights, in one interleaved run.

usage: VENV_EOLE=.. VENV_JOEY=.. VENV_YOYO=.. python bench/decoding.py [--repeats 5] [--part 1.0]
           [--skip translation|g2p] [--only SYSTEM ..] [--models DIR] [--work DIR]
Each system holds a loaded model in a process of its own and is stopped while another one is
measured. All systems under all settings are visited in shuffled order, several times. Reported:
medians, ratios, and whether the bars are reached.
"""

import argparse
import json
import os
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import decoding_g2p
from decoding_prepare import translation_model, write_weights
from decoding_report import bars, print_bars, print_rates, quality
from interleaved import KEEP, Setting, System, start, visit
from surroundings import BENCH, REPOSITORY, RESULTS, folder, machine

SETTINGS = [
    *(Setting(beam, 32, 1000) for beam in (1, 5)),
    *(Setting(beam, 1, 200) for beam in (1, 5)),
    Setting(1, 1, 100, alone=True),
]
LONGEST = 100  # tokens of an output
Systems = Callable[[Path, Path, Path], list[System] | None]


def options() -> argparse.Namespace:
    """What the command line asks for."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--part", type=float, default=1.0, help="share of the inputs")
    parser.add_argument("--skip", choices=["translation", "g2p"])
    parser.add_argument("--only", nargs="*", help="these systems, by the beginning of their names")
    parser.add_argument("--work", type=Path, default=REPOSITORY / "runs" / "bench-decoding")
    parser.add_argument("--models", type=Path, help="folder of the trained models; default: WORK")
    parser.add_argument("--result", type=Path, default=RESULTS / "decoding.json")
    return parser.parse_args()


def main() -> int:
    """Prepares, runs, prints and saves; 1 if something is missing or a bar is not reached."""
    args = options()
    data = folder("REGARD_DATA", "../shared/data")
    if data is None:
        return 1
    work = args.work.resolve()
    work.mkdir(parents=True, exist_ok=True)
    args.models = (args.models or work).resolve()

    record: dict = {"machine": machine()}
    halves: dict[str, tuple[Systems, list[Setting]]] = {
        "translation": (systems, SETTINGS),
        "g2p": (decoding_g2p.systems, decoding_g2p.SETTINGS),
    }
    for name, (all_systems, settings) in halves.items():
        if name == args.skip:
            continue
        found = all_systems(args.models, work, data)
        if found is None:
            return 1
        chosen = [s for s in found if args.only is None or s.name.startswith(tuple(args.only))]
        parts = [replace(s, count=max(s.batch, round(s.count * args.part))) for s in settings]
        record[name], versions = measure(chosen, parts, args.repeats, work)
        record.setdefault("versions", {}).update(versions)
        if name == "translation":
            record["quality"] = quality(list(record[name]), parts, work)
        print_rates(record[name], parts)
        record["bars"] = bars(record)
        args.result.parent.mkdir(exist_ok=True)
        args.result.write_text(json.dumps(record, indent=1) + "\n")
    print_bars(record["bars"])
    return int(any(bar["reached"] is False for bar in record["bars"]))


def measure(
    found: list[System], settings: list[Setting], repeats: int, work: Path
) -> tuple[dict, dict[str, str]]:
    """The figures of these systems and their versions; their processes are ended afterwards."""
    workers = start(found, work)
    try:
        versions = {worker.name: worker.facts["version"] for worker in workers if worker.facts}
        return visit(workers, settings, repeats, work), versions
    finally:
        for worker in workers:
            worker.end()


def systems(models: Path, work: Path, data: Path) -> list[System] | None:
    """Our engines, CTranslate2 and transformers from here, Eole and JoeyNMT from theirs."""
    model = models / "m30k"
    if not translation_model(model, data / "multi30k"):
        return None
    write_weights(model, work, data / "multi30k")
    source = {"PYTHONPATH": str(REPOSITORY / "src")}
    here = sys.executable
    found = [system(name, here, model, work, source) for name in ("ours", "ours-int8")]
    for engine in ("ctranslate2", "ctranslate2-int8", "onnx"):
        found.append(system(f"ours-{engine}", here, work / engine, work, source))
    for threads in ("1x2", "2x1"):
        for end in ("", "-int8"):
            place = work / f"ctranslate2{end}" / "ctranslate2"
            found.append(system(f"ctranslate2-{threads}{end}", here, place, work, KEEP))
    found.append(system("transformers", here, work / "transformers", work, KEEP))
    for name, variable in (("eole", "VENV_EOLE"), ("joey", "VENV_JOEY")):
        if variable not in os.environ:
            print(f"{name} is skipped: set {variable}, see bench/README.md", file=sys.stderr)
            continue
        python = str(Path(os.environ[variable], "bin", "python"))
        found.append(system(name, python, work / name, work, KEEP))
    return found


def system(name: str, python: str, model: Path, work: Path, variables: dict[str, str]) -> System:
    """A worker of decoding_worker.py."""
    files = [str(model), str(work / "source.txt"), str(work / "pieces.en"), str(LONGEST)]
    return System(name, [python, str(BENCH / "decoding_worker.py"), name, *files], variables)


if __name__ == "__main__":
    sys.exit(main())
