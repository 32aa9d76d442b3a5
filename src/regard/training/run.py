"""A run: everything that training needs, and the folder it lies in."""

import hashlib
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import nn

from regard.config import Config, changed, check_config, read_yaml
from regard.data.check import Check, check
from regard.data.corpus import Corpus
from regard.data.read import Example, Pair, group
from regard.errors import UserError
from regard.files import read_json, write_json, write_text
from regard.presets import fill
from regard.tasks.base import Choice, Task
from regard.training.checkpoint import Progress, load_checkpoint
from regard.version import __version__

FORMAT = 1  # of the run folder; a larger number is not understood by older versions


@dataclass
class Run:
    """What is trained, on what, and how far it is."""

    folder: Path
    config: Config
    task: Task
    model: nn.Module
    optimizer: torch.optim.Optimizer
    corpus: Corpus
    dev: list[Example]
    progress: Progress
    device: torch.device
    check: Check | None = None
    chosen: list[Choice] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    epoch_batches: int = 1
    began: float = 0.0

    def start_clock(self) -> None:
        """Training goes on now, after the seconds it took so far."""
        self.began = time.monotonic() - self.progress.seconds

    def read_clock(self) -> None:
        """Notes in the progress how long training took so far, validation included."""
        self.progress.seconds = time.monotonic() - self.began

    @property
    def parameters(self) -> int:
        """Trained numbers, tied ones once."""
        return sum(p.numel() for p in self.model.parameters())


def best_device() -> torch.device:
    """The GPU where there is one."""
    return torch.device("cuda" if torch.cuda.is_available() else "cpu")


def start_run(folder: Path, config: Config, train: Sequence[Pair], dev: Sequence[Pair]) -> Run:
    """A new run: vocabularies, sizes and model. Nothing is written yet."""
    if not dev:
        raise UserError("the dev part is empty; training needs it to know its best model")
    task, options, chosen = config.task.fit(usable(train, None)[0])
    config = config.model_copy(update={"task": options})
    kept, notes = usable(train, options.max_length, task)
    corpus = task.corpus(kept)
    config, more = fill(config, task.facts(corpus))
    run = _assemble(folder, config, task, corpus, dev)
    run.chosen, run.notes = chosen + more, notes
    run.check = check(list(train), list(dev), task.source, task.target, options.max_length)
    return run


def resume_run(folder: Path, train: Sequence[Pair], dev: Sequence[Pair]) -> Run:
    """A run as its last checkpoint left it; refused where the data are not the same."""
    config = read_config(folder)
    task = config.task.load(folder)
    kept, _ = usable(train, config.task.max_length, task)
    run = _assemble(folder, config, task, task.corpus(kept), dev)
    facts = read_json(folder / "run.json").get("fingerprints", {})
    for name, mark in fingerprints(run).items():
        if facts.get(name) != mark:
            raise UserError(
                f"{folder}: the {name} data are not those this run began with; resume with the "
                "same files, or start anew with another --out"
            )
    run.progress = load_checkpoint(folder, run.model, run.optimizer) or run.progress
    return run


def read_config(folder: Path) -> Config:
    """The filled configuration of a run folder."""
    path = folder / "config.yaml"
    if not path.is_file():
        raise UserError(f"{folder}: not a model folder (no config.yaml in it)")
    tree = read_yaml(path)
    if not tree:
        raise UserError(f"{path}: empty, so the model folder is damaged; copy it anew")
    return check_config(tree, str(path))


def usable(
    pairs: Sequence[Pair], limit: int | None, task: Task | None = None
) -> tuple[list[Pair], list[str]]:
    """The pairs that can be trained on, and a line for each reason others cannot."""
    kept = [pair for pair in pairs if not pair.empty()]
    notes = []
    if len(kept) < len(pairs):
        notes.append(
            f"{len(pairs) - len(kept):,} pairs with an empty side are left out of training"
        )
    if limit is not None and task is not None:
        lengths = task.corpus(kept).lengths.max(1) - 1
        short = [pair for pair, length in zip(kept, lengths, strict=True) if length <= limit]
        if len(short) < len(kept):
            notes.append(
                f"{len(kept) - len(short):,} pairs longer than task.max_length={limit} symbols are "
                "left out of training"
            )
        kept = short
    if not kept:
        long = f" or is longer than task.max_length={limit}" if limit else ""
        raise UserError(f"no example is left to train on: every pair has an empty side{long}")
    return kept, notes


def fingerprints(run: Run) -> dict[str, str]:
    """Digests of the training and the dev examples, in their order."""
    train, dev = hashlib.sha256(), hashlib.sha256()
    for side in (run.corpus.source, run.corpus.target):
        train.update(side.flat.tobytes())
        train.update(side.lengths.tobytes())
    for example in run.dev:
        dev.update(repr(example).encode("utf-8", "backslashreplace"))
    return {"training": train.hexdigest()[:32], "dev": dev.hexdigest()[:32]}


def _assemble(folder: Path, config: Config, task: Task, corpus: Corpus, dev: Sequence[Pair]) -> Run:
    """Model and optimiser of a filled configuration, seeded."""
    torch.manual_seed(config.training.seed)
    device = best_device()
    model = task.build(config.model).to(device)
    assert config.training.lr is not None
    optimizer = config.training.optimizer.build(model, config.training.lr)
    return Run(folder, config, task, model, optimizer, corpus, group(dev), Progress(), device)


def describe(run: Run, about: dict[str, Any]) -> None:
    """Writes everything about the run that is known before the first step."""
    run.folder.mkdir(parents=True, exist_ok=True)
    write_text(run.folder / "config.yaml", run.config.dump())
    run.task.save(run.folder)
    settings = {"changed": changed(run.config), "chosen": [asdict(c) for c in run.chosen]}
    write_json(run.folder / "settings.json", settings)
    if run.check is not None:
        write_json(run.folder / "check.json", {**run.check.as_dict(), "lines": run.check.lines()})
    facts = {
        "name": run.folder.name,
        "metric": run.task.metric,
        "parameters": run.parameters,
        "device": str(run.device),
        "format": FORMAT,
        "version": __version__,
        "fingerprints": fingerprints(run),
        **about,
    }
    write_json(run.folder / "run.json", facts)
    write_text(run.folder / "version.txt", f"{__version__}\n")
