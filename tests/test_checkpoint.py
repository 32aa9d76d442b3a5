"""Checkpoints: whole or not at all, plain formats, and a clear word where something is broken."""

import json
import os
import shutil
from pathlib import Path

import pytest
import torch
from torch import nn

from regard.errors import UserError
from regard.models.generator import GeneratorOptions
from regard.training.checkpoint import (
    Progress,
    load_checkpoint,
    load_weights,
    read_tensors,
    save_checkpoint,
    save_weights,
)
from regard.training.optimizers import AdamW

SIZES = {"layers": 1, "width": 8, "dropout": 0.0}
TINY = {side: {"kind": "recurrent", **SIZES} for side in ("encoder", "decoder")}


def build(seed: int, shared: bool = True, **more: object) -> nn.Module:
    torch.manual_seed(seed)
    return GeneratorOptions.model_validate({**TINY, **more}).build(9, 9, shared)


def moved(model: nn.Module, steps: int) -> torch.optim.Optimizer:
    """The model after a few updates, and the optimiser that made them."""
    optimizer = AdamW().build(model, 0.01, {})
    for _ in range(steps):
        sum((p**2).sum() for p in model.parameters()).backward()
        optimizer.step()
        optimizer.zero_grad()
    return optimizer


def same(one: nn.Module, other: nn.Module) -> bool:
    pairs = zip(one.parameters(), other.parameters(), strict=True)
    return all(torch.equal(here, there) for here, there in pairs)


def test_everything_comes_back(tmp_path: Path) -> None:
    model = build(1)
    optimizer = moved(model, 3)
    progress = Progress(step=3, epoch=1, position=2, seconds=4.5, best=61.5, best_step=2)
    torch.manual_seed(7)
    save_checkpoint(tmp_path, model, optimizer, progress)
    drawn = torch.rand(4)

    other = build(2)
    again = AdamW().build(other, 0.01, {})
    assert load_checkpoint(tmp_path, other, again) == (progress, None)
    assert same(model, other) and torch.equal(torch.rand(4), drawn)
    torch.testing.assert_close(again.state_dict(), optimizer.state_dict(), atol=0, rtol=0)


def test_a_run_without_a_checkpoint_has_none(tmp_path: Path) -> None:
    model = build(1)
    assert load_checkpoint(tmp_path, model, moved(model, 0)) == (Progress(), None)


def test_plain_formats_only(tmp_path: Path) -> None:
    """No pickle: loading a model never runs code."""
    model = build(1)
    save_checkpoint(tmp_path, model, moved(model, 1), Progress(step=1))
    names = sorted(path.name for path in (tmp_path / "last").iterdir())
    assert names == ["model.safetensors", "progress.json", "training.safetensors"]
    assert json.loads((tmp_path / "last" / "progress.json").read_text("utf-8"))["step"] == 1
    assert [path.name for path in tmp_path.iterdir()] == ["last"]


@pytest.mark.parametrize("tied", [True, False])
@pytest.mark.parametrize("shared", [True, False])
def test_tied_weights_are_written_once_and_stay_tied(
    tmp_path: Path, tied: bool, shared: bool
) -> None:
    path = tmp_path / "model.safetensors"
    model = build(1, shared, tied=tied)
    save_weights(model, path)
    tables = {"frontend.symbols.weight", "target.weight", "head.weight"} & set(read_tensors(path))
    assert len(tables) == 3 - tied - shared
    other = build(2, shared, tied=tied)
    load_weights(other, path)
    assert same(model, other)
    assert (other.head.weight is other.target.weight) == tied
    assert (other.frontend.symbols.weight is other.target.weight) == shared


@pytest.mark.parametrize("crash", [1, 2])
def test_a_crash_while_writing_leaves_the_old_checkpoint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, crash: int
) -> None:
    """At whichever renaming the process dies, the one before is there, and the next is written."""
    model = build(1)
    optimizer = moved(model, 1)
    save_checkpoint(tmp_path, model, optimizer, Progress(step=1))
    calls = []

    def rename(source: Path, target: Path) -> None:
        calls.append(source)
        if len(calls) == crash:
            raise KeyboardInterrupt
        os.replace(source, target)

    with monkeypatch.context() as patch:
        patch.setattr("regard.training.checkpoint.os.rename", rename)
        with pytest.raises(KeyboardInterrupt):
            save_checkpoint(tmp_path, model, optimizer, Progress(step=2))
    progress, _ = load_checkpoint(tmp_path, build(2), moved(model, 0))
    assert progress.step == 1

    save_checkpoint(tmp_path, model, optimizer, Progress(step=3))
    assert [path.name for path in tmp_path.iterdir()] == ["last"]


def test_half_a_new_checkpoint_is_not_taken(tmp_path: Path) -> None:
    model = build(1)
    optimizer = moved(model, 1)
    save_checkpoint(tmp_path, model, optimizer, Progress(step=1))
    (tmp_path / "last.new").mkdir()
    (tmp_path / "last.new" / "model.safetensors").write_bytes(b"half")
    other = build(2)
    assert load_checkpoint(tmp_path, other, AdamW().build(other, 0.01, {})) == (
        Progress(step=1),
        None,
    )


@pytest.mark.parametrize("share", [0.0, 0.001, 0.5, 0.99])
def test_weights_that_are_cut_short(tmp_path: Path, share: float) -> None:
    path = tmp_path / "model.safetensors"
    save_weights(build(1), path)
    content = path.read_bytes()
    path.write_bytes(content[: int(share * len(content))])
    model = build(2)
    with pytest.raises(UserError, match="safetensors: damaged or cut short"):
        load_weights(model, path)
    assert same(model, build(2))


def test_weights_that_are_missing(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no such file; the model folder is not complete"):
        load_weights(build(1), tmp_path / "model.safetensors")


def test_weights_of_another_model(tmp_path: Path) -> None:
    path = tmp_path / "model.safetensors"
    save_weights(build(1), path)
    deeper = {"encoder": {"kind": "recurrent", **SIZES, "layers": 2}}
    wider = {"encoder": {"kind": "recurrent", **SIZES, "width": 10}}
    for more in (deeper, wider, {"tied": False}):
        with pytest.raises(UserError, match=r"the weights do not fit config\.yaml: .*two runs"):
            load_weights(build(1, **more), path)
    save_weights(build(1, **deeper), path)
    with pytest.raises(UserError, match="the weights do not fit"):
        load_weights(build(1), path)


def test_a_checkpoint_with_a_file_missing(tmp_path: Path) -> None:
    model = build(1)
    save_checkpoint(tmp_path / "run", model, moved(model, 1), Progress(step=1))
    for name in ("model.safetensors", "training.safetensors", "progress.json"):
        copy = tmp_path / name.split(".")[0]
        shutil.copytree(tmp_path / "run", copy)
        (copy / "last" / name).unlink()
        with pytest.raises(UserError, match="not complete"):
            load_checkpoint(copy, build(2), moved(model, 0))
