"""Speed of decoding beside other systems with the same weights, in one interleaved run.

usage: VENV_EOLE=.. VENV_JOEY=.. VENV_YOYO=.. python bench/decoding.py [--repeats 5] [--part 1.0]
           [--only SYSTEM ..] [--model DIR] [--work DIR]
Each system holds a loaded model in a process of its own and is stopped while another one is
measured. All systems under all settings are visited in shuffled order, several times. Reported:
medians, ratios, and whether the bars are reached.
"""

import argparse
import json
import os
import sys
from pathlib import Path

from decoding_prepare import translation_model, write_weights
from decoding_report import bars, print_bars, print_rates, quality
from interleaved import KEEP, Setting, System, start, visit
from surroundings import BENCH, REPOSITORY, RESULTS, folder, machine

SETTINGS = [(1, 32, 1000), (5, 32, 1000), (1, 1, 200), (5, 1, 200)]


def main() -> int:
    """Prepares, runs, prints and saves; 1 if something is missing or a bar is not reached."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--part", type=float, default=1.0, help="share of the sentences")
    parser.add_argument("--only", nargs="*", help="these systems, by the beginning of their names")
    parser.add_argument("--work", type=Path, default=REPOSITORY / "runs" / "bench-decoding")
    parser.add_argument("--model", type=Path, help="trained here if missing; default: WORK/m30k")
    parser.add_argument("--result", type=Path, default=RESULTS / "decoding.json")
    wish = parser.parse_args()
    data = folder("REGARD_DATA", "../shared/data")
    if data is None:
        return 1
    work = wish.work.resolve()
    work.mkdir(parents=True, exist_ok=True)
    model = (wish.model or work / "m30k").resolve()
    if not translation_model(model, data / "multi30k"):
        return 1
    write_weights(model, work, data / "multi30k")

    about = machine()
    chosen = [s for s in systems(model, work) if wanted(s.name, wish.only)]
    settings = [
        Setting(beam, batch, max(batch, round(n * wish.part))) for beam, batch, n in SETTINGS
    ]
    workers = start(chosen, work)
    try:
        rates = visit(workers, settings, wish.repeats, work, "sentences/s")
    finally:
        for worker in workers:
            worker.end()
    scores = quality(list(rates), settings, work)
    verdicts = bars(rates, scores)
    print_rates(rates, settings)
    print_bars(verdicts)
    wish.result.parent.mkdir(exist_ok=True)
    record = {"machine": about, "translation": rates, "quality": scores, "bars": verdicts}
    wish.result.write_text(json.dumps(record, indent=1) + "\n")
    return int(any(verdict["reached"] is False for verdict in verdicts))


def wanted(name: str, only: list[str] | None) -> bool:
    """Whether this system was asked for."""
    return only is None or any(name.startswith(start) for start in only)


def systems(model: Path, work: Path) -> list[System]:
    """Ours, CTranslate2 and transformers from this environment, Eole and JoeyNMT from theirs."""
    source = {"PYTHONPATH": str(REPOSITORY / "src")}
    found = [
        system("ours", sys.executable, model, work, source),
        system("ours-int8", sys.executable, model, work, source),
    ]
    for threads in ("1x2", "2x1"):
        for kind, place in (("", "ctranslate2"), ("-int8", "ctranslate2-int8")):
            name = f"ctranslate2-{threads}{kind}"
            found.append(system(name, sys.executable, work / place, work, KEEP))
    found.append(system("transformers", sys.executable, work / "transformers", work, KEEP))
    for name, variable in (("eole", "VENV_EOLE"), ("joey", "VENV_JOEY")):
        if variable not in os.environ:
            print(f"{name} is left out: set {variable}, see bench/README.md", file=sys.stderr)
            continue
        python = Path(os.environ[variable], "bin", "python")
        found.append(system(name, str(python), work / name, work, KEEP))
    return found


def system(name: str, python: str, model: Path, work: Path, variables: dict[str, str]) -> System:
    """A worker of decoding_worker.py."""
    script = str(BENCH / "decoding_worker.py")
    files = [str(model), str(work / "source.txt"), str(work / "pieces.en")]
    return System(name, [python, script, name, *files], variables)


if __name__ == "__main__":
    sys.exit(main())
