"""How a run begins, and how it goes on from its last checkpoint."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from regard.config.defaults import fill_defaults
from regard.config.load import Config
from regard.core import parallel
from regard.core.errors import UserError
from regard.core.files import read_json
from regard.core.options import AutoSetting
from regard.data.corpus.corpora import Corpus
from regard.data.reading.read import Pair
from regard.models.max_length import check_corpus_lengths, has_max_length
from regard.storage.run_files import read_config
from regard.tasks.task import Task
from regard.training.checkpoint import load_checkpoint
from regard.training.run import Run, TrainingState, examples_of, fingerprints
from regard.training.transfer import (
    PretrainedModel,
    freeze,
    inherit_options,
    load_matching_weights,
    trained_model,
)


def start_run(
    folder: Path,
    config: Config,
    train: Sequence[Pair],
    dev: Sequence[Pair],
    origin: PretrainedModel | None = None,
) -> Run:
    """A new run: vocabularies, sizes and model, of its own or of `origin`. Nothing is written."""
    if not dev:
        raise UserError("the dev part is empty; training needs it to know its best model")
    taken: list[AutoSetting] = []
    if origin is not None:
        config, taken = inherit_options(config, origin)
    like = origin.task if origin is not None else None
    fitted = parallel.main_process_first(lambda: _fit(config, train, like))
    task, corpus, options, auto_settings, notes = fitted
    config = config.model_copy(update={"task": options})
    config, more = fill_defaults(config, task.stats(corpus))
    run = _assemble(folder, config, task, corpus, dev, origin)
    run.auto_settings, run.notes = taken + auto_settings + more, notes
    if origin is not None:
        run.notes.append(
            f"{len(run.pretrained_weights):,} weight matrices taken from {origin.folder}"
        )
    run.check = parallel.main_process_first(lambda: task.check(train, dev))
    return run


def _fit(
    config: Config, train: Sequence[Pair], like: Task | None
) -> tuple[Task, Corpus, Any, list[AutoSetting], list[str]]:
    """The task of the training examples, they as numbers, and what was chosen and left out."""
    task, options, auto_settings = config.task.fit(
        config.task.trainable(train)[0], config.model, like
    )
    kept, notes = options.trainable(train, task)
    return task, task.corpus(kept), options, auto_settings, notes


def resume_run(folder: Path, train: Sequence[Pair], dev: Sequence[Pair]) -> Run:
    """A run as its last checkpoint left it; refused where the data are not the same."""
    config = read_config(folder)
    about = read_json(folder / "run.json")
    task = config.task.load(folder)
    kept, _ = config.task.trainable(train, task)
    run = _assemble(
        folder, config, task, task.corpus(kept), dev, loaded=about.get("pretrained_weights", [])
    )
    facts = about.get("fingerprints", {})
    for name, mark in fingerprints(run).items():
        if facts.get(name) != mark:
            then, now = about.get("examples", {}).get(name), examples_of(run)[name]
            counts = f" ({then:,} examples then, {now:,} now)" if then and then != now else ""
            raise UserError(
                f"{folder}: the {name} data are not those this run began with{counts}; resume with "
                "the same files, or start anew with another --out"
            )
    run.batches = config.training.accumulation_steps * about.get("processes", 1)
    if run.batches % parallel.world_size():
        raise UserError(
            f"{folder}: an update has {run.batches} batches, which cannot be divided evenly over "
            f"{parallel.world_size()} processes; start as many processes as divide it"
        )
    load_checkpoint(run)
    return run


def _assemble(
    folder: Path,
    config: Config,
    task: Task,
    corpus: Corpus,
    dev: Sequence[Pair],
    origin: PretrainedModel | None = None,
    loaded: Sequence[str] = (),
) -> Run:
    """Model and optimizer of a filled configuration, seeded."""
    training = config.training
    torch.manual_seed(training.seed)
    device = parallel.device()
    model = task.build(config.model)
    check_corpus_lengths(model, corpus)
    if has_max_length(model):  # else they need not be made numbers yet
        check_corpus_lengths(model, task.corpus(dev))
    training.init.apply(model)
    names = list(loaded) if origin is None else load_matching_weights(model, origin)
    model = model.to(device)
    freeze(model, training.freeze)
    if not any(True for _ in model.parameters()) and training.optimizer.stepwise:
        raise UserError(
            f"training.optimizer.kind={training.optimizer.kind}: this model is counted, not "
            "trained step by step; leave the optimizer open"
        )
    if (
        training.parallel == "fsdp"
        and parallel.world_size() > 1
        and not training.optimizer.divisible
    ):
        raise UserError(
            f"training.optimizer.kind={training.optimizer.kind}: needs whole matrices, and with "
            "training.parallel=fsdp each process has a part; choose adamw, or parallel=ddp"
        )
    engine = parallel.wrap(model, training.parallel)
    config.objective.ready(trained_model)
    factors = dict.fromkeys(names, training.pretrained_lr_factor)
    return Run(
        folder=folder,
        config=config,
        task=task,
        model=model,
        engine=engine,
        optimizers=training.optimizer.build(model, training.lr or 1.0, factors),
        average=training.average.build(),
        corpus=task.reorder_for(corpus, model),
        dev=task.examples(dev),
        state=TrainingState(),
        device=device,
        batches=training.accumulation_steps * parallel.world_size(),
        pretrained_weights=names,
    )
