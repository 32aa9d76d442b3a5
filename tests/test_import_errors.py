"""Errors of `regard import`, and settings that it supports or not."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from checkpoints import write_checkpoint
from safetensors.torch import load_file, save_file

from regard.core.errors import UserError
from regard.data.tensors.padded import Batch, pad
from regard.data.tensors.special import EOS, PAD
from regard.exchange.importing.generation import search_settings
from regard.exchange.importing.marian_model import import_marian
from regard.nn.positions.sinusoidal import sinusoids
from regard.search import Beam

Command = Callable[..., Any]


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkpoint folder, which no test may change."""
    folder = tmp_path_factory.mktemp("whole")
    write_checkpoint(folder)
    return folder


@pytest.fixture
def folder(whole: Path, tmp_path: Path) -> Path:
    """A copy of it."""
    return Path(shutil.copytree(whole, tmp_path / "checkpoint"))


def change(path: Path, **values: Any) -> None:
    """Changes values of a JSON file; None takes one away."""
    tree = json.loads(path.read_text()) if path.exists() else {}
    tree = {key: value for key, value in (tree | values).items() if value is not None}
    path.write_text(json.dumps(tree))


def retensor(folder: Path, **values: torch.Tensor | None) -> None:
    """Changes tensors, named with / in place of dots; None takes one away."""
    path = folder / "model.safetensors"
    given = {name.replace("/", "."): value for name, value in values.items()}
    kept = {name: value for name, value in (load_file(path) | given).items() if value is not None}
    save_file(kept, path)


def error_of(folder: Path) -> str:
    with pytest.raises(UserError) as error:
        import_marian(folder)
    return str(error.value)


def test_all_that_cannot_be_expressed_is_named_at_once(folder: Path) -> None:
    change(
        folder / "config.json",
        activation_function="gelu_new",
        normalize_before=True,
        normalize_embedding=True,
        decoder_attention_heads=3,
    )
    change(folder / "tokenizer_config.json", sp_model_kwargs={"enable_sampling": True})
    said = error_of(folder).splitlines()
    assert said[0].endswith("config.json: this model cannot be imported")
    names = [line.strip().split("=")[0] for line in said[1:]]
    wanted = ["decoder_attention_heads", "sp_model_kwargs", "activation_function"]
    assert names == [*wanted, "normalize_before", "normalize_embedding"]


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"model_type": "bart"}, "expected model_type 'marian', found 'bart'"),
        ({"d_model": None}, "d_model: expected an integer, found None"),
        ({"eos_token_id": [0, 1]}, "eos_token_id: expected an integer, found [0, 1]"),
        ({"eos_token_id": 5}, "eos_token_id=5, but the tokenizer's is 0 in vocab.json"),
        ({"decoder_start_token_id": 5000}, "decoder_start_token_id=5000: expected a row below"),
        ({"vocab_size": 20}, "the embeddings of the model have 20 rows"),
        ({"static_position_embeddings": False}, "the learned positions"),
        ({"quantization_config": {"bits": 8}}, "quantization_config: not supported"),
        ({"is_encoder_decoder": False}, "is_encoder_decoder=false"),
    ],
)
def test_settings_that_do_not_fit(folder: Path, values: dict[str, Any], message: str) -> None:
    change(folder / "config.json", **values)
    assert message in error_of(folder)


def test_missing_and_strange_tensors_are_named(folder: Path) -> None:
    missing = "model/encoder/layers/1/fc1/weight"
    wrong = "model/decoder/layers/0/encoder_attn/k_proj/bias"
    retensor(
        folder,
        **{missing: None, wrong: torch.zeros(3), "adapter/weight": torch.zeros(2)},
        **{
            "lm_head/weight": torch.zeros(
                load_file(folder / "model.safetensors")["model.shared.weight"].shape
            )
        },
    )
    said = error_of(folder).splitlines()
    assert said[0].endswith("the tensors do not match config.json")
    assert [line.strip() for line in said[1:]] == [
        "lm_head.weight: differs from model.shared.weight, to which it is tied",
        "model.encoder.layers.1.fc1.weight: missing",
        f"{wrong.replace('/', '.')}: expected floats (16,), found float32 (3,)",
        "adapter.weight: unexpected",
    ]


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("config.json", "not a checkpoint of transformers (no config.json in it)"),
        ("source.spm", "source.spm: no such file"),
        ("vocab.json", "vocab.json: no such file"),
        ("model.safetensors", "no weights found"),
    ],
)
def test_files_that_are_missing(folder: Path, name: str, message: str) -> None:
    (folder / name).unlink()
    assert message in error_of(folder)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("config.json", b"{", "config.json: not valid JSON"),
        ("config.json", b"[1]", "config.json: expected an object"),
        ("target.spm", b"nonsense", "target.spm: corrupted subword model"),
        ("vocab.json", b'{"a": 0}', "the required token <pad> is missing"),
        ("model.safetensors", b"nonsense", "model.safetensors: corrupted or truncated"),
    ],
)
def test_files_that_are_damaged(folder: Path, name: str, content: bytes, message: str) -> None:
    (folder / name).write_bytes(content)
    assert message in error_of(folder)


def test_a_pickle_is_never_loaded(folder: Path) -> None:
    (folder / "model.safetensors").rename(folder / "pytorch_model.bin")
    said = error_of(folder)
    assert "pytorch_model.bin: pickle files can run arbitrary code" in said
    assert "from transformers import MarianMTModel as M" in said and "save_pretrained" in said


def test_an_index_names_files_of_its_folder_only(folder: Path) -> None:
    (folder / "model.safetensors").unlink()
    index = folder / "model.safetensors.index.json"
    change(index, weight_map={"a": "../elsewhere.safetensors"})
    assert "expected a file in the same folder" in error_of(folder)
    change(index, weight_map={"a": "one.safetensors"})
    assert "one.safetensors: no such file" in error_of(folder)
    save_file({"b": torch.zeros(1)}, folder / "one.safetensors")
    assert "one.safetensors lacks the tensor a" in error_of(folder)


def test_positions_that_are_saved_are_sinusoids_or_learned(folder: Path) -> None:
    name = "model/encoder/embed_positions/weight"
    retensor(folder, **{name: sinusoids(64, 16, "halves")})
    assert import_marian(folder).config.model.encoder.positions.kind == "sinusoidal"
    table = torch.randn(64, 16)
    retensor(folder, **{name: table})
    found = import_marian(folder)
    assert found.config.model.encoder.positions.length == 64
    assert found.config.model.decoder.positions.kind == "sinusoidal"
    assert torch.equal(found.model.encoder.positions.weight, table)


def test_probabilities_without_the_padding(folder: Path) -> None:
    rows = Batch(pad([[7, 8, EOS]]), pad([[9, EOS]]))
    shares = []
    for on in (False, True):
        change(folder / "generation_config.json", renormalize_logits=on)
        with torch.no_grad():
            shares.append(import_marian(folder).model(rows).logits.softmax(-1))
    assert (shares[0][:, PAD] > 0).all() and not shares[1][:, PAD].any()
    left = shares[0].index_fill(1, torch.tensor(PAD), 0)
    torch.testing.assert_close(shares[1], left / left.sum(-1, keepdim=True))


def test_search_settings_are_supported_or_noted() -> None:
    search, notes = search_settings(
        {
            "num_beams": 6,
            "length_penalty": 0.8,
            "max_length": 512,
            "min_length": 3,
            "no_repeat_ngram_size": 3,
            "early_stopping": True,
            "bad_words_ids": [[9]],
        },
        {9},
    )
    assert notes == []
    assert search == {
        **{
            "kind": "beam",
            "beam": 6,
            "length_penalty": 0.8,
            "no_repeat_ngram": 3,
            "stopping": "beam_full",
        },
        **{"min_length": 2, "max_length": 510},
    }
    search, notes = search_settings(
        {
            "num_beams": 2,
            "length_penalty": -1.0,
            "max_new_tokens": 20,
            "early_stopping": "never",
            "bad_words_ids": [[9], [4, 5]],
            "repetition_penalty": 1.2,
            "do_sample": True,
        },
        {9},
    )
    assert (search["length_penalty"], search["max_length"], search["stopping"]) == (
        0.0,
        19,
        "optimal",
    )
    names = [note.split(":")[0].split("=")[0] for note in notes]
    assert names == ["length_penalty", "bad_words_ids", "do_sample", "repetition_penalty"]


def test_only_their_longest_length_limits_an_answer(folder: Path) -> None:
    found = import_marian(folder)
    assert found.config.search.max_length == 48  # 50 with the first token and the end
    assert found.task.max_output_length(1, Beam()) > 48
    change(folder / "generation_config.json", max_length=None)
    found = import_marian(folder)
    assert (
        found.config.search.max_length is None
        and found.task.max_output_length(100, found.config.search) > 400
    )
    assert any(note.startswith("max_length: not set") for note in found.notes)


def test_nothing_is_overwritten(folder: Path, command: Command, tmp_path: Path) -> None:
    out = tmp_path / "out"
    out.mkdir()
    (out / "letter.txt").write_text("hello")
    said = command("import", folder, "--out", out)
    assert said.code == 2 and "not empty and not a run folder" in said.err
    (out / "letter.txt").unlink()
    assert command("import", folder, "--out", out).code == 0
    said = command("import", folder, "--out", out)
    assert said.code == 2 and "already contains a run" in said.err
    assert command("import", folder, "--out", out, "--force").code == 0
    (folder / "vocab.json").unlink()
    before = (out / "model.safetensors").read_bytes()
    assert command("import", folder, "--out", out, "--force").code == 2
    assert (out / "model.safetensors").read_bytes() == before


def test_marian_tokens_cannot_be_learned(command: Command, tmp_path: Path) -> None:
    data = tmp_path / "data.tsv"
    data.write_text("".join(f"a{i}\tb{i}\n" for i in range(50)))
    said = command(
        "train", data, "--set", "task.source.tokenizer=marian", "--out", tmp_path / "run"
    )
    assert said.code == 2 and "it comes with an imported model: train --init-from that" in said.err
