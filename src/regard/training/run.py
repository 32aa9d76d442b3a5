"""A run: everything that training needs, and the folder it lies in."""

import hashlib
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from regard import parallel
from regard.config import Config, check_config, read_yaml
from regard.data.corpus import Corpus
from regard.data.read import Example, Pair
from regard.errors import UserError
from regard.files import read_json
from regard.model_folder import not_a_model
from regard.models.places import limited, refuse_long_corpus
from regard.nn.state import Tree
from regard.presets import fill
from regard.tasks.base import Choice, Found, Task
from regard.training.average import Average
from regard.training.checkpoint import Progress, load_checkpoint
from regard.training.transfer import Origin, adopt, freeze, transplant

FORMAT = 2  # of the run folder; a larger number is not understood by older versions


@dataclass
class Run:
    """What is trained, on what, and how far it is."""

    folder: Path
    config: Config
    task: Task
    model: nn.Module
    engine: nn.Module  # what training calls: the model, or the model in touch with other processes
    optimizers: list[torch.optim.Optimizer]
    average: Average
    corpus: Corpus
    dev: list[Example]
    progress: Progress
    device: torch.device
    batches: int = 1  # in an update, of all processes together
    check: Found | None = None
    chosen: list[Choice] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    loaded: list[str] = field(default_factory=list)  # weights that came from another model
    carry: Tree = None  # what the last batch left for the next, where batches follow each other
    kept: list[torch.Tensor] = field(default_factory=list)  # a gradient: see noise.py
    interrupted: list[int] = field(default_factory=list)  # signals that ask for an end
    order: tuple[int, list[np.ndarray]] | None = None  # of the epoch with this number
    epoch_batches: int = 1
    began: float = 0.0

    def start_clock(self) -> None:
        """Training goes on now, after the seconds it took so far."""
        self.began = time.monotonic() - self.progress.seconds

    def read_clock(self) -> None:
        """Notes in the progress how long training took so far, validation included."""
        self.progress.seconds = parallel.agreed(time.monotonic() - self.began)

    def weights(self) -> list[nn.Parameter]:
        """The weights that are trained."""
        return [parameter for parameter in self.model.parameters() if parameter.requires_grad]

    @property
    def lane(self) -> int:
        """Which rows of each batch are this process's, where batches follow each other."""
        return parallel.rank() if self.corpus.sequential else 0

    @property
    def parameters(self) -> int:
        """Trained numbers, tied ones once; of a model that is counted, its tables."""
        trained = sum(parameter.numel() for parameter in self.model.parameters())
        return trained or sum(table.numel() for table in self.model.buffers())


def start_run(
    folder: Path,
    config: Config,
    train: Sequence[Pair],
    dev: Sequence[Pair],
    origin: Origin | None = None,
) -> Run:
    """A new run: vocabularies, sizes and model, of its own or of `origin`. Nothing is written."""
    if not dev:
        raise UserError("the dev part is empty; training needs it to know its best model")
    taken: list[Choice] = []
    if origin is not None:
        config, taken = adopt(config, origin)
    like = origin.task if origin is not None else None
    fitted = parallel.in_turn(lambda: _fit(config, train, like))
    task, corpus, options, chosen, notes = fitted
    config = config.model_copy(update={"task": options})
    config, more = fill(config, task.facts(corpus))
    run = _assemble(folder, config, task, corpus, dev, origin)
    run.chosen, run.notes = taken + chosen + more, notes
    if origin is not None:
        run.notes.append(f"{len(run.loaded):,} weight matrices taken from {origin.folder}")
    run.check = parallel.in_turn(lambda: task.check(train, dev))
    return run


def _fit(
    config: Config, train: Sequence[Pair], like: Task | None
) -> tuple[Task, Corpus, Any, list[Choice], list[str]]:
    """The task of the training examples, they as numbers, and what was chosen and left out."""
    task, options, chosen = config.task.fit(config.task.usable(train)[0], config.model, like)
    kept, notes = options.usable(train, task)
    return task, task.corpus(kept), options, chosen, notes


def resume_run(folder: Path, train: Sequence[Pair], dev: Sequence[Pair]) -> Run:
    """A run as its last checkpoint left it; refused where the data are not the same."""
    config = read_config(folder)
    about = read_json(folder / "run.json")
    if about.get("format", 0) < FORMAT:
        raise UserError(
            f"{folder}: begun by regard {about.get('version')}, whose batches had another order: "
            f"it cannot go on as it was; train further from its best model with --from {folder}"
        )
    task = config.task.load(folder)
    kept, _ = config.task.usable(train, task)
    run = _assemble(folder, config, task, task.corpus(kept), dev, loaded=about.get("loaded", []))
    facts = about.get("fingerprints", {})
    for name, mark in fingerprints(run).items():
        if facts.get(name) != mark:
            then, now = about.get("examples", {}).get(name), examples_of(run)[name]
            counts = f" ({then:,} examples then, {now:,} now)" if then and then != now else ""
            raise UserError(
                f"{folder}: the {name} data are not those this run began with{counts}; resume with "
                "the same files, or start anew with another --out"
            )
    run.batches = config.training.accumulate * about.get("processes", 1)
    if run.batches % parallel.size():
        raise UserError(
            f"{folder}: an update has {run.batches} batches, which cannot be divided evenly over "
            f"{parallel.size()} processes; start as many processes as divide it"
        )
    load_checkpoint(run)
    return run


def check_version(folder: Path) -> None:
    """Refuses a run folder of a newer regard, whose settings this one cannot know."""
    path = folder / "run.json"
    facts = read_json(path) if path.exists() else {}
    if facts.get("format", 0) > FORMAT:
        raise UserError(
            f"{folder}: made by regard {facts.get('version')}, which is newer than this one; "
            "update with pip install -U regard"
        )


def trained_on(folder: Path) -> dict[str, Any]:
    """Where the training data of a run lay, and its columns, as far as that is known."""
    path = folder / "run.json"
    return (read_json(path).get("data") or {}) if path.exists() else {}


def read_config(folder: Path) -> Config:
    """The filled configuration of a run folder."""
    path = folder / "config.yaml"
    if not path.is_file():
        raise UserError(not_a_model(folder))
    tree = read_yaml(path)
    if not tree:
        raise UserError(f"{path}: empty, so the model folder is damaged; copy it anew")
    return check_config(tree, str(path))


def fingerprints(run: Run) -> dict[str, str]:
    """Digests of the training and the dev examples, in their order."""
    dev = hashlib.sha256()
    for example in run.dev:
        dev.update(repr(example).encode("utf-8", "backslashreplace"))
    return {"training": run.corpus.digest(), "dev": dev.hexdigest()[:32]}


def examples_of(run: Run) -> dict[str, int]:
    """How many examples each part has."""
    return {"training": len(run.corpus), "dev": len(run.dev)}


def _assemble(
    folder: Path,
    config: Config,
    task: Task,
    corpus: Corpus,
    dev: Sequence[Pair],
    origin: Origin | None = None,
    loaded: Sequence[str] = (),
) -> Run:
    """Model and optimiser of a filled configuration, seeded."""
    training = config.training
    torch.manual_seed(training.seed)
    device = parallel.device()
    model = task.build(config.model)
    refuse_long_corpus(model, corpus)
    if limited(model):  # else they need not be made numbers yet
        refuse_long_corpus(model, task.corpus(dev))
    training.init.apply(model)
    names = list(loaded) if origin is None else transplant(model, origin)
    model = model.to(device)
    freeze(model, training.freeze)
    if not any(True for _ in model.parameters()) and training.optimizer.kind != "exact":
        raise UserError(
            f"training.optimizer.kind={training.optimizer.kind}: this model is counted, not "
            "trained step by step; leave the optimiser open"
        )
    if training.parallel == "fsdp" and parallel.size() > 1 and not training.optimizer.divisible:
        raise UserError(
            f"training.optimizer.kind={training.optimizer.kind}: needs whole matrices, and with "
            "training.parallel=fsdp each process has a part; choose adamw, or parallel=ddp"
        )
    engine = parallel.wrap(model, training.parallel)
    factors = dict.fromkeys(names, training.loaded_lr)
    return Run(
        folder=folder,
        config=config,
        task=task,
        model=model,
        engine=engine,
        optimizers=training.optimizer.build(model, training.lr or 1.0, factors),
        average=training.average.build(),
        corpus=task.suited(corpus, model),
        dev=task.examples(dev),
        progress=Progress(),
        device=device,
        batches=training.accumulate * parallel.size(),
        loaded=names,
    )
