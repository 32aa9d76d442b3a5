"""Laws of fast twins and of greedy search: less around it, the same numbers."""

import copy
from itertools import product
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from regard.data.tensors.padded import Padded, pad
from regard.data.tensors.special import BOS, EOS
from regard.data.tensors.state import State
from regard.data.tensors.tree import tree_map
from regard.models.encoder_decoder import EncoderDecoderOptions, FastEncoderDecoder
from regard.models.fast_decoder import FastDecoder
from regard.nn.attention_scores import AdditiveScore, FixedContext, Score
from regard.nn.capture_hooks import recording
from regard.nn.fast import claim, fast
from regard.nn.feedforward import FeedForward
from regard.nn.kernels.cache import Cache
from regard.nn.kernels.kernel import Kernel
from regard.nn.kernels.softmax import SoftmaxAttention
from regard.nn.norms import Norm
from regard.nn.norms.vector import LayerNorm
from regard.nn.positions import Position
from regard.nn.positions.sinusoidal import SinusoidalPosition
from regard.nn.quantize import quantize
from regard.nn.residual import PreNorm, Residual
from regard.search import Beam, SearchRequest, TokenConstraints
from regard.search.beam import BeamSpec, Stopping, beam_search
from regard.search.greedy import greedy_search
from regard.search.logit_masks import LogitMasks
from regard.search.scoring import Scoring

from .conftest import MODELS, NAMES, tiny

BEAMS, STEPS = 3, 20


def close(one: Tensor, other: Tensor) -> None:
    torch.testing.assert_close(one, other, atol=1e-5, rtol=1e-5)


def alike(one: State, other: State) -> None:
    """The same past: hidden vectors, or caches and what each beam sees of them; and all counts."""
    here, there = (numbers(state.past) for state in (one, other))
    for mine, other_one in zip(here, there, strict=True):
        close(mine, other_one)
    assert one.past.keys() == other.past.keys()
    for name in {"at", "entries", "room"} & one.past.keys():
        assert one.past[name] == other.past[name]


def numbers(past: Any) -> list[Tensor]:
    found: list[Tensor] = []

    def note(leaf: Any) -> Any:
        found.extend([leaf.keys, leaf.values] if isinstance(leaf, Cache) else [leaf])
        return leaf

    tree_map(note, past)
    return found


@pytest.fixture(params=MODELS, ids=NAMES)
def pair_of_steppers(request: pytest.FixtureRequest) -> tuple[nn.Module, FastEncoderDecoder]:
    model = tiny(request.param)
    return model, fast(model)


def test_standard_parts_make_a_side_with_a_fast_path(
    model: nn.Module, options: EncoderDecoderOptions
) -> None:
    """On either side; whatever stands on the other."""
    twin = fast(model)
    assert isinstance(twin, FastEncoderDecoder)
    known = options.encoder.kind in ("transformer", "recurrent") and plain(model.encoder)
    assert (twin.encode is not None) == known
    assert isinstance(twin.decoder, FastDecoder) == plain(model.decoder)


def plain(side: nn.Module) -> bool:
    """Whether each part of a side says of itself that the fused step knows it."""
    kinds = (Kernel, Norm, Residual, Position, Score, FeedForward)
    sizes = [part.sizes for part in side.modules() if hasattr(part, "sizes")]
    return all(_says(part) for part in side.modules() if isinstance(part, kinds)) and all(
        size.is_plain for size in sizes
    )


def _says(part: Any) -> bool:
    names = {Kernel: "fuses", Position: "adds", Score: "fast"}
    name = next((name for kind, name in names.items() if isinstance(part, kind)), "fused")
    return bool(claim(part, name))


@pytest.mark.parametrize("kind", ["transformer", "recurrent"])
@pytest.mark.parametrize("quantized", [False, True])
def test_default_models_take_the_fast_step(kind: str, quantized: bool, source: Padded) -> None:
    """Every step of a search: of an LSTM with int8 weights there is no twin."""
    model = model_of((kind, kind))
    twin = fast(quantize(model) if quantized else model)
    calls: list[int] = []
    if twin.decoder is not None:
        step = twin.decoder.step
        twin.decoder.step = lambda *given: calls.append(1) or step(*given)
    model.decoder.forward = lambda *given: pytest.fail("the module was asked")
    if quantized and kind == "recurrent":
        assert twin.decoder is None
        return
    request = SearchRequest(source, torch.full((len(source.data),), 5))
    found = Beam(beam=3).run(twin, request)
    assert len(calls) >= 2 and all(found)


def test_recurrent_layers_in_int8_have_no_fast_path() -> None:
    options = next(m for m in MODELS if m.decoder.kind == m.encoder.kind == "recurrent")
    twin = fast(quantize(copy.deepcopy(tiny(options))))
    assert twin.encode is None and twin.decoder is None


@torch.inference_mode()
def test_the_fast_path_steps_alike(
    pair_of_steppers: tuple[nn.Module, FastEncoderDecoder], source: Padded
) -> None:
    """Beams change places, die out and continue; a sentence leaves; some steps have two tokens,
    and some are watched."""
    model, twin = pair_of_steppers
    chance = torch.Generator().manual_seed(5)
    tokens, B = torch.full((len(source.data), 1), BOS), len(source.data)
    here, there = model.start(source), twin.start(source)
    for step in range(STEPS):
        logits, here = model.step(tokens, here)
        if step == STEPS - 4:
            with recording() as seen:
                twin_logits, there = twin.step(tokens, there)
            if not isinstance(getattr(model.decoder, "score", None), FixedContext):
                assert seen.alignment().shape[:2] == tokens.shape
        else:
            twin_logits, there = twin.step(tokens, there)
        close(twin_logits, logits)
        alike(there, here)
        own = len(tokens) // B
        parents = torch.randint(own, (B, BEAMS), generator=chance)
        rows = (parents + torch.arange(B)[:, None] * own).flatten()
        kept = None
        if step == 9:
            kept, B = torch.tensor([0, 2, 3]), 3
            rows = rows.view(-1, BEAMS)[kept].flatten()
        here, there = here.select(rows, kept), there.select(rows, kept)
        length = 2 if step in (2, 14) else 1
        tokens = torch.randint(5, 8, (B * BEAMS, length), generator=chance)


@torch.inference_mode()
def test_the_fast_path_reads_a_prefix_at_once(
    pair_of_steppers: tuple[nn.Module, FastEncoderDecoder], source: Padded
) -> None:
    """Four tokens, then one by one; and without padding, where nothing is masked."""
    for rows in (source, pad([[5, 6, EOS], [7, 8, EOS]])):
        model, twin = pair_of_steppers
        here, there = model.start(rows), twin.start(rows)
        encoded, other = there.memory["encoded"].data, here.memory["encoded"].data
        close(encoded[rows.mask], other[rows.mask])
        for length in (4, 1, 1):
            tokens = torch.full((len(rows.data), length), 6)
            logits, here = model.step(tokens, here)
            twin_logits, there = twin.step(tokens, there)
            close(twin_logits, logits)


@torch.inference_mode()
def test_large_vocabularies(
    options: EncoderDecoderOptions, source: Padded, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No table of what tokens add to gates, but an output layer whose weights are laid out."""
    monkeypatch.setattr("regard.models.fast_recurrent.MAX_TABLE", 0)
    monkeypatch.setattr("regard.models.output_layer.LARGE", 0)
    model, tokens = tiny(options), torch.full((len(source.data), 1), 6)
    twin = fast(model)
    close(twin.step(tokens, twin.start(source))[0], model.step(tokens, model.start(source))[0])


CONSTRAINTS = [
    TokenConstraints((5, 6)),
    TokenConstraints(),
    TokenConstraints((), (), ((5,), (6, 7))),
    TokenConstraints((7,)),
]


WAYS: list[tuple[LogitMasks, Scoring, Stopping]] = [
    (LogitMasks(), Scoring(), "no_gain"),
    (LogitMasks(min_length=3), Scoring("gnmt", 1.0), "beam_full"),
    (LogitMasks(no_repeat_ngram=2), Scoring("none"), "optimal"),
    (LogitMasks(1, 1, CONSTRAINTS), Scoring(), "first"),
]


def test_greedy_is_a_beam_of_one(
    model: nn.Module, options: EncoderDecoderOptions, source: Padded
) -> None:
    """Output by output, with all its scores; each model in one of four ways."""
    masks, scoring, stopping = WAYS[MODELS.index(options) % len(WAYS)]
    limits = torch.tensor([7, 4, 4, 9])
    greedy = greedy_search(model.step, model.start(source), limits, scoring, masks)
    plan = BeamSpec(1, scoring=scoring, masks=masks, stopping=stopping)
    beam = beam_search(model.step, model.start(source), limits, plan)
    for (one,), (other,) in zip(greedy, beam, strict=True):
        assert one.tokens == other.tokens and one.truncated == other.truncated
        assert one.score == pytest.approx(other.score, abs=1e-5, rel=1e-6)
        assert one.token_logprobs == pytest.approx(other.token_logprobs, abs=1e-5, rel=1e-6)


class Sharper(SoftmaxAttention):
    """A kernel that looks like the plain one, and is not."""

    def forward(self, q: Tensor, *rest: Any) -> Any:
        return super().forward(3 * q, *rest)

    def attend(self, q: Tensor, *rest: Any) -> Tensor:
        return super().attend(3 * q, *rest)


class Longer(Position):
    """Positions that do more than add."""

    def embed(self, x: Tensor, at: int, layer: int = 0) -> Tensor:
        return x * (1 + at + torch.arange(x.shape[1])[:, None])


class Halved(LayerNorm):
    def forward(self, x: Tensor, real: Tensor | None = None) -> Tensor:
        return 0.5 * super().forward(x, real)


class Doubled(PreNorm):
    def leave(self, x: Tensor, branch: Tensor, real: Tensor | None = None) -> Tensor:
        return x + 2 * branch


class Negative(FeedForward):
    def forward(self, x: Tensor) -> Tensor:
        return -super().forward(x)


class Flatter(AdditiveScore):
    def score(self, h: Tensor, keys: Tensor) -> Tensor:
        return 0.1 * super().score(h, keys)


class Louder(nn.Linear):
    def forward(self, x: Tensor) -> Tensor:
        return 2 * super().forward(x)


OTHER = {
    SoftmaxAttention: Sharper,
    SinusoidalPosition: Longer,
    LayerNorm: Halved,
    PreNorm: Doubled,
    FeedForward: Negative,
    AdditiveScore: Flatter,
    nn.Linear: Louder,
}
PAIRS = list(product(("transformer", "recurrent"), repeat=2))


def shared_model_of(kinds: tuple[str, str]) -> nn.Module:
    return tiny(next(m for m in MODELS if (m.encoder.kind, m.decoder.kind) == kinds))


def model_of(kinds: tuple[str, str]) -> nn.Module:
    return copy.deepcopy(shared_model_of(kinds))


def parts(model: nn.Module, side: str, plain: type[nn.Module]) -> list[nn.Module]:
    return [part for part in getattr(model, side).modules() if type(part) is plain]


PLACES = [
    (kinds, side, plain)
    for kinds, side, plain in product(PAIRS, ("encoder", "decoder"), OTHER)
    if parts(shared_model_of(kinds), side, plain)
]


@pytest.mark.parametrize(
    ("kinds", "side", "plain"),
    PLACES,
    ids=[f"{'-'.join(kinds)}-{side}-{plain.__name__}" for kinds, side, plain in PLACES],
)
@torch.inference_mode()
def test_a_part_without_fast_path_never_uses_one(
    kinds: tuple[str, str], side: str, plain: type[nn.Module], source: Padded
) -> None:
    """Also where the other side is plain: a subclass runs as it is, on either side."""
    model = model_of(kinds)
    before = model.step(torch.full((len(source.data), 1), 6), model.start(source))[0]
    for part in parts(model, side, plain):
        part.__class__ = OTHER[plain]  # type: ignore[assignment]
    twin = fast(model)
    here, there = model.start(source), twin.start(source)
    for step in range(3):
        tokens = torch.full((len(source.data), 1), 6)
        logits, here = model.step(tokens, here)
        twin_logits, there = twin.step(tokens, there)
        close(twin_logits, logits)
        if step == 0:
            assert not torch.allclose(logits, before, atol=1e-4)
