"""`regard.capture` and `regard.ablate`: what they record and change, and their errors."""

import re
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import regard
from regard.core.errors import UserError
from regard.data.tensors.padded import Padded, pad
from regard.data.tensors.special import BOS, EOS
from regard.inference.engine import Engine
from regard.inference.model_capture import attention_modules
from regard.inference.torch_engine import TorchEngine
from regard.inputs.input import InputShape
from regard.models.encoder_decoder import EncoderDecoderOptions
from regard.nn.capture_hooks import active_recorder, is_recording, recording
from regard.nn.fast import fast
from regard.search import Beam, SearchRequest
from regard.search.forced_decoding import cross_attention

SIDE = {
    "kind": "transformer",
    "layers": 2,
    "width": 8,
    "heads": 2,
    "feedforward_width": 12,
    "dropout": 0,
}
FIRST = torch.tensor([[BOS], [BOS]])


def build(seed: int = 0) -> Any:
    torch.manual_seed(seed)
    options = EncoderDecoderOptions.model_validate({"encoder": SIDE, "decoder": SIDE})
    return options.build(InputShape("text", 9), 9, shared=False).eval()


@pytest.fixture
def model() -> Any:
    return build()


@pytest.fixture
def source() -> Padded:
    return pad([[5, 6, 7, EOS], [6, EOS]])


@torch.no_grad()
def run(model: Any, source: Padded) -> Tensor:
    logits, _ = model.step(FIRST, model.start(source))
    return logits


def test_nothing_is_kept_after_it_ends(model: Any, source: Padded) -> None:
    with regard.capture(model) as captured:
        run(model, source)
    counts = {name: len(calls) for name, calls in captured.calls.items()}
    assert set(counts.values()) == {1} and len(counts) == 6
    run(model, source)
    assert {name: len(calls) for name, calls in captured.calls.items()} == counts
    assert active_recorder() is None and not is_recording()
    with pytest.raises(ZeroDivisionError), regard.capture(model), regard.ablate(model, {}):
        raise ZeroDivisionError
    assert active_recorder() is None


def test_other_threads_see_and_hear_nothing(model: Any, source: Padded) -> None:
    plain, found = run(model, source), []
    heads = {name: [0, 1] for name in attention_modules(model)}
    with regard.capture(model) as captured, regard.ablate(model, heads):
        thread = threading.Thread(target=lambda: found.append(run(model, source)))
        thread.start()
        thread.join()
        assert not captured.attention and not captured.hidden and not captured.inputs
        assert not torch.allclose(run(model, source), plain, atol=1e-4)
    assert torch.equal(found[0], plain)


def test_contexts_within_contexts(model: Any, source: Padded) -> None:
    """The outer one sees all, the inner one its own; one of another model sees nothing."""
    other = build(1)
    with regard.capture(model) as outer, regard.capture(other) as elsewhere:
        run(model, source)
        with regard.capture(model) as inner, recording() as nameless:
            run(model, source)
        run(model, source)
        assert not elsewhere.attention
        run(other, source)
    assert {len(calls) for calls in outer.calls.values()} == {3}
    assert (
        {len(calls) for calls in inner.calls.values()}
        == {1}
        == {len(calls) for calls in elsewhere.calls.values()}
    )
    assert not nameless.attention and not nameless.hidden  # only attention to the source
    assert torch.equal(nameless.alignment(), inner.alignment())
    assert torch.equal(inner.alignment(), inner["decoder.layers.1.cross"].mean(1))


def test_ablations_add_up(model: Any, source: Padded) -> None:
    name = "decoder.layers.0.cross"
    with regard.ablate(model, {name: [0, 1]}):
        both = run(model, source)
    with regard.ablate(model, {name: [0]}):
        one = run(model, source)
        with regard.ablate(model, {name: [1], "encoder.layers.0.attention": []}):
            assert torch.equal(run(model, source), both)
        assert torch.equal(run(model, source), one)
    assert not torch.allclose(one, both, atol=1e-5)


def test_a_search_is_seen_and_finds_the_same(model: Any, source: Padded) -> None:
    """Also with coverage, which looks by itself, and by the fast twin, which steps aside."""
    twin, request = fast(model), SearchRequest(source, torch.tensor([6, 6]))
    assert twin is not model
    for search in (Beam(beam=3), Beam(beam=1), Beam(beam=2, coverage_penalty=0.5)):
        plain = search.run(twin, request)
        with regard.capture(model) as captured:
            found = search.run(twin, request)
        for (one,), (other,) in zip(plain, found, strict=True):
            assert one.tokens == other.tokens
            assert one.score == pytest.approx(other.score, abs=1e-5)
        assert sorted(captured.attention) == sorted(attention_modules(model))
    with regard.capture(model) as captured:
        aligned = cross_attention(twin, source, [[5, 6], [7]])
    torch.testing.assert_close(captured.alignment()[0], aligned[0])
    before = twin.start(source)
    with regard.ablate(model, {name: [0, 1] for name in attention_modules(model)}), torch.no_grad():
        ablated = cross_attention(twin, source, [[5, 6], [7]])
        begun = twin.step(FIRST, before)[0]
        torch.testing.assert_close(begun, model.step(FIRST, before)[0])
    assert not torch.allclose(begun, run(model, source), atol=1e-5)
    assert not torch.allclose(ablated[0], aligned[0], atol=1e-5)


def test_what_is_shown_is_what_was_used(model: Any, source: Padded) -> None:
    """A kernel whose explicit twin is wrong is found out."""
    kernel = model.encoder.layers[1].attention.kernel
    kernel.weights = lambda q, *rest: type(kernel).weights(kernel, 2 * q, *rest)
    with (
        regard.capture(model),
        pytest.raises(RuntimeError, match="explicit attention and fast path differ"),
    ):
        run(model, source)


def test_an_estimator_is_seen(
    trained: Any, monkeypatch: pytest.MonkeyPatch, torch_threads: Callable[[int], None]
) -> None:
    """In this process, however many sources there are, and one batch after the other."""
    monkeypatch.setenv("REGARD_WORKERS", "2")
    torch_threads(2)
    estimator = regard.load(trained.run)
    words = ["abc", "cab", "bca"] * 40
    plain = estimator.predict(words, beam=1)
    with regard.capture(estimator) as captured:
        assert estimator.predict(words, beam=1, batch_size=64) == plain
    assert sorted(map(len, captured.inputs.calls["frontend.tokens"])) == [56, 64]
    with regard.ablate(estimator, {name: [0] for name in attention_modules(estimator)}):
        assert estimator.predict(words, beam=1) != plain
    estimator.predictor_.engine = TorchEngine(estimator.model_)
    with regard.capture(estimator) as captured:
        estimator.predict(words[:1])
    assert captured.attention


class Foreign(Engine):
    name = "ctranslate2"

    def run(self, *args: Any) -> Any:
        raise NotImplementedError


def test_errors(model: Any, source: Padded) -> None:
    cross = "decoder.layers.0.cross"
    for heads, message in [
        ({"decoder.layer.0.cross": [0]}, f"did you mean {cross}"),
        ({cross: [2]}, "expected heads from 0 to 1, found 2"),
        ({cross: [-1]}, "found -1"),
        ({cross: [True]}, "found True"),
        ({cross: torch.ones(2, 3, dtype=torch.bool)}, r"expected .* booleans of shape \(rows, 2\)"),
        ({cross: torch.ones(2, 2)}, "booleans"),
    ]:
        with pytest.raises(UserError, match=message):
            regard.ablate(model, heads)
    with (
        regard.ablate(model, {cross: torch.ones(3, 2, dtype=torch.bool)}),
        pytest.raises(UserError, match="expected a mask with 2 rows, found 3"),
    ):
        run(model, source)
    with pytest.raises(UserError, match="not an attention module of this model; none available"):
        regard.ablate(nn.Linear(2, 2), {"x": [0]})
    with pytest.raises(UserError, match="not fitted"):
        regard.capture(regard.Transducer())
    with pytest.raises(UserError, match="engine ctranslate2: "):
        regard.capture(Foreign())
    with pytest.raises(UserError, match="found 'model'"):
        regard.capture("model")


def test_what_was_not_seen(model: Any, source: Padded) -> None:
    with regard.capture(model) as captured:
        logits = run(model, source)
    with pytest.raises(UserError, match=r"decoder.cross.*did you mean decoder.layers"):
        captured["decoder.cross"]
    assert "decoder.cross" not in captured.attention
    with pytest.raises(UserError, match=r"help: use captured.hidden\['encoder.layers.0'\]"):
        captured["encoder.layers.0"]
    assert repr(captured) == "Capture(modules with attention: 6, hidden: 4, inputs: 2)"
    with pytest.raises(UserError, match="no gradients were recorded"):
        captured.saliency(logits.sum())
    with regard.capture(model) as captured:
        logits, _ = model.step(FIRST, model.start(source))
    with pytest.raises(UserError, match="expected a scalar"):
        captured.saliency(logits)
    for weight in model.parameters():  # frozen weights do not hide what the input does
        weight.requires_grad_(False)
    with regard.capture(model) as frozen:
        again, _ = model.step(FIRST, model.start(source))
    for name, moved in frozen.saliency(again[0].amax()).items():
        torch.testing.assert_close(moved, captured.saliency(logits[0].amax())[name])


def test_the_documentation_names_what_there_is(model: Any) -> None:
    page = (Path(__file__).parent.parent / "docs" / "capture.md").read_text("utf-8")
    with regard.capture(model) as captured:
        named = set(re.findall(r"\bcaptured\.(\w+)", page))
    assert {"attention", "gates", "hidden", "inputs", "saliency", "entropy"} <= named
    assert [name for name in named if not hasattr(captured, name)] == []


def test_the_documented_names_of_a_tagger(models: Callable[[str], Any]) -> None:
    page = (Path(__file__).parent.parent / "docs" / "capture.md").read_text("utf-8")
    tagger = regard.load(models("tag").run)
    with regard.capture(tagger) as captured:
        tagger.predict([["a", "b"]])
    documented = set(re.findall(r"`(frontend[\w.]*)`", page)) - {"frontend.tokens"}
    assert documented == set(captured.inputs)


def test_a_forced_output_is_one_call(trained: Any) -> None:
    """As the docstring says: `predict` calls a decoder once per token, with beams as rows."""
    model = regard.load(trained.run)
    with regard.capture(model) as captured:
        model.log_likelihoods([("abc", "cba")])
    (calls,) = captured.calls.values()
    assert len(calls) == 1 and calls[0].shape[2] == 4 and captured.alignment().shape[:2] == (1, 4)


def test_vectors_have_their_own_rows(models: Callable[[str], Any]) -> None:
    """Predictions for vectors are computed in blocks of rows, captures and ablations are not."""
    model = regard.load(models("regress").run)
    with regard.capture(model) as captured:
        model.predict([(1.0, 2.0), (3.0, 4.0)])
    assert {len(x) for x in (*captured.inputs.values(), *captured.hidden.values())} == {2}
