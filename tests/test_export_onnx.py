"""Models exported to ONNX: the folder, what is an error, rounded weights, threads and copies."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import regard
from regard.core.errors import UserError
from regard.core.threads import thread_map
from regard.data.tensors.padded import pad
from regard.data.tensors.special import EOS
from regard.exchange.export import export_model, onnx, onnx_graph
from regard.inference.onnx_engine import OnnxEngine
from regard.inputs.input import InputShape
from regard.models.encoder_decoder import EncoderDecoderOptions
from regard.nn.kernels.softmax import SoftmaxAttention
from regard.search import Beam, Sample, SearchRequest
from regard.tasks.values import Constraints

WORDS = ["abc", "fade", "b", "decaf", "feed", "cab"]
SIZES = {"layers": 2, "width": 16, "heads": 2, "feedforward_width": 24, "dropout": 0.0}


@pytest.fixture(scope="module")
def exported(trained: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("exported") / "onnx"
    export_model(regard.load(trained.run).predictor_, "onnx", folder)
    return folder


def small(**settings: Any) -> Any:
    """An untrained Transformer."""
    side = {"kind": "transformer", **SIZES, **settings}
    torch.manual_seed(1)
    options = EncoderDecoderOptions(encoder=side, decoder=side)
    return options.build(InputShape("text", 12), 12, shared=False).eval()


def test_the_folder_answers_as_the_run(trained: Any, exported: Path) -> None:
    model, other = regard.load(trained.run), regard.load(exported)
    assert isinstance(other.model_, OnnxEngine)
    assert not (exported / "model.safetensors").exists()
    for beam in (1, 4):
        wanted = model.predict_detailed(WORDS, nbest=beam, beam=beam)
        found = other.predict_detailed(WORDS, nbest=beam, beam=beam)
        for one, other_one in zip(found, wanted, strict=True):
            assert [a.text for a in one.nbest] == [a.text for a in other_one.nbest]
            assert one.score == pytest.approx(other_one.score, abs=1e-4)


def test_the_command(command: Callable[..., Any], trained: Any, tmp_path: Path) -> None:
    said = command("export", trained.run, "--to", "onnx", "--out", tmp_path / "out")
    assert said.code == 0, said.err
    assert "max logit difference" in said.err
    facts = json.loads((tmp_path / "out" / "export.json").read_text())
    assert facts["engine"] == "onnx"
    assert facts["max_logit_difference"] < 1e-4
    assert facts["parity"]["beam 5"]["equal"] == 1.0
    answers = [command("predict", folder, *WORDS).out for folder in (trained.run, tmp_path / "out")]
    assert answers[0] == answers[1]


def test_samples_and_constraints_work_as_well(trained: Any, exported: Path) -> None:
    models = regard.load(trained.run), regard.load(exported)
    task: Any = models[0].task_
    rows = [[*ids, EOS] for ids in task.source.tokenizer.encode_all(WORDS)]
    limits = torch.full((len(rows),), 9)
    begun = task.encode_constraints(Constraints(prefix="fa", ban=("c",)))
    engines = [model.predictor_.engine for model in models]
    request = SearchRequest(pad(rows), limits, 2)
    for search in (
        Sample(temperature=1.0, seed=3),
        Beam(beam=3, no_repeat_ngram=2, coverage_penalty=0.2),
    ):
        found = [engine.run(search, request) for engine in engines]
        assert [[h.tokens for h in row] for row in found[0]] == [
            [h.tokens for h in row] for row in found[1]
        ]
    request = SearchRequest(pad(rows), limits, constraints=[begun] * len(rows))
    constrained = [engine.run(Beam(), request) for engine in engines]
    assert [row[0].tokens for row in constrained[0]] == [row[0].tokens for row in constrained[1]]
    assert all(row[0].tokens[:2] == begun.prefix for row in constrained[1])


def test_threads_share_an_engine(exported: Path) -> None:
    model = regard.load(exported)
    rows = [[*ids, EOS] for ids in model.task_.source.tokenizer.encode_all(WORDS)]  # type: ignore[attr-defined]
    engine: Any = model.model_

    def answer(row: list[int]) -> tuple[int, ...]:
        request = SearchRequest(pad([row]), torch.tensor([12]))
        return engine.run(Beam(), request)[0][0].tokens

    assert thread_map(answer, rows * 5, 2) == [answer(row) for row in rows * 5]


def test_rounded_weights(trained: Any, exported: Path, tmp_path: Path) -> None:
    facts = onnx.export(regard.load(trained.run).predictor_, tmp_path, quantize="int8")
    assert facts["quantize"] == "int8"
    assert 1e-5 < facts["max_logit_difference"] < 1.0
    whole = regard.load(exported)
    rows = [[*ids, EOS] for ids in whole.task_.source.tokenizer.encode_all(WORDS)]  # type: ignore[attr-defined]
    request = SearchRequest(pad(rows), torch.full((len(rows),), 9))
    answers = [
        [row[0].tokens for row in engine.run(Beam(), request)]
        for engine in (OnnxEngine(tmp_path), whole.model_)
    ]
    assert sum(a == b for a, b in zip(*answers, strict=True)) >= len(WORDS) // 2


def test_rounded_weights_are_small(tmp_path: Path) -> None:
    model = small(width=128)
    sizes = []
    for rounded in (False, True):
        onnx.write_graphs(model, tmp_path, shared=not rounded)
        if rounded:
            onnx._quantize(tmp_path)
        sizes.append(sum(path.stat().st_size for path in tmp_path.iterdir()))
    assert sizes[1] < 0.4 * sizes[0]
    assert {path.name for path in tmp_path.iterdir()} == {"encoder.onnx", "step.onnx"}


@pytest.mark.parametrize("rounded", [False, True])
def test_learned_places_come_to_an_end(tmp_path: Path, rounded: bool) -> None:
    model = small(positions={"kind": "learned", "length": 6})
    onnx.write_graphs(model, tmp_path, shared=not rounded)
    if rounded:
        onnx._quantize(tmp_path)
    engine = OnnxEngine(tmp_path)
    assert (engine.max_source_length, engine.max_target_length) == (6, 6)
    state = engine.start(pad([[5, 6, 7, 8, 9, EOS]]))
    _, state = engine.step(torch.full((1, 6), 5), state)
    with pytest.raises(UserError, match=r"7 positions .* model.decoder.positions.length=6"):
        engine.step(torch.full((1, 1), 5), state)
    with pytest.raises(UserError, match=r"model.encoder.positions.length=6"):
        engine.start(pad([[5, 6, 7, 8, 9, 10, EOS]]))


def test_weights_beyond_one_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(onnx_graph, "MAX_FILE_BYTES", 1000)
    model = small()
    onnx.write_graphs(model, tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {
        *("encoder.onnx", "encoder.data", "step.onnx", "step.data")
    }
    assert onnx.max_logit_difference(model, OnnxEngine(tmp_path)) < 1e-4


def test_tied_weights_are_written_once(tmp_path: Path) -> None:
    model = small()
    onnx.write_graphs(model, tmp_path)
    once = (tmp_path / "step.onnx").stat().st_size
    onnx.write_graphs(model, tmp_path, shared=False)
    assert (tmp_path / "step.onnx").stat().st_size - once > 0.9 * model.head.weight.nbytes


def test_what_differs_is_not_exported(
    trained: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As where a kind changed since its nodes were written."""
    monkeypatch.setattr(onnx, "embed", lambda graph, embedding, tokens: _numbered(graph, tokens))
    with pytest.raises(UserError, match="logits differ by up to"):
        export_model(regard.load(trained.run).predictor_, "onnx", tmp_path / "out")
    assert list(tmp_path.iterdir()) == []


def _numbered(graph: Any, tokens: str) -> str:
    """Vectors that are no embedding: the number of the token, 32 times."""
    column = graph.cast(graph.reshape(tokens, -1, 1), np.float32)
    return graph("Mul", column, graph.constant(torch.ones(1, 32)))


class Strange(SoftmaxAttention):
    """An attention that the export does not know."""


def test_errors(trained: Any, tmp_path: Path, models: Callable[[str], Any]) -> None:
    with pytest.raises(UserError, match="language-model models cannot be exported to ONNX"):
        onnx.export(regard.load(models("language-model").run).predictor_, tmp_path)
    with pytest.raises(UserError, match=r"--quantize int3: expected float32 or int8"):
        onnx.export(regard.load(trained.run).predictor_, tmp_path, quantize="int3")
    model = small()
    model.decoder.layers[1].attention.kernel = Strange()
    with pytest.raises(UserError, match="Strange: cannot be exported to ONNX"):
        onnx.write_graphs(model, tmp_path)
    model = small(activation="gelu")
    model.encoder.layers[0].feedforward.activation = torch.erf
    with pytest.raises(UserError, match="erf: cannot be exported"):
        onnx.write_graphs(model, tmp_path)


def test_damaged_folders(exported: Path, tmp_path: Path) -> None:
    shutil.copytree(exported, tmp_path / "copy")
    whole = (tmp_path / "copy" / "onnx" / "step.onnx").read_bytes()
    (tmp_path / "copy" / "onnx" / "step.onnx").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(UserError, match=r"step.onnx: corrupted"):
        regard.load(tmp_path / "copy")
    (tmp_path / "copy" / "onnx" / "step.onnx").unlink()
    with pytest.raises(UserError, match=r"step.onnx: no such file"):
        regard.load(tmp_path / "copy")
