"""Loaded models in processes of their own that take turns on the same cores."""

import json
import os
import random
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from pathlib import Path

THREADS = "2"
# Freed memory is kept, which regard does by itself when it loads a model.
KEEP = {"MALLOC_MMAP_THRESHOLD_": "4000000000", "MALLOC_TRIM_THRESHOLD_": "8000000000"}


@dataclass(frozen=True)
class Setting:
    """How outputs are searched for, and for how many inputs."""

    beam: int
    batch: int
    count: int
    alone: bool = False  # each input in a call of its own

    @property
    def name(self) -> str:
        return f"beam {self.beam}, " + ("one a call" if self.alone else f"batch {self.batch}")


@dataclass(frozen=True)
class System:
    """One competitor: how its worker is started."""

    name: str
    words: list[str]
    variables: dict[str, str] = field(default_factory=dict)


class Worker:
    """A process that holds a loaded model; it is stopped whenever it is not asked."""

    def __init__(self, system: System, log: Path) -> None:
        self.name = system.name
        environment = os.environ | {
            "OMP_NUM_THREADS": THREADS,
            "MKL_NUM_THREADS": THREADS,
            "TOKENIZERS_PARALLELISM": "false",
            **system.variables,
        }
        with open(log, "w") as errors:
            self.process = subprocess.Popen(
                system.words,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                bufsize=1,
                env=environment,
            )
        self.facts = self._answer()
        if self.facts is None:
            last = log.read_text(errors="replace").strip().splitlines()[-1:]
            print(f"{self.name} is skipped: {''.join(last)} ({log})", file=sys.stderr)
        else:
            self.process.send_signal(signal.SIGSTOP)

    def _answer(self) -> dict | None:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        return json.loads(line) if line else None

    def ask(self, setting: Setting, output: Path) -> dict | None:
        """The seconds it took and what came out; None if the process died."""
        assert self.process.stdin is not None
        self.process.send_signal(signal.SIGCONT)
        time.sleep(0.05)
        wanted = json.dumps(asdict(setting) | {"output": str(output)})
        try:
            self.process.stdin.write(wanted + "\n")
            found = self._answer()
        except BrokenPipeError:
            found = None
        if found is not None:
            self.process.send_signal(signal.SIGSTOP)
        return found

    def end(self) -> None:
        """Ends the process."""
        self.process.kill()
        self.process.wait()


def start(systems: Iterable[System], folder: Path) -> list[Worker]:
    """The workers that could be loaded."""
    workers = []
    for system in systems:
        worker = Worker(system, folder / f"{system.name}.log")
        if worker.facts is None:
            worker.end()
            continue
        print(f"loaded {system.name}", flush=True)
        workers.append(worker)
    return workers


def visit(
    workers: list[Worker], settings: list[Setting], repeats: int, folder: Path
) -> dict[str, dict[str, dict]]:
    """Figures of each system under each setting, visited in shuffled order, `repeats` times."""
    answers: dict[tuple[str, str], list[dict]] = {}
    order = random.Random(3)
    for turn in range(repeats):
        todo = [(worker, setting) for worker in workers for setting in settings]
        order.shuffle(todo)
        for worker, setting in todo:
            found = worker.ask(setting, output_of(folder, worker.name, setting))
            if found is None:
                raise RuntimeError(f"{worker.name} ended: see {folder / worker.name}.log")
            answers.setdefault((worker.name, setting.name), []).append(found)
            rate = found["sentences"] / found["seconds"]
            print(f"{turn + 1}: {worker.name}, {setting.name}: {rate:,.1f}/s", flush=True)
    return {
        worker.name: {
            setting.name: summary(answers[worker.name, setting.name]) for setting in settings
        }
        for worker in workers
    }


def output_of(folder: Path, system: str, setting: Setting) -> Path:
    """Where the outputs of a system under a setting lie."""
    return folder / f"{system}.{setting.name.replace(', ', '_').replace(' ', '')}.out"


def summary(answers: list[dict]) -> dict[str, object]:
    """Median and all rates, and what came out."""
    rates = [answer["sentences"] / answer["seconds"] for answer in answers]
    last = answers[-1]
    return {
        "median": round(statistics.median(rates), 2),
        "rates": [round(rate, 2) for rate in rates],
        "a processor second": round(
            statistics.median(answer["sentences"] / answer["processor"] for answer in answers), 2
        ),
        "count": last["sentences"],
        "length": round(last["tokens"] / last["sentences"], 2),
    }
