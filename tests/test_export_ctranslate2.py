"""Models exported to CTranslate2 answer as they do in torch."""

import gc
import json
import shutil
import weakref
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

import regard
from regard.core.errors import UserError
from regard.data.tensors.padded import pad
from regard.data.tensors.special import EOS
from regard.exchange import ctranslate2_engine
from regard.exchange.ctranslate2_engine import CTranslate2Engine
from regard.exchange.export import cached_export, export_model
from regard.exchange.export import ctranslate2 as exporter
from regard.exchange.export.ctranslate2_read import read_model
from regard.exchange.export.parity import parity
from regard.inference import predictor
from regard.inference.open_engine import open_engine
from regard.search import Beam, Hypothesis, Sample, SearchRequest, TokenConstraints
from regard.search.search import PlainBeam
from regard.storage.export_folder import write_export

from .exportable import KINDS, limits_of, random_model, sources

pytest.importorskip("ctranslate2")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("beam", [1, 5])
def test_the_same_answers_as_torch(kind: str, beam: int, exported: Any) -> None:
    """A hundred random sources; a good part is CTranslate2's own doing."""
    model, folder = exported(kind)
    engine = open_engine(folder)
    source, options = sources(model, 100), Beam(beam=beam)
    limits = limits_of(source)
    request = SearchRequest(source, limits, beam)
    ours = options.run(model.model_, request)
    theirs = engine.run(options, request)
    for one, other in zip(ours, theirs, strict=True):
        assert [h.tokens for h in one] == [h.tokens for h in other]
        assert [h.score for h in one] == pytest.approx([h.score for h in other], abs=1e-4)
        assert [h.truncated for h in one] == [h.truncated for h in other]
    assert isinstance(engine, CTranslate2Engine)
    rows = [row[:n] for row, n in zip(source.data.tolist(), source.mask.sum(1), strict=True)]
    plain = PlainBeam(beam, options.length_penalty)
    own = engine.beam_search.search(rows, limits.tolist(), plain)
    assert sum(found is not None for found in own) >= 20


@pytest.mark.parametrize("length_penalty", [0.0, 1.0])
@pytest.mark.parametrize("beam", [1, 4])
def test_each_sentence_ends_at_its_own_limit(
    length_penalty: float, beam: int, exported: Any
) -> None:
    model, folder = exported("pre")
    source, options = sources(model, 60, seed=3), Beam(beam=beam, length_penalty=length_penalty)
    limits = torch.tensor([1 + row % 9 for row in range(60)])
    ours = options.run(model.model_, SearchRequest(source, limits))
    theirs = open_engine(folder).run(options, SearchRequest(source, limits))
    assert [h[0].tokens for h in ours] == [h[0].tokens for h in theirs]
    assert [h[0].truncated for h in ours] == [h[0].truncated for h in theirs]
    assert any(h[0].truncated for h in ours) and not all(h[0].truncated for h in ours)


@pytest.mark.parametrize(
    ("options", "constrained"),
    [
        (Beam(no_repeat_ngram=1), False),
        (Beam(min_length=6), False),
        (Beam(stopping="first"), False),
        (Beam(length_norm="gnmt", length_penalty=2.0), False),
        (Beam(coverage_penalty=0.5), False),
        (Beam(beam=4, beam_groups=2), False),
        (Beam(), True),
        (Sample(top_k=5), False),
    ],
    ids=str,
)
def test_what_ctranslate2_does_otherwise_is_done_by_our_search(
    options: Any, constrained: bool, exported: Any
) -> None:
    model, folder = exported("pre")
    source = sources(model, 20, seed=4)
    constraints = [TokenConstraints((6, 7), ((8,),), ((9,),))] * 20 if constrained else None
    request = SearchRequest(source, limits_of(source), 2)
    constrained_request = replace(request, constraints=constraints)
    ours = options.run(model.model_, constrained_request)
    theirs = open_engine(folder).run(options, constrained_request)
    assert [[h.tokens for h in one] for one in ours] == [[h.tokens for h in o] for o in theirs]
    plain = Beam(beam=getattr(options, "beam", 5)).run(model.model_, request)
    assert [one[0].tokens for one in plain] != [one[0].tokens for one in ours]


def test_a_source_without_tokens_is_answered(exported: Any) -> None:
    """An empty line, of which CTranslate2 gives an output without even an end."""
    model, folder = exported("pre")
    source, options = pad([[EOS], [6, 7, EOS]]), Beam(beam=2)
    request = SearchRequest(source, limits_of(source), 2)
    ours = options.run(model.model_, request)
    theirs = open_engine(folder).run(options, request)
    assert [[h.tokens for h in one] for one in ours] == [[h.tokens for h in o] for o in theirs]


@pytest.mark.parametrize("kind", ["pre", "post, own head", "shared"])
def test_weights_come_back(kind: str, exported: Any) -> None:
    model, folder = exported(kind)
    again = read_model(folder / "ctranslate2").state_dict()
    for name, weight in model.model_.state_dict().items():
        assert torch.equal(again[name], weight), name


def test_rounded_weights_come_back_rounded(exported: Any, tmp_path: Path) -> None:
    model, whole = exported("pre")
    facts = exporter.export(model.predictor_, tmp_path / "int8" / "ctranslate2", quantize="int8")
    write_export(model.folder_, tmp_path / "int8", facts)
    again = read_model(tmp_path / "int8" / "ctranslate2").state_dict()
    changed = 0.0
    for name, weight in model.model_.state_dict().items():
        step = weight.abs().amax(-1, keepdim=True) / 127
        assert ((again[name] - weight).abs() <= step / 2 + 1e-6).all(), name
        changed += float((again[name] - weight).abs().sum())
    assert changed > 0
    assert facts["quantize"] == "int8"
    sizes = [(f / "ctranslate2/model.bin").stat().st_size for f in (whole, tmp_path / "int8")]
    assert sizes[1] < sizes[0]


def test_an_exported_folder_is_a_model(exported: Any, command: Any, tmp_path: Path) -> None:
    """It carries all it needs, and says what was measured."""
    model, folder = exported("pre")
    assert not (folder / "model.safetensors").exists()
    facts = json.loads((folder / "export.json").read_text())
    assert (facts["format"], facts["engine"], facts["quantize"]) == (1, "ctranslate2", "float32")
    assert facts["parity"]["beam 5"]["equal"] >= 0.95
    asked = ["abc", "fghij", "zz", "qwerty"]
    assert regard.load(folder).predict(asked) == model.predict(asked)
    said = command("predict", folder, *asked)
    assert (said.code, said.out.splitlines()) == (0, model.predict(asked))
    (tmp_path / "test.tsv").write_text("abc\tCBAabc\nfgh\tHGFfgh\n")
    said = command("evaluate", folder, tmp_path / "test.tsv", "--json")
    expected = model.evaluate([("abc", "CBAabc"), ("fgh", "HGFfgh")])
    assert json.loads(said.out)["metrics"] == pytest.approx(
        {name: value for name, value in expected.items() if name != "perplexity"}
    )


def test_the_command(exported: Any, command: Any, tmp_path: Path) -> None:
    model, _ = exported("pre")
    out = tmp_path / "deep" / "out"
    words = ("export", model.folder_, "--to", "ctranslate2", "--out", out)
    said = command(*words)
    assert (said.code, said.out.strip()) == (0, str(out)), said.err
    assert "beam 1" in said.err and "beam 5" in said.err
    before = (out / "export.json").stat().st_ino
    assert "--force" in command(*words).err
    assert (out / "export.json").stat().st_ino == before
    assert command(*words, "--force", "--quantize", "float16").code == 0
    assert json.loads((out / "export.json").read_text())["quantize"] == "float16"
    assert [path.name for path in out.parent.iterdir()] == ["out"]


def test_what_is_no_export_is_not_replaced(exported: Any, command: Any, tmp_path: Path) -> None:
    model, folder = exported("pre")
    (tmp_path / "mine").mkdir()
    words = ("export", model.folder_, "--to", "ctranslate2", "--out", tmp_path / "mine", "--force")
    assert "only overwrites exports" in command(*words).err
    assert "already exported" in command("export", folder, *words[2:5], tmp_path / "new").err
    assert (
        "--to tflite: expected one of"
        in command("export", folder, "--to", "tflite", *words[4:]).err
    )
    said = command(*words[:5], tmp_path / "new", "--quantize", "int3")
    assert said.code == 2 and "int8" in said.err and "--quantize int3" in said.err
    assert not (tmp_path / "new").exists()


def test_all_that_cannot_be_exported_is_named_at_once(
    trained: Any, models: Any, command: Any, tmp_path: Path
) -> None:
    out = ("--to", "ctranslate2", "--out", tmp_path / "out")
    said = command("export", trained.run, *out)
    assert said.code == 2
    assert "model.decoder.kind=recurrent" in said.err and "--to onnx" in said.err
    assert "a tag model" in command("export", models("tag").run, *out).err
    assert not (tmp_path / "out").exists()


def test_norms_that_differ_are_errors(tmp_path: Path) -> None:
    model = random_model(tmp_path / "run", {"model.encoder.norm": "rms"})
    with pytest.raises(UserError, match="rms norm in the encoder and layer norm in the decoder"):
        export_model(model.predictor_, "ctranslate2", tmp_path / "out")


def test_a_spoiled_export_is_found(
    exported: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Here every norm loses its bias: the folder is not written."""
    model, _ = exported("pre")

    def norm(self: Any, spec: Any, norm: Any) -> None:
        spec.gamma, spec.beta = self.array(norm.weight), self.array(0 * norm.bias)

    monkeypatch.setattr(exporter.Filler, "norm", norm)
    with pytest.raises(UserError, match="export check failed"):
        export_model(model.predictor_, "ctranslate2", tmp_path / "out")
    assert list(tmp_path.iterdir()) == []


def test_parity_counts_hypotheses_and_compares_scores() -> None:
    ours = [Hypothesis((5,), -1.0, ()), Hypothesis((6,), -2.0, ()), Hypothesis((7,), -3.0, ())]
    theirs = [Hypothesis((5,), -1.5, ()), Hypothesis((8,), -2.0, ()), Hypothesis((7,), -3.1, ())]
    assert parity(ours, theirs) == (pytest.approx(2 / 3), 0.5)


def test_another_engine_is_an_error_that_names_it(
    exported: Any, command: Any, tmp_path: Path
) -> None:
    model, folder = exported("pre")
    with pytest.raises(UserError, match="exported for engine ctranslate2; torch cannot"):
        regard.load(folder, engine="torch")
    with pytest.raises(UserError, match="found 'tensorrt'"):
        regard.load(model.folder_, engine="tensorrt")
    with pytest.raises(UserError, match="quantize=float32"):
        regard.load(folder, quantize="int8")
    pairs = tmp_path / "x.tsv"
    pairs.write_text("a\ta\n")
    assert "found 'tensorrt'" in command("evaluate", folder, pairs, "--engine", "tensorrt").err


def test_labels_are_given_by_torch_only(models: Any) -> None:
    with pytest.raises(UserError, match="tag models need engine torch"):
        regard.load(models("tag").run, engine="ctranslate2")


def test_a_run_folder_is_exported_once(
    exported: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, _ = exported("post")
    monkeypatch.setenv("REGARD_CACHE", str(tmp_path))
    first = regard.load(model.folder_, engine="ctranslate2")
    assert isinstance(first.model_, CTranslate2Engine)
    assert first.predict(["abc", "xyz"]) == model.predict(["abc", "xyz"])
    monkeypatch.setattr(exporter, "export", None)  # nothing is exported again
    assert regard.load(model.folder_, engine="ctranslate2").predict(["abc"]) == model.predict(
        ["abc"]
    )
    with pytest.raises(TypeError):  # other weights are another export
        cached_export(model.predictor_, "ctranslate2", "int8")


def test_no_weights_of_torch_stay_next_to_those_of_the_engine(
    exported: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, _ = exported("pre")
    monkeypatch.setenv("REGARD_CACHE", str(tmp_path))
    read, made = predictor._model, []

    def watched(*given: Any) -> Any:
        found = read(*given)
        made.append(weakref.ref(found))
        return found

    monkeypatch.setattr(predictor, "_model", watched)
    for _ in range(2):  # exported now, and taken from the cache
        loaded = regard.load(model.folder_, engine="ctranslate2")
        gc.collect()
        assert made.pop()() is None and isinstance(loaded.model_, CTranslate2Engine)


def test_a_source_with_more_tokens_than_positions_is_an_error(exported: Any) -> None:
    _, folder = exported("pre")
    long = "a" * exporter.LENGTH
    with pytest.raises(UserError, match=r"the source has 2,048 tokens.* at most 2,047"):
        regard.load(folder).predict(["abc", long])


def test_corruption_is_an_error(exported: Any, tmp_path: Path) -> None:
    _, folder = exported("pre")
    copy = shutil.copytree(folder, tmp_path / "copy")
    path = copy / "ctranslate2" / "model.bin"
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(UserError, match="corrupted; export the model again"):
        regard.load(copy)
    with pytest.raises(UserError, match="corrupted; export the model again"):
        read_model(copy / "ctranslate2")
    (copy / "export.json").write_text('{"format": 99, "engine": "ctranslate2", "version": "9.9"}')
    with pytest.raises(UserError, match=r"exported by a newer version, regard 9\.9"):
        regard.load(copy)


@pytest.mark.parametrize("batch_size", [1, 7, 32])
def test_batches_are_translated_as_planned(
    batch_size: int, exported: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """CTranslate2 gets groups of batches and divides them; the order of the answers stays."""
    model, folder = exported("pre")
    loaded, given = regard.load(folder), []
    search = loaded.model_.beam_search
    translator = search.translator

    class Watched:
        def translate_batch(self, rows: Any, **options: Any) -> Any:
            given.append((len(rows), options["max_batch_size"]))
            return translator.translate_batch(rows, **options)

    monkeypatch.setattr(search, "translator", Watched())
    texts = ["abcdefghijkl"[: 1 + n % 11] + "xyz"[n % 3] for n in range(150)]
    assert loaded.predict(texts, batch_size=batch_size) == model.predict(texts)
    assert max(size for _, size in given) == batch_size
    assert sum(rows for rows, _ in given) == 150 and max(rows for rows, _ in given) <= 64


def test_groups_never_make_batches_larger() -> None:
    sizes = [2, 3, 3, 1, 40, 20, 30, 100, 1, 1]  # small batches of long sources come first
    counter = iter(range(sum(sizes)))
    parts = [[next(counter) for _ in range(size)] for size in sizes]
    groups = ctranslate2_engine._groups(parts)
    assert [part for group in groups for part in group] == parts
    lengths = [[len(part) for part in group] for group in groups]
    assert lengths == [[2], [3, 3, 1], [40, 20], [30], [100], [1, 1]]
