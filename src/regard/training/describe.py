"""Metadata of a run, written before its first step."""

from dataclasses import asdict
from typing import Any

from regard.config.load import changed
from regard.core import parallel
from regard.core.files import write_json, write_text
from regard.core.version import __version__
from regard.storage.run_files import FORMAT_VERSION
from regard.training.checkpoint import save_checkpoint
from regard.training.run import Run, examples_of, fingerprints


def describe(run: Run, extra: dict[str, Any]) -> None:
    """Write all files that are known before the first step.

    `run.json` is written last, since it marks a run. extra: additional fields of `run.json`.
    """
    if parallel.is_main_process():
        _write_settings(run)
    if run.pretrained_weights:  # on resume they are read from the checkpoint
        save_checkpoint(run)
    metadata = {
        "name": run.folder.name,
        "task": run.config.task.kind,
        "metric": run.task.metric,
        "parameters": run.parameters,
        "device": str(run.device),
        "format": FORMAT_VERSION,
        "version": __version__,
        "fingerprints": fingerprints(run),
        "examples": examples_of(run),
        "processes": parallel.world_size(),
        "pretrained_weights": run.pretrained_weights,
        **extra,
    }
    if parallel.is_main_process():
        write_json(run.folder / "run.json", metadata)
    parallel.barrier()


def _write_settings(run: Run) -> None:
    """Write settings, vocabulary and the result of the data check."""
    run.folder.mkdir(parents=True, exist_ok=True)
    write_text(run.folder / "version.txt", f"{__version__}\n")  # marks a folder of regard
    write_text(run.folder / "config.yaml", run.config.dump())
    run.task.save(run.folder)
    settings = {"changed": changed(run.config), "auto": [asdict(s) for s in run.auto_settings]}
    if run.user_settings is not None:
        settings["user"] = sorted(run.user_settings)
    write_json(run.folder / "settings.json", settings)
    if run.check is not None:
        write_json(run.folder / "check.json", {**run.check.as_dict(), "lines": run.check.lines()})
