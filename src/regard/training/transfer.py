"""Initialization of a run from a pretrained model: vocabulary, settings and matching weights."""

from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor, nn

from regard.config.load import Config, check_config
from regard.core import parallel
from regard.core.errors import UserError
from regard.core.options import AutoSetting
from regard.storage.run_files import read_config
from regard.storage.weights import load_weights, read_tensors
from regard.tasks.task import Task


@dataclass(frozen=True)
class PretrainedModel:
    """The model that a run is initialized from."""

    folder: Path
    config: Config
    task: Task
    tensors: dict[str, Tensor]


def read_pretrained(folder: Path, config: Config) -> PretrainedModel:
    """Return the pretrained model in a run folder. config: the configuration of that run."""
    if (folder / "export.json").exists():
        raise UserError(
            f"{folder}: an exported model cannot be trained",
            help="use the run folder it was exported from",
        )
    task = config.task.load(folder)
    return PretrainedModel(folder, config, task, read_tensors(folder / "model.safetensors"))


def trained_model(folder: str, like: Task) -> nn.Module:
    """Return the model in a run folder, frozen, for objectives that learn from another model.

    like: the task of the run. Raise UserError if the model reads or writes other tokens.
    """
    config = read_config(Path(folder))
    task = config.task.load(Path(folder))
    if task.kind != like.kind:
        raise UserError(f"{folder}: expected a model of task {like.kind}, found {task.kind}")
    for side in ("source", "target"):
        own, other = getattr(like, side, None), getattr(task, side, None)
        if own is not None and (other is None or own.content() != other.content()):
            raise UserError(
                f"{folder}: the {side} vocabulary differs from that of this run",
                help=f"train on the same data with the same tokenizers, or with --init-from "
                f"{folder}, which also copies the vocabularies",
            )
    model = task.build(config.model)
    load_weights(model, Path(folder) / "model.safetensors")
    return model.to(parallel.device()).eval().requires_grad_(False)


def inherit_options(
    config: Config, pretrained: PretrainedModel
) -> tuple[Config, list[AutoSetting]]:
    """Return the configuration with unset model settings copied from the pretrained model.

    Also return the copied settings.
    """
    tree, auto_settings = config.model_dump(mode="json"), list[AutoSetting]()
    chosen = config.model_dump(mode="json", exclude_unset=True)
    # objective and search fit the inherited model, unless the user set them
    tree |= {name: chosen.get(name, {}) for name in ("objective", "search")}
    defaults = type(config.model)().model_dump(mode="json")
    skipped = (
        {"kind"}
        if type(config.model) is type(pretrained.config.model)
        else {"kind", "tie_embeddings"}
    )
    for name, theirs in pretrained.config.model.model_dump(mode="json").items():
        if name not in defaults or name in skipped | config.model.derived:
            continue
        ours, default = tree["model"][name], defaults[name]
        if isinstance(ours, dict):
            if ours.get("kind", "auto") not in ("auto", theirs.get("kind")):
                continue  # the user set another kind
            changed = {k: v for k, v in ours.items() if k != "kind" and v != default.get(k)}
            tree["model"][name] = (
                theirs | ({"dropout": None} if "dropout" in theirs else {}) | changed
            )
        elif theirs != ours == default:
            tree["model"][name] = theirs
        else:
            continue
        kind = theirs.get("kind", "the same") if isinstance(theirs, dict) else theirs
        auto_settings.append(AutoSetting(f"model.{name}", kind, f"as in {pretrained.folder}"))
    return check_config(tree, "settings"), auto_settings


def load_matching_weights(model: nn.Module, pretrained: PretrainedModel) -> list[str]:
    """Copy the pretrained weights whose name and shape match the model; return their names."""
    own = dict(model.named_parameters())
    theirs = pretrained.tensors
    fitting = [n for n, p in own.items() if n in theirs and theirs[n].shape == p.shape]
    body = [name for name in own if not name.startswith("head")] or list(own)
    if not set(fitting) & set(body):
        raise UserError(
            f"--init-from {pretrained.folder}: no weight matches this model by name and shape",
            help="remove the model.* settings, or use a pretrained model of the same architecture",
        )
    with torch.no_grad():
        for name in fitting:
            own[name].copy_(theirs[name])
    return fitting


def freeze(model: nn.Module, prefixes: list[str]) -> None:
    """Freeze the weights whose names start with these dotted prefixes, such as `encoder.layers`."""
    for prefix in prefixes:
        found = [p for name, p in model.named_parameters() if f"{name}.".startswith(f"{prefix}.")]
        if not found:
            names = [name for name, _ in model.named_parameters()]
            tops = sorted({name.split(".")[0] for name in names})
            raise UserError(
                f"training.freeze: no weight name starts with {prefix!r}; available: "
                f"{', '.join(tops) or 'none'} (e.g. {', '.join(names[:1])})"
            )
        for parameter in found:
            parameter.requires_grad_(False)
    if prefixes and not any(p.requires_grad for p in model.parameters()):
        raise UserError("training.freeze: all weights are frozen")
