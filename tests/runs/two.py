"""What one or two processes train: run by forks, and by the tests themselves."""

import json
import random
from itertools import islice
from pathlib import Path
from typing import Any

from regard.config.load import check_config
from regard.core import parallel
from regard.core.errors import UserError
from regard.data.reading.read import Pair
from regard.storage.weights import save_weights
from regard.training.checkpoint import save_checkpoint
from regard.training.describe import describe
from regard.training.loop import train
from regard.training.run import Run
from regard.training.start import resume_run, start_run
from regard.training.validation import evaluate

STEPS = 6
SMALL = {"width": 16, "layers": 2, "dropout": 0.1}
TRANSFORMER = {"kind": "transformer", "heads": 2, "feedforward_width": 32, **SMALL}
RECURRENT = {"kind": "recurrent", **SMALL}
CHARACTERS = {"source": {"tokenizer": "char"}, "target": {"tokenizer": "char"}}

Task = dict[str, Any]
TASKS: dict[str, Task] = {
    "transformer": {"task": CHARACTERS, "model": {"encoder": TRANSFORMER, "decoder": TRANSFORMER}},
    "recurrent": {"task": CHARACTERS, "model": {"encoder": RECURRENT, "decoder": RECURRENT}},
    "tag": {"task": {"kind": "tag"}, "model": {"encoder": RECURRENT, "head": "crf"}},
    "language-model": {
        "task": {"kind": "language-model", "tokenizer": "char", "context_length": 4},
        "model": {"decoder": RECURRENT | {"dropout": 0.0}},  # rows of a batch have their own noise
    },
}
RUNS: dict[str, tuple[str, dict[str, Any]]] = {
    **{f"{task}-{kind}": (task, {"parallel": kind}) for task in TASKS for kind in ("ddp", "fsdp")},
    "ema-ddp": ("transformer", {"average": {"kind": "ema", "decay": 0.9}}),
    "ema-fsdp": ("transformer", {"parallel": "fsdp", "average": {"kind": "ema", "decay": 0.9}}),
    "sgd-fsdp": ("transformer", {"parallel": "fsdp", "lr": 0.3, "optimizer": {"kind": "sgd"}}),
    "adagrad-fsdp": ("transformer", {"parallel": "fsdp", "optimizer": {"kind": "adagrad"}}),
    "muon-ddp": ("transformer", {"optimizer": {"kind": "muon"}}),
    "bfloat16-ddp": ("transformer", {"precision": "bfloat16"}),
    "float16-fsdp": ("transformer", {"parallel": "fsdp", "precision": "float16"}),
}


def pairs(task: str) -> list[Pair]:
    """Examples that are the same in every process."""
    draw = random.Random(1)
    words = ["".join(draw.choices("abcde", k=draw.randint(1, 9))) for _ in range(61)]
    if task == "tag":
        return [Pair(tuple(w), tuple("x" if c in "ab" else "y" for c in w), 0) for w in words]
    if task == "language-model":
        return [Pair("", " ".join(words[i::3]), i) for i in range(3)]
    return [Pair(word, word[::-1], line) for line, word in enumerate(words, 1)]


def begin(name: str, folder: Path, accumulate: int) -> Run:
    """A new run, described in its folder."""
    task, training = RUNS[name]
    usual = {"steps": STEPS, "batch_tokens": 30, "lr": 0.01, "accumulation_steps": accumulate}
    config = check_config({**TASKS[task], "training": usual | training}, name)
    run = start_run(folder, config, pairs(task), pairs(task)[:9])
    describe(run, {})
    return run


def losses(run: Run, steps: int = STEPS) -> list[list[float]]:
    """Loss and gradient norm of each update."""
    return [[record.loss, record.norm] for record in islice(train(run), steps)]


def again(name: str, folder: Path) -> Run:
    """The run of a folder, as after a restart."""
    task = RUNS[name][0]
    return resume_run(folder, pairs(task), pairs(task)[:9])


def whole_and_parts(name: str, folder: Path, accumulate: int) -> dict[str, Any]:
    """A run, the same one with a restart in its middle, and the scores of its model."""
    run = begin(name, folder / "whole", accumulate)
    found: dict[str, Any] = {"losses": losses(run)}
    save_weights(run.model, folder / "whole.safetensors")
    result = evaluate(run, run.dev)
    answers = [prediction.text for prediction in result.predictions]
    found |= {"dev": result.loss, "scores": result.scores, "answers": answers}
    first = begin(name, folder / "parts", accumulate)
    losses(first, 3)
    save_checkpoint(first)
    parallel.barrier()
    second = again(name, folder / "parts")
    assert second.state.step == 3
    found["fresh"] = evaluate(second, second.dev).loss  # before it has made a step
    found["rest"] = losses(second)
    save_weights(second.model, folder / "parts.safetensors")
    return found


def unsupported(kind: str, folder: Path) -> str:
    """What is reported of an optimizer that does not support sharded matrices."""
    RUNS[kind] = ("transformer", {"parallel": "fsdp", "optimizer": {"kind": kind}})
    try:
        begin(kind, folder, 1)
    except UserError as error:
        return str(error)
    return ""


def main(folder: Path) -> None:
    """All runs, and those that one process began."""
    with parallel.process_group():
        assert parallel.world_size() == 2
        found = {n: whole_and_parts(n, folder / "two" / n, accumulate=2) for n in RUNS}
        other = {}
        for name in RUNS:
            run = again(name, folder / "one" / name / "parts")
            other[name] = losses(run)
        whole = {k: unsupported(k, folder / k) for k in ("adafactor", "muon")}
        if parallel.is_main_process():
            every = {"two": found, "other": other, "unsupported": whole}
            (folder / "two.json").write_text(json.dumps(every))
