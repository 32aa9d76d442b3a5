"""Creation of a new run, and restoration of a run from its last checkpoint."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from regard.config.defaults import fill_defaults
from regard.config.load import Config, user_settings
from regard.core import parallel
from regard.core.errors import UserError, warn
from regard.core.files import read_json
from regard.core.machine import Machine, measure_machine
from regard.core.options import AutoSetting
from regard.data.corpus.corpora import Corpus
from regard.data.reading.read import Pair
from regard.data.sources.large import select_pairs
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
    pretrained: PretrainedModel | None = None,
) -> Run:
    """Return a new run, optionally initialized from a pretrained model. Write no files."""
    if not dev:
        raise UserError("the dev set is empty: it is needed to select the best model")
    set_by_user = user_settings(config)
    inherited: list[AutoSetting] = []
    if pretrained is not None:
        config, inherited = inherit_options(config, pretrained)
    like = pretrained.task if pretrained is not None else None
    fitted = parallel.main_process_first(lambda: _fit(config, train, like))
    task, kept, corpus, options, auto_settings, notes = fitted
    config = config.model_copy(update={"task": options})
    stats = task.stats(corpus)
    if config.training.budget:
        measured = measure_machine() if parallel.is_main_process() else Machine()
        stats = replace(stats, machine=parallel.broadcast(measured))
    config, more = fill_defaults(config, stats)
    run = _assemble(folder, config, task, (kept, corpus), dev, pretrained)
    notes += _unpredictable(config, task, dev)
    run.auto_settings, run.notes = inherited + auto_settings + more, notes
    run.user_settings = set_by_user
    if pretrained is not None:
        run.notes.append(
            f"initialized {len(run.pretrained_weights):,} weight tensors from {pretrained.folder}"
        )
    elif config.objective.starts_trained:
        warn(
            f"objective.kind={config.objective.kind}: improves a trained model, but this run "
            "starts from random weights",
            help="train with cross entropy first, then add --init-from RUN",
        )
    run.check = parallel.main_process_first(lambda: task.check(train, dev))
    return run


def _fit(
    config: Config, train: Sequence[Pair], like: Task | None
) -> tuple[Task, Sequence[Pair], Corpus, Any, list[AutoSetting], list[str]]:
    """Fit the task to the training data, e.g. build its vocabularies.

    Return the task, the examples to train on, their corpus, the complete options, the automatic
    settings, and notes to print.
    like: the task of the pretrained model, whose vocabularies are reused.
    """
    task, options, auto_settings = config.task.fit(
        config.task.trainable(train)[0], config.model, like
    )
    kept, notes = options.trainable(train, task)
    kept, corpus, more = _learnable(config, task, kept)
    return task, kept, corpus, options, auto_settings, notes + more


def _learnable(
    config: Config, task: Task, pairs: Sequence[Pair]
) -> tuple[Sequence[Pair], Corpus, list[str]]:
    """Return the examples that the model can learn, their corpus, and a note on the others."""
    corpus = task.corpus(pairs)
    found = config.model.unfit(corpus, task.source.kind)
    if found is None or not found[0].any():
        return pairs, corpus, []
    unfit, why = found
    kept = select_pairs(pairs, ~unfit)
    if not kept:
        raise UserError(f"no pairs to train on: all are {why}")
    return kept, task.corpus(kept), [f"skipped: {int(unfit.sum()):,} pairs {why}"]


def _unpredictable(config: Config, task: Task, dev: Sequence[Pair]) -> list[str]:
    """Return a note on the dev examples that the model cannot predict, if there are any."""
    found = config.model.unfit(task.corpus(dev), task.source.kind)
    if found is None or not found[0].any():
        return []
    count = f"{int(found[0].sum()):,} of {len(dev):,} dev pairs"
    return [f"note: {count} are {found[1]}: the model cannot predict them"]


def resume_run(folder: Path, train: Sequence[Pair], dev: Sequence[Pair]) -> Run:
    """Return a run restored from its last checkpoint; raise UserError if the data changed."""
    config = read_config(folder)
    metadata = read_json(folder / "run.json")
    task = config.task.load(folder)
    kept, _ = config.task.trainable(train, task)
    kept, corpus, _ = _learnable(config, task, kept)
    run = _assemble(
        folder,
        config,
        task,
        (kept, corpus),
        dev,
        weight_names=metadata.get("pretrained_weights", []),
    )
    saved = metadata.get("fingerprints", {})
    for name, digest in fingerprints(run).items():
        if saved.get(name) != digest:
            then, now = metadata.get("examples", {}).get(name), examples_of(run).get(name)
            counts = f" ({then:,} examples then, {now:,} now)" if then and then != now else ""
            what = f"{name} data" if now is not None else name
            raise UserError(
                f"{folder}: the {what} changed since this run started{counts}",
                help="resume with the same files, or start a new run with another --out",
            )
    run.batches = config.training.accumulation_steps * metadata.get("processes", 1)
    if run.batches % parallel.world_size():
        raise UserError(
            f"{folder}: {run.batches} batches per update do not divide evenly among "
            f"{parallel.world_size()} processes",
            help=f"use a divisor of {run.batches}",
        )
    load_checkpoint(run)
    return run


def _assemble(
    folder: Path,
    config: Config,
    task: Task,
    train: tuple[Sequence[Pair], Corpus],
    dev: Sequence[Pair],
    pretrained: PretrainedModel | None = None,
    weight_names: Sequence[str] = (),
) -> Run:
    """Seed torch, build model and optimizers from a complete configuration, and return the run.

    train: the training examples, and their corpus. weight_names: on resume, the weights that came
    from a pretrained model.
    """
    training, (pairs, corpus) = config.training, train
    torch.manual_seed(training.seed)
    device = parallel.device()
    model = task.build(config.model)
    check_corpus_lengths(model, corpus)
    if has_max_length(model):  # otherwise encode the dev set later
        check_corpus_lengths(model, task.corpus(dev))
    training.init.apply(model)
    names = list(weight_names) if pretrained is None else load_matching_weights(model, pretrained)
    model = model.to(device)
    freeze(model, training.freeze)
    if not any(True for _ in model.parameters()) and training.optimizer.stepwise:
        raise UserError(
            f"training.optimizer.kind={training.optimizer.kind}: not supported for a count-based "
            "model",
            help="drop training.optimizer",
        )
    if (
        training.parallel == "fsdp"
        and parallel.world_size() > 1
        and not training.optimizer.divisible
    ):
        raise UserError(
            f"training.optimizer.kind={training.optimizer.kind}: not supported with "
            "training.parallel=fsdp, which shards matrices",
            help="use adamw, or training.parallel=ddp",
        )
    engine = parallel.wrap(model, training.parallel)
    config.objective.ready(lambda folder: trained_model(folder, task))
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
        baseline_data=task.baseline_sample(pairs) if parallel.is_main_process() else ((), ""),
    )
