"""Models exported to CTranslate2 answer as they do in torch."""

import gc
import json
import random
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any, get_args

import pytest
import torch

import regard
from regard import estimators
from regard.config import load_config
from regard.data.batch import Padded, pad
from regard.data.read import Pair
from regard.data.vocabulary import EOS, SPECIALS
from regard.engines import auto as auto_engine
from regard.engines.ctranslate2_engine import CTranslate2Engine
from regard.engines.open import open_engine
from regard.errors import UserError
from regard.export import cached_export, export_model
from regard.export import ctranslate2 as exporter
from regard.export.ctranslate2_read import read_model
from regard.export.folder import write_export
from regard.export.parity import compare
from regard.files import write_text
from regard.nn.positions import Positions
from regard.search import Beam, Sample, Wish
from regard.search.hypothesis import NEVER
from regard.training.run import start_run
from regard.training.weights import save_weights

pytest.importorskip("ctranslate2")

LETTERS = "abcdefghijklmnopqrstuvwxyz"
BASE = {
    f"model.{side}.{name}": value
    for side in ("encoder", "decoder")
    for name, value in {
        **{"kind": "transformer", "layers": 2, "width": 16, "heads": 4},
        **{"feedforward": 32, "dropout": 0.0},
    }.items()
}
BASE["model.head_bias"] = True


def both(**settings: Any) -> dict[str, Any]:
    """Settings of the encoder and of the decoder."""
    return {f"model.{side}.{k}": v for side in ("encoder", "decoder") for k, v in settings.items()}


KINDS: dict[str, dict[str, Any]] = {
    "pre": {},
    "post": both(norm_place="post"),
    "rms, gelu": both(norm="rms", activation="gelu"),
    "post, own head": {**both(norm_place="post"), "model.tied": False},
    "unscaled": both(embedding_scale=False),
    "uneven": {"model.encoder.layers": 1, "model.decoder.heads": 2, "model.encoder.width": 24},
    "mixed": {"model.encoder.norm_place": "post", "model.decoder.activation": "gelu"},
    "shared": {"task.shared": True, "task.source.symbols": "bpe", "task.target.symbols": "bpe"},
}
for kind in get_args(get_args(Positions)[0]):
    name = kind.model_fields["kind"].default
    if name in exporter.POSITIONS:
        KINDS[f"positions {name}"] = {
            f"model.{s}.positions.kind": name for s in ("encoder", "decoder")
        }


def random_model(folder: Path, settings: dict[str, Any]) -> regard.Transducer:
    """The folder of a model with random weights, whose outputs follow the source and end."""
    chance = random.Random(0)
    texts = ["".join(chance.choices(LETTERS, k=chance.randint(1, 12))) for _ in range(100)]
    given = [f"{key}={json.dumps(value)}" for key, value in (BASE | settings).items()]
    pairs = [Pair(text, text, 0) for text in texts]
    run = start_run(folder, load_config(None, ["task.kind=transduce", *given]), pairs, pairs)
    folder.mkdir()
    write_text(folder / "config.yaml", run.config.dump())
    run.task.save(folder)
    torch.manual_seed(1)
    with torch.no_grad():
        for name, weight in run.model.named_parameters():
            noise, size = torch.randn(weight.shape), 3 if "cross" in name else 1
            weight.copy_(noise * size * weight.shape[-1] ** -0.5 if weight.ndim > 1 else weight)
            if name.endswith("bias"):
                weight.copy_(noise / 4)
        run.model.head.weight.mul_(1.5)
    save_weights(run.model, folder / "model.safetensors")
    model = regard.load(folder)
    assert isinstance(model, regard.Transducer)
    make_it_end(model)
    return model


@torch.no_grad()
def make_it_end(model: regard.Transducer) -> None:
    """Makes the end more probable, and other specials less so, until half of the outputs end."""
    bias, source = model.model_.head.bias, sources(model, 20)
    bias[NEVER] -= 3
    for _ in range(40):
        found = Beam(beam=1).run(model.model_, source, torch.full((20,), 12))
        if sum(h[0].cut for h in found) <= 10:
            break
        bias[EOS] += 0.5
    save_weights(model.model_, model.folder_ / "model.safetensors")


@pytest.fixture(scope="session")
def exported(
    tmp_path_factory: pytest.TempPathFactory,
) -> Callable[[str], tuple[regard.Transducer, Path]]:
    """A random model of a kind and its export. They are shared: no test may change them."""
    known: dict[str, tuple[regard.Transducer, Path]] = {}

    def of(kind: str) -> tuple[regard.Transducer, Path]:
        if kind not in known:
            folder = tmp_path_factory.mktemp("ct2")
            model = random_model(folder / "run", KINDS[kind])
            export_model(model, "ctranslate2", folder / "out")
            known[kind] = model, folder / "out"
        return known[kind]

    return of


def sources(model: regard.Transducer, count: int, seed: int = 2) -> Padded:
    """Random rows of symbols."""
    chance = random.Random(seed)
    ids = range(len(SPECIALS), len(model.task_.source))  # type: ignore[attr-defined]
    return pad([[*chance.choices(ids, k=chance.randint(1, 15)), EOS] for _ in range(count)])


def limits_of(source: Padded) -> torch.Tensor:
    return 3 * source.mask.sum(1) + 10


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("beam", [1, 5])
def test_the_same_answers_as_torch(kind: str, beam: int, exported: Any) -> None:
    """A hundred random sources; a good part is CTranslate2's own doing."""
    model, folder = exported(kind)
    engine = open_engine(folder)
    source, options = sources(model, 100), Beam(beam=beam)
    limits = limits_of(source)
    ours = options.run(model.model_, source, limits, beam)
    theirs = engine.search(options, source, limits, beam)
    for one, other in zip(ours, theirs, strict=True):
        assert [h.symbols for h in one] == [h.symbols for h in other]
        assert [h.score for h in one] == pytest.approx([h.score for h in other], abs=1e-4)
        assert [h.cut for h in one] == [h.cut for h in other]
    assert isinstance(engine, CTranslate2Engine)
    own = engine._search(source, limits.tolist(), beam, options)
    assert sum(found is not None for found in own) >= 20


@pytest.mark.parametrize("alpha", [0.0, 1.0])
@pytest.mark.parametrize("beam", [1, 4])
def test_each_sentence_ends_at_its_own_limit(alpha: float, beam: int, exported: Any) -> None:
    model, folder = exported("pre")
    source, options = sources(model, 60, seed=3), Beam(beam=beam, alpha=alpha)
    limits = torch.tensor([1 + row % 9 for row in range(60)])
    ours = options.run(model.model_, source, limits)
    theirs = open_engine(folder).search(options, source, limits)
    assert [h[0].symbols for h in ours] == [h[0].symbols for h in theirs]
    assert [h[0].cut for h in ours] == [h[0].cut for h in theirs]
    assert any(h[0].cut for h in ours) and not all(h[0].cut for h in ours)


@pytest.mark.parametrize(
    ("options", "wished"),
    [
        (Beam(no_repeat=1), False),
        (Beam(min_length=6), False),
        (Beam(stop="first"), False),
        (Beam(normalise="gnmt", alpha=2.0), False),
        (Beam(coverage=0.5), False),
        (Beam(beam=4, groups=2), False),
        (Beam(), True),
        (Sample(top_k=5), False),
    ],
    ids=str,
)
def test_what_ctranslate2_does_otherwise_is_done_by_our_search(
    options: Any, wished: bool, exported: Any
) -> None:
    model, folder = exported("pre")
    source = sources(model, 20, seed=4)
    wishes = [Wish((6, 7), ((8,),), ((9,),))] * 20 if wished else None
    ours = options.run(model.model_, source, limits_of(source), 2, wishes)
    theirs = open_engine(folder).search(options, source, limits_of(source), 2, wishes)
    assert [[h.symbols for h in one] for one in ours] == [[h.symbols for h in o] for o in theirs]
    plain = Beam(beam=getattr(options, "beam", 5)).run(model.model_, source, limits_of(source), 2)
    assert [one[0].symbols for one in plain] != [one[0].symbols for one in ours]


def test_a_source_without_symbols_is_answered(exported: Any) -> None:
    """An empty line, of which CTranslate2 gives an output without even an end."""
    model, folder = exported("pre")
    source, options = pad([[EOS], [6, 7, EOS]]), Beam(beam=2)
    ours = options.run(model.model_, source, limits_of(source), 2)
    theirs = open_engine(folder).search(options, source, limits_of(source), 2)
    assert [[h.symbols for h in one] for one in ours] == [[h.symbols for h in o] for o in theirs]


@pytest.mark.parametrize("kind", ["pre", "post, own head", "shared"])
def test_weights_come_back(kind: str, exported: Any) -> None:
    model, folder = exported(kind)
    again = read_model(folder / "ctranslate2").state_dict()
    for name, weight in model.model_.state_dict().items():
        assert torch.equal(again[name], weight), name


def test_rounded_weights_come_back_rounded(exported: Any, tmp_path: Path) -> None:
    model, whole = exported("pre")
    facts = exporter.export(model, tmp_path / "int8" / "ctranslate2", quantize="int8")
    write_export(model, tmp_path / "int8", facts)
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
    assert "only an exported model" in command(*words).err
    assert "exported already" in command("export", folder, *words[2:5], tmp_path / "new").err
    assert "expected, 'tflite' found" in command("export", folder, "--to", "tflite", *words[4:]).err
    said = command(*words[:5], tmp_path / "new", "--quantize", "int3")
    assert said.code == 2 and "int8" in said.err and "'int3' found" in said.err
    assert not (tmp_path / "new").exists()


def test_all_that_cannot_be_exported_is_named_at_once(
    trained: Any, models: Any, command: Any, tmp_path: Path
) -> None:
    out = ("--to", "ctranslate2", "--out", tmp_path / "out")
    said = command("export", trained.run, *out)
    assert said.code == 2
    assert "a recurrent encoder; a recurrent decoder" in said.err and "--to onnx" in said.err
    assert "a tag model" in command("export", models("tag").run, *out).err
    assert not (tmp_path / "out").exists()


def test_norms_that_differ_are_refused(tmp_path: Path) -> None:
    model = random_model(tmp_path / "run", {"model.encoder.norm": "rms"})
    with pytest.raises(UserError, match="rms norm in the encoder and layer norm in the decoder"):
        export_model(model, "ctranslate2", tmp_path / "out")


def test_a_spoiled_export_is_found(
    exported: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Here every norm loses its bias: the folder is not written."""
    model, _ = exported("pre")

    def norm(self: Any, spec: Any, norm: Any) -> None:
        spec.gamma, spec.beta = self.array(norm.weight), self.array(0 * norm.bias)

    monkeypatch.setattr(exporter.Filler, "norm", norm)
    with pytest.raises(UserError, match="does not answer as"):
        export_model(model, "ctranslate2", tmp_path / "out")
    assert list(tmp_path.iterdir()) == []


def test_comparison_counts_answers_and_looks_at_scores() -> None:
    from regard.search import Hypothesis

    ours = [Hypothesis((5,), -1.0, ()), Hypothesis((6,), -2.0, ()), Hypothesis((7,), -3.0, ())]
    theirs = [Hypothesis((5,), -1.5, ()), Hypothesis((8,), -2.0, ()), Hypothesis((7,), -3.1, ())]
    assert compare(ours, theirs) == (pytest.approx(2 / 3), 0.5)


def test_another_engine_is_refused_by_name(exported: Any, command: Any) -> None:
    model, folder = exported("pre")
    with pytest.raises(UserError, match="exported for the engine ctranslate2, so torch cannot"):
        regard.load(folder, engine="torch")
    with pytest.raises(UserError, match="'tensorrt' found"):
        regard.load(model.folder_, engine="tensorrt")
    with pytest.raises(UserError, match="in float32; export it anew for int8"):
        regard.load(folder, quantize="int8")
    assert "'tensorrt' found" in command("evaluate", folder, "x.tsv", "--engine", "tensorrt").err


def test_labels_are_given_by_torch_only(models: Any) -> None:
    with pytest.raises(UserError, match="a tag model is run by torch only"):
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
        cached_export(model, "ctranslate2", "int8")


def test_no_weights_of_torch_stay_beside_those_of_the_engine(
    exported: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, _ = exported("pre")
    monkeypatch.setenv("REGARD_CACHE", str(tmp_path))
    read, made = estimators._model, []

    def watched(*given: Any) -> Any:
        found = read(*given)
        made.append(weakref.ref(found))
        return found

    monkeypatch.setattr(estimators, "_model", watched)
    for _ in range(2):  # exported now, and taken from the cache
        loaded = regard.load(model.folder_, engine="ctranslate2")
        gc.collect()
        assert made.pop()() is None and isinstance(loaded.model_, CTranslate2Engine)


def test_auto_measures_where_there_is_enough_to_answer(
    exported: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    model, _ = exported("pre")
    monkeypatch.setenv("REGARD_CACHE", str(tmp_path))
    monkeypatch.setattr("regard.engines.auto.SECOND", 0.02)
    monkeypatch.setattr("regard.engines.auto.OTHERS", (auto_engine.Choice("ctranslate2"),))
    auto = regard.load(model.folder_, engine="auto")
    assert auto.predict(["abc"]) == model.predict(["abc"])
    assert "engine auto" not in capsys.readouterr().err
    chance = random.Random(5)
    many = ["".join(chance.choices(LETTERS, k=chance.randint(1, 9))) for _ in range(210)]
    assert auto.predict(many) == model.predict(many)
    said = capsys.readouterr().err
    assert "engine auto: torch " in said and ", ctranslate2 " in said and said.endswith(" it is\n")
    auto.predict(many)
    assert "engine auto" not in capsys.readouterr().err


def test_auto_never_takes_an_engine_that_answers_otherwise(
    exported: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    from regard.engines import auto, torch_engine

    model, _ = exported("pre")
    other = random_model(tmp_path / "run", KINDS["post"])
    engine = torch_engine.TorchEngine(other.model_)
    monkeypatch.setattr(auto, "_open", lambda *_: engine)
    monkeypatch.setattr(auto, "SECOND", 0.0)
    monkeypatch.setattr(auto.Trial, "run", _always_faster(auto.Trial.run))
    first = torch_engine.TorchEngine(model.model_)
    chosen = auto.AutoEngine(model.folder_, first)
    source = pad([[5 + i % 7, 6, EOS] for i in range(200)])

    def find(engine: Any, part: list[int]) -> Any:
        some = Padded(source.data[part], source.mask[part])
        return engine.search(Beam(), some, torch.full((len(part),), 12))

    assert chosen.suited([list(range(i, i + 20)) for i in range(0, 200, 20)], find) is first
    assert "alike" in capsys.readouterr().err


def test_auto_leaves_what_is_too_long_to_torch(
    exported: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """CTranslate2 is the fastest; of sources and answers it is given only those it has places for,
    in the trial and afterwards."""
    model, _ = exported("pre")
    monkeypatch.setenv("REGARD_CACHE", str(tmp_path))
    monkeypatch.setattr(auto_engine, "SECOND", 0.0)
    monkeypatch.setattr(auto_engine, "OTHERS", (auto_engine.Choice("ctranslate2"),))
    monkeypatch.setattr(auto_engine.Trial, "run", _always_faster(auto_engine.Trial.run))
    opened, given = auto_engine._open, []

    def short(*which: Any) -> Any:
        found = opened(*which)
        engine = found.engine
        engine.source_places, search = 6, engine.search
        monkeypatch.setattr(
            engine, "search", lambda o, source, *a: given.append(source) or search(o, source, *a)
        )
        return found

    monkeypatch.setattr(auto_engine, "_open", short)
    auto = regard.load(model.folder_, engine="auto")
    chance = random.Random(5)
    many = ["".join(chance.choices(LETTERS, k=chance.randint(1, 9))) for _ in range(210)]
    assert auto.predict(many) == model.predict(many)
    assert auto.model_.taken() == ["ctranslate2", None] and given
    given.clear()
    again = auto.predict(["abc", "abcabcabc"], batch_size=1)
    assert again == model.predict(["abc", "abcabcabc"], batch_size=1)
    assert [len(source.data[0]) for source in given] == [4]  # abc and the end
    engine = auto.model_.engine
    engine.engine.target_places = 20
    chosen = [engine.fitting(6, 20), engine.fitting(7, 20), engine.fitting(6, 21)]
    assert [one.name for one in chosen] == ["ctranslate2", "torch", "torch"]


def test_the_engine_of_a_first_part_is_taken_again(
    exported: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, _ = exported("pre")
    monkeypatch.setenv("REGARD_CACHE", str(tmp_path))
    auto = regard.load(model.folder_, engine="auto").model_
    auto.take(None)
    assert auto.taken() is None and auto.engine is auto.torch
    auto.take(["ctranslate2", "int8"])
    assert isinstance(auto.engine.engine, CTranslate2Engine)
    assert auto.taken() == ["ctranslate2", "int8"]
    monkeypatch.setattr(auto_engine, "fastest", None)  # nothing is measured any more
    assert auto.suited([list(range(500))], lambda engine, part: []) is auto.engine
    auto.take(["torch", None])
    assert auto.engine is auto.torch and auto.taken() == ["torch", None]


def _always_faster(run: Any) -> Any:
    """Trials that each seem ten times as fast as the one before."""
    rates = [0.01]

    def faster(self: Any, engine: Any) -> Any:
        rates[0] *= 10
        return run(self, engine)[0], rates[0]

    return faster


def test_a_source_with_more_symbols_than_places_is_refused(exported: Any) -> None:
    _, folder = exported("pre")
    long = "a" * exporter.LENGTH
    with pytest.raises(UserError, match=r"a source of 2,048 symbols.* places for 2,047"):
        regard.load(folder).predict(["abc", long])


def test_damage_is_said(exported: Any, tmp_path: Path) -> None:
    import shutil

    _, folder = exported("pre")
    copy = shutil.copytree(folder, tmp_path / "copy")
    path = copy / "ctranslate2" / "model.bin"
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(UserError, match="damaged, export the model anew"):
        regard.load(copy)
    with pytest.raises(UserError, match="damaged, export the model anew"):
        read_model(copy / "ctranslate2")
    (copy / "export.json").write_text('{"format": 99, "engine": "ctranslate2", "version": "9.9"}')
    with pytest.raises(UserError, match=r"exported by regard 9\.9, which is newer"):
        regard.load(copy)
