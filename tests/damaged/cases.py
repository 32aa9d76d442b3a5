"""Healthy runs of several tasks, and the commands that damaged folders and files are given to."""

import json
import random
import sys
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "runs"))
import corpora

BPE = ("task.source.tokenizer=bpe", "task.target.tokenizer=bpe")
RUNS = {  # name: task, settings
    "transduce": ("transduce", ()),
    "subwords": ("transduce", (*BPE, "model.encoder.width=16", "model.encoder.layers=1")),
    "tag": ("tag", ()),
    "classify": ("classify", ()),
    "regress": ("regress", ()),
    "language": ("language-model", ()),
    "ngram": ("language-model", ("model.kind=ngram",)),
}
WORDS = {"tag": "Anna sees Rome", "regress": "1,2"}


class Healthy(NamedTuple):
    """A run folder that is not damaged. data: a file to evaluate on."""

    name: str
    task: str
    folder: Path
    data: Path


def train_words(name: str, folder: Path, steps: int = 4) -> list[str]:
    """Write the data of a run; return the words of the command that trains it."""
    task, settings = RUNS[name]
    train, dev = corpora.write(task, folder)
    small = [] if settings else corpora.small(task)[4:]
    changes = [word for setting in settings for word in ("--set", setting)]
    options = ["--task", task, "--steps", str(steps), "--out", str(folder / "run")]
    return ["train", str(train), "--dev", str(dev), *options, *small, *changes]


def healthy(name: str, folder: Path) -> Healthy:
    """Return a run that `train_words` trained."""
    task = RUNS[name][0]
    (data,) = folder.glob(f"{task}-dev.*")
    return Healthy(name, task, folder / "run", data)


def folder_commands(run: Healthy, folder: Path) -> list[list[str]]:
    """Return the commands that load a model folder."""
    word, model = WORDS.get(run.task, "abc"), str(folder)
    commands = [
        ["predict", model, word],
        ["evaluate", model, str(run.data)],
        ["load", model],
        ["runs", model],
        ["diagnose", model, "--quick"],
        ["report", model],
    ]
    return commands + [["inspect", model, word]] * (run.name != "ngram")


def input_commands(run: Healthy, path: Path) -> list[list[str]]:
    """Return the commands that read a data file."""
    return [
        ["check", str(path), "--task", run.task],
        ["evaluate", str(run.folder), str(path)],
        ["predict", str(run.folder), "--input", str(path)],
    ]


def data_texts(run: Healthy, chance: random.Random) -> tuple[str, str]:
    """Return data for the task of a run in one of its formats, and the suffix of the file."""
    text = run.data.read_text("utf-8")
    found = [(text, run.data.suffix)]
    if run.task == "tag":
        found += [(corpora.conllu(20), ".conllu"), (corpora.tag_lines(20), ".tsv")]
    if run.task in ("transduce", "classify"):
        rows = [line.split("\t") for line in text.splitlines()]
        objects = [json.dumps({"source": a, "target": b}) for a, b in rows]
        found.append(("\n".join(objects) + "\n", ".jsonl"))
        found.append(("source,target\n" + "".join(f'"{a}","{b}"\n' for a, b in rows), ".csv"))
    if run.task == "language-model":
        objects = [json.dumps({"text": line}) for line in text.splitlines()]
        found.append(("\n".join(objects) + "\n", ".jsonl"))
    return chance.choice(found)
