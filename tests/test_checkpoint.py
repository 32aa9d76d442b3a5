"""Checkpoints: whole or not at all, plain formats, and a clear word where something is broken."""

import errno
import json
import os
from dataclasses import dataclass, field
from pathlib import Path

import pytest
import torch
from torch import nn

from regard.core.errors import UserError
from regard.inputs.input import InputShape
from regard.models.encoder_decoder import EncoderDecoderOptions
from regard.optim.average import Average, Ema
from regard.optim.optimizers import AdamW
from regard.storage.weights import load_weights, read_tensors, save_weights
from regard.training import checkpoint
from regard.training.checkpoint import load_checkpoint, save_checkpoint
from regard.training.run import TrainingState

SIZES = {"layers": 1, "width": 8, "dropout": 0.0}
TINY = {side: {"kind": "recurrent", **SIZES} for side in ("encoder", "decoder")}


def build(seed: int, shared: bool = True, **more: object) -> nn.Module:
    torch.manual_seed(seed)
    return EncoderDecoderOptions.model_validate({**TINY, **more}).build(
        InputShape("text", 9), 9, shared
    )


@dataclass
class Toy:
    """What a checkpoint is made of."""

    folder: Path
    model: nn.Module
    state: TrainingState = field(default_factory=TrainingState)
    average: Average = field(default_factory=Average)
    previous_gradients: list = field(default_factory=list)
    carry: object = None
    device: torch.device = field(default_factory=lambda: torch.device("cpu"))

    def __post_init__(self) -> None:
        self.optimizers = AdamW().build(self.model, 0.01, {})

    def weights(self) -> list[nn.Parameter]:
        return list(self.model.parameters())

    def move(self, steps: int) -> "Toy":
        """The model after a few updates."""
        for _ in range(steps):
            sum((p**2).sum() for p in self.model.parameters()).backward()
            for optimizer in self.optimizers:
                optimizer.step()
                optimizer.zero_grad()
            self.average.step(self.weights())
            self.state.step += 1
        return self


def loaded(folder: Path, average: Average | None = None) -> Toy:
    toy = Toy(folder, build(2), average=average or Average())
    load_checkpoint(toy)
    return toy


def same(one: nn.Module, other: nn.Module) -> bool:
    pairs = zip(one.parameters(), other.parameters(), strict=True)
    return all(torch.equal(here, there) for here, there in pairs)


def test_everything_comes_back(tmp_path: Path) -> None:
    toy = Toy(
        tmp_path,
        build(1),
        TrainingState(epoch=1, position=2, seconds=4.5, best_score=61.5, best_step=2),
    )
    toy.average = Ema(decay=0.5).build()
    toy.previous_gradients = [torch.randn(p.shape) for p in toy.weights()]
    toy.carry = {"hidden": torch.randn(3, 2)}
    toy.state.log_window = {"tokens": 0.1 + 0.2, "steps": 2}
    save_checkpoint(toy.move(3))
    again = loaded(tmp_path, Ema(decay=0.5).build())
    assert again.state == toy.state and same(again.model, toy.model)
    torch.testing.assert_close(
        [o.state_dict() for o in again.optimizers],
        [o.state_dict() for o in toy.optimizers],
        atol=0,
        rtol=0,
    )
    values = (toy.average.values(), again.average.values())
    assert all(torch.equal(one, other) for one, other in zip(*values, strict=True))
    assert again.average.updates == 3 and not same(again.model, build(1))
    assert all(
        torch.equal(a, b)
        for a, b in zip(again.previous_gradients, toy.previous_gradients, strict=True)
    )
    assert torch.equal(again.carry["hidden"], toy.carry["hidden"])


def test_a_run_without_a_checkpoint_has_none(tmp_path: Path) -> None:
    toy = loaded(tmp_path)
    assert toy.state == TrainingState() and same(toy.model, build(2))


def test_plain_formats_only(tmp_path: Path) -> None:
    """No pickle: loading a model never runs code."""
    save_checkpoint(Toy(tmp_path, build(1)).move(1))
    names = sorted(path.name for path in (tmp_path / "checkpoint").iterdir())
    plain = ["model.safetensors", "state.json", "training.safetensors"]
    assert names == sorted([*plain, "checksums.json"])
    assert json.loads((tmp_path / "checkpoint" / "state.json").read_text("utf-8"))["step"] == 1
    assert [path.name for path in tmp_path.iterdir()] == ["checkpoint"]


def two(folder: Path) -> Toy:
    """A run with two checkpoints, of steps 1 and 2."""
    toy = Toy(folder, build(1))
    save_checkpoint(toy.move(1))
    save_checkpoint(toy.move(1))
    return toy


FILES = ("model.safetensors", "training.safetensors", "state.json", "checksums.json")


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("damage", ["flip", "cut", "remove", "empty"])
def test_a_corrupted_checkpoint_falls_back_to_the_previous_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str, damage: str
) -> None:
    two(tmp_path)
    path = tmp_path / "checkpoint" / name
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    if damage == "remove":
        path.unlink()
    else:
        path.write_bytes({"flip": content, "cut": content[:-3], "empty": b""}[damage])
    again = loaded(tmp_path)
    assert again.state.step == 1
    said = capsys.readouterr().err
    assert said.startswith(f"warning: {tmp_path / 'checkpoint'}") and "falling back" in said
    assert said.endswith("falling back to the previous checkpoint (step 1)\n")
    save_checkpoint(again.move(1))
    assert loaded(tmp_path).state.step == 2 and capsys.readouterr().err == ""


def test_two_corrupted_checkpoints_are_an_error(tmp_path: Path) -> None:
    two(tmp_path)
    for name in ("checkpoint", "checkpoint.prev"):
        (tmp_path / name / "training.safetensors").write_bytes(b"torn")
    with pytest.raises(
        UserError, match=r"no intact checkpoint.*checkpoint/training.*checkpoint\.prev/training"
    ):
        loaded(tmp_path)


@pytest.mark.parametrize("name", ["model.safetensors", "training.safetensors", "state.json"])
def test_a_full_disk_leaves_what_was_saved(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    toy = two(tmp_path)
    fsync = os.fsync

    def full(number: int) -> None:
        if os.readlink(f"/proc/self/fd/{number}").endswith(
            f"checkpoint.tmp/.{name}.{os.getpid()}.new"
        ):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        fsync(number)

    with monkeypatch.context() as patch:
        patch.setattr("regard.core.files.os.fsync", full)
        with pytest.raises(UserError, match=rf"{name}: cannot write: No space left"):
            save_checkpoint(toy.move(1))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["checkpoint", "checkpoint.prev"]
    assert loaded(tmp_path).state.step == 2
    save_checkpoint(toy)
    assert loaded(tmp_path).state.step == 3


@pytest.mark.parametrize("tie_embeddings", [True, False])
@pytest.mark.parametrize("shared", [True, False])
def test_tied_weights_are_written_once_and_stay_tied(
    tmp_path: Path, tie_embeddings: bool, shared: bool
) -> None:
    path = tmp_path / "model.safetensors"
    model = build(1, shared, tie_embeddings=tie_embeddings)
    save_weights(model, path)
    tables = {"frontend.tokens.weight", "target.weight", "head.weight"} & set(read_tensors(path))
    assert len(tables) == 3 - tie_embeddings - shared
    other = build(2, shared, tie_embeddings=tie_embeddings)
    load_weights(other, path)
    assert same(model, other)
    assert (other.head.weight is other.target.weight) == tie_embeddings
    assert (other.frontend.tokens.weight is other.target.weight) == shared


@pytest.mark.parametrize(("crash", "step"), [(1, 2), (2, 2)])
def test_a_crash_while_writing_leaves_the_old_checkpoint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, crash: int, step: int
) -> None:
    """If the process dies at any rename, the previous one is intact, and the next is written."""
    toy = two(tmp_path)
    calls = []

    def rename(source: Path, target: Path) -> None:
        calls.append(source)
        if len(calls) == crash:
            raise KeyboardInterrupt
        os.replace(source, target)

    with monkeypatch.context() as patch:
        patch.setattr(checkpoint.os, "rename", rename)
        with pytest.raises(KeyboardInterrupt):
            save_checkpoint(toy.move(1))
    assert loaded(tmp_path).state.step == step
    save_checkpoint(toy.move(1))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["checkpoint", "checkpoint.prev"]
    assert loaded(tmp_path).state.step == 4


def test_half_a_new_checkpoint_is_not_taken(tmp_path: Path) -> None:
    save_checkpoint(Toy(tmp_path, build(1)).move(1))
    (tmp_path / "checkpoint.tmp").mkdir()
    (tmp_path / "checkpoint.tmp" / "model.safetensors").write_bytes(b"half")
    assert loaded(tmp_path).state.step == 1


@pytest.mark.parametrize("share", [0.0, 0.001, 0.5, 0.99])
def test_weights_that_are_cut_short(tmp_path: Path, share: float) -> None:
    path = tmp_path / "model.safetensors"
    save_weights(build(1), path)
    content = path.read_bytes()
    path.write_bytes(content[: int(share * len(content))])
    model = build(2)
    with pytest.raises(UserError, match="safetensors: corrupted or truncated"):
        load_weights(model, path)
    assert same(model, build(2))


def test_weights_that_are_missing(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no such file; the model folder is incomplete"):
        load_weights(build(1), tmp_path / "model.safetensors")


def test_weights_of_another_model(tmp_path: Path) -> None:
    path = tmp_path / "model.safetensors"
    save_weights(build(1), path)
    deeper = {"encoder": {"kind": "recurrent", **SIZES, "layers": 2}}
    wider = {"encoder": {"kind": "recurrent", **SIZES, "width": 10}}
    for more in (deeper, wider, {"tie_embeddings": False}):
        with pytest.raises(
            UserError, match=r"(?s)the weights do not match config\.yaml: .*two runs"
        ):
            load_weights(build(1, **more), path)
    save_weights(build(1, **deeper), path)
    with pytest.raises(UserError, match="the weights do not match"):
        load_weights(build(1), path)
