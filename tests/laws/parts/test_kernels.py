"""Laws of kernels: the fast path is the slow one, in one pass or step by step, alone or in beams.

B sentences, k beams, R = k * B rows, H heads, T positions, K head width.
"""

from collections.abc import Sequence
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

from regard.core.options import kinds_of
from regard.data.tensors.state import State
from regard.models.transformer_options import (
    CausalTransformerOptions,
    TransformerDecoderOptions,
    TransformerEncoderOptions,
)
from regard.nn.kernels import Attention, Softmax
from regard.nn.kernels.kernel import AttentionMask, Kernel, KernelOptions, Shape, Supports
from regard.nn.positions import Position

from .toys import Slanting, Turning

B, H, T, K = 3, 2, 6, 4
KINDS: dict[str, Any] = kinds_of(Attention)
# Sizes so small that six positions are several windows, blocks, chunks and segments.
SMALL: dict[str, Any] = {
    "window": 2,
    "stride": 2,
    "size": 2,
    "chunk": 2,
    "landmarks": 3,
    "count": 2,
    "random": 1,
    "length": 64,
}
MORE: dict[str, list[dict[str, Any]]] = {
    "softmax": [{"fused": False}, {"scale": False}],
    "longformer": [{"dilation": 2, "tokens": 2}, {"tokens": 0}],
    "bigbird": [{"window": 0, "first": 0}],
    "linformer": [{"shared": False}],
    "synthesizer": [{"variant": "random"}],
}


def every_kind() -> list[KernelOptions]:
    """Each kind with its default settings, with small sizes, and with other choices."""
    found: list[KernelOptions] = []
    for name, kind in KINDS.items():
        sizes = {key: size for key, size in SMALL.items() if key in kind.model_fields}
        for settings in ({}, sizes, *(sizes | more for more in MORE.get(name, []))):
            one = kind(**settings)
            found += [] if one in found else [one]
    return found


def name_of(kind: KernelOptions) -> str:
    changed = [f"{key}={value}" for key, value in kind.model_dump(exclude_defaults=True).items()]
    return "-".join([kind.kind, *changed])


def having(ability: str) -> pytest.MarkDecorator:
    """The kinds that support something."""
    some = [kind for kind in every_kind() if getattr(kind.supports, ability)]
    return pytest.mark.parametrize("kind", some, ids=map(name_of, some))


def built(kind: KernelOptions, causal: bool) -> Kernel:
    torch.manual_seed(0)
    return kind.build(Shape(H * K, H, causal)).eval()


def more_heads(kernel: Kernel, rows: int = B, length: int = T) -> tuple[Tensor, ...]:
    """What else a kernel reads."""
    chance = torch.Generator().manual_seed(7)
    return tuple(torch.randn(rows, H, length, K, generator=chance) for _ in kernel.extra)


def is_sound(kernel: Kernel, weights: Tensor) -> bool:
    """Whether rows of weights are positive and sum to one, if the kernel claims it."""
    ones = torch.ones(weights.shape[:-1])
    sound = bool((weights >= 0).all()) and torch.allclose(weights.sum(-1), ones, atol=1e-5)
    return sound or not kernel.normalized


def heads(rows: int = B, length: int = T, seed: int = 0) -> tuple[Tensor, ...]:
    """q, k and v, each (rows, H, length, K)."""
    chance = torch.Generator().manual_seed(seed)
    return tuple(torch.randn(3, rows, H, length, K, generator=chance).unbind(0))


def real(*lengths: int) -> Tensor:
    """(B, T), True where a key is real."""
    return torch.arange(T) < torch.tensor(lengths)[:, None]


PADDED = real(6, 4, 1)


def positions_of(kind: KernelOptions) -> list[Position]:
    found: list[Position] = [Position()]
    if kind.supports.rotary:
        found.append(Turning())
    if kind.supports.bias:
        found.append(Slanting(H))
    return found


def close(one: Tensor, other: Tensor) -> None:
    torch.testing.assert_close(one, other, atol=1e-5, rtol=1e-5)


def once(
    kernel: Kernel,
    inputs: tuple[Tensor, ...],
    positions: Position,
    shared: Any = None,
    at: int = 0,
    sentences: int | None = None,
    **more: Any,
) -> tuple[tuple[Tensor, ...], AttentionMask, Any]:
    """Queries and keys as attention hands them on, with the mask of this pass; the next state."""
    q, k, v = inputs
    rows = sentences or len(q)
    prepared, shared = kernel.prepare(shared, len(q), rows, q.shape[2], q)
    q, k = positions.rotate(q, k, at)
    return (q, k, v), AttentionMask(positions, rows, at=at, prepared=prepared, **more), shared


def in_pieces(
    kernel: Kernel, inputs: tuple[Tensor, ...], cuts: Sequence[int], positions: Position
) -> Tensor:
    """The same, so many positions at a time."""
    past, shared, at, found = None, None, 0, []
    for piece in zip(*(x.split(list(cuts), 2) for x in inputs), strict=True):
        some, mask, shared = once(kernel, piece, positions, shared, at)
        out, past = kernel(*some, mask, past)
        at += piece[0].shape[2]
        found.append(out)
    return torch.cat(found, 2)


@having("bidirectional")
@pytest.mark.parametrize("bias", [False, True])
@torch.no_grad()
def test_forward_is_weights_times_values(kind: KernelOptions, bias: bool) -> None:
    more: dict[str, Any] = {"real": PADDED}
    if bias and not kind.supports.input_bias:
        return
    if bias:
        more["bias"] = torch.randn(B, H, T, T, generator=torch.Generator().manual_seed(5))
    for positions in positions_of(kind):
        kernel = built(kind, causal=False)
        some, mask, _ = once(kernel, heads(), positions, **more)
        more_reads = more_heads(kernel)
        out, past = kernel(*some, mask, None, *more_reads)
        weights, values = kernel.weights(*some, mask, None, *more_reads)
        assert past is None
        seen = PADDED[:, None, :, None].expand_as(out)
        close(out[seen], (weights @ values)[seen])
        real_rows = weights.transpose(1, 2)[PADDED]
        assert is_sound(kernel, real_rows)
        hidden = ~PADDED[:, None, None].expand_as(weights).transpose(1, 2)[PADDED]
        assert (real_rows.masked_select(hidden) == 0).all()


@having("bidirectional")
def test_gradients_are_those_of_the_explicit_weights(kind: KernelOptions) -> None:
    """Of queries, keys, values and weights of the kernel, through real positions only."""
    kernel, found = built(kind, causal=False), []
    for is_fast in (True, False):
        inputs = tuple(x.requires_grad_() for x in (*heads(), *more_heads(kernel)))
        some, mask, _ = once(kernel, inputs[:3], Position(), real=PADDED)
        if is_fast:
            out, _ = kernel(*some, mask, None, *inputs[3:])
        else:
            weights, values = kernel.weights(*some, mask, None, *inputs[3:])
            out = weights @ values
        total = (out * PADDED[:, None, :, None]).square().sum()
        sources = [*inputs, *kernel.parameters()]
        found.append(torch.autograd.grad(total, sources, allow_unused=True))
    for one, other in zip(*found, strict=True):
        assert (one is None) == (other is None)
        if one is not None and other is not None:
            torch.testing.assert_close(one, other, atol=1e-4, rtol=1e-4)


@having("causal")
@torch.no_grad()
def test_forward_without_the_future_is_weights_times_values(kind: KernelOptions) -> None:
    for positions in positions_of(kind):
        kernel = built(kind, causal=True)
        some, mask, _ = once(kernel, heads(), positions)
        out, _ = kernel(*some, mask, None)
        weights, values = kernel.weights(*some, mask, None)
        close(out, weights @ values)
        assert is_sound(kernel, weights)
        assert (weights.triu(1) == 0).all()


@having("causal")
@pytest.mark.parametrize("cuts", [(1,) * T, (4, 2), (1, 3, 2)])
@torch.no_grad()
def test_steps_equal_one_pass(kind: KernelOptions, cuts: tuple[int, ...]) -> None:
    kernel = built(kind, causal=True)
    for positions in positions_of(kind):
        whole = in_pieces(kernel, heads(), (T,), positions)
        close(in_pieces(kernel, heads(), cuts, positions), whole)


@having("causal")
@torch.no_grad()
def test_the_future_is_invisible(kind: KernelOptions) -> None:
    kernel = built(kind, causal=True)
    before = in_pieces(kernel, heads(), (T,), Position())
    for t in range(1, T):
        changed = tuple(torch.cat([x[:, :, :t], x[:, :, t:] + 1], 2) for x in heads())
        after = in_pieces(kernel, changed, (T,), Position())
        close(after[:, :, :t], before[:, :, :t])


@having("causal")
@torch.no_grad()
def test_a_step_can_be_explained_from_what_is_kept(kind: KernelOptions) -> None:
    kernel = built(kind, causal=True)
    if not kernel.traceable:
        return
    for positions in positions_of(kind):
        first, last = zip(*(x.split([4, 2], 2) for x in heads()), strict=True)
        some, mask, shared = once(kernel, first, positions)
        _, past = kernel(*some, mask, None)
        some, mask, _ = once(kernel, last, positions, shared, 4)
        out, _ = kernel(*some, mask, past)
        weights, values = kernel.weights(*some, mask, past)
        assert weights.shape == (B, H, 2, T)
        close(out, weights @ values)


@having("causal")
@torch.no_grad()
def test_beams_that_share_a_sentence_are_rows_of_their_own(kind: KernelOptions) -> None:
    """k beams of B sentences, which change places and die out, and R sentences of one beam."""
    k, steps = 3, 40
    chance = torch.Generator().manual_seed(2)
    kernel = built(kind, causal=True)
    for positions in positions_of(kind):
        together, alone = State(None, {"past": None, "shared": None}), State(None, None)
        alone.past = {"past": None, "shared": None}
        for at in range(steps):
            inputs = heads(k * B, 1, seed=at)
            states = []
            for state, sentences in ((together, B), (alone, k * B)):
                some, mask, shared = once(
                    kernel, inputs, positions, state.past["shared"], at, sentences
                )
                out, past = kernel(*some, mask, state.past["past"])
                states.append((out, State(None, {"past": past, "shared": shared})))
                if kernel.traceable:
                    weights, values = kernel.weights(*some, mask, state.past["past"])
                    close(out, weights @ values)
                    assert weights.shape[-1] == at + 1
            (here, together), (there, alone) = states
            close(here, there)
            parents = torch.randint(k, (B, k), generator=chance)
            rows = (parents + torch.arange(B)[:, None] * k).flatten()
            together, alone = together.select(rows), alone.select(rows, rows)


@having("causal")
@torch.no_grad()
def test_select_commutes(kind: KernelOptions) -> None:
    kernel, rows = built(kind, causal=True), torch.tensor([2, 0, 0, 1])
    first, last = zip(*(x.split([3, 3], 2) for x in heads()), strict=True)
    some, mask, shared = once(kernel, first, Position())
    _, past = kernel(*some, mask, None)
    state = State({}, {"past": past, "shared": shared})
    some, mask, _ = once(kernel, last, Position(), shared, 3)
    there, _ = kernel(*some, mask, past)
    picked = state.select(rows, rows).past
    some, mask, _ = once(kernel, tuple(x[rows] for x in last), Position(), picked["shared"], 3)
    here, _ = kernel(*some, mask, picked["past"])
    close(here, there[rows])


@having("bidirectional")
@torch.no_grad()
def test_masked_keys_do_not_count(kind: KernelOptions) -> None:
    kernel, (q, k, v) = built(kind, causal=False), heads()
    hidden = ~PADDED[:, None, :, None]
    outs = []
    for keys, values in ((k, v), (k.masked_fill(hidden, 9.0), v.masked_fill(hidden, 9.0))):
        some, mask, _ = once(kernel, (q, keys, values), Position(), real=PADDED)
        outs.append(kernel(*some, mask, None, *more_heads(kernel))[0])
    seen = PADDED[:, None, :, None].expand_as(outs[0])
    close(outs[0][seen], outs[1][seen])


@having("cross")
@torch.no_grad()
def test_cross_attention_is_weights_times_values_for_every_beam(kind: KernelOptions) -> None:
    kernel, beams = built(kind, causal=False), 2
    _, k, v = heads(seed=1)
    q = heads(beams * B, 3)[0]
    hidden = ~PADDED[:, None, :, None]
    out = kernel.attend(q, kernel.memory(k, v, PADDED), PADDED)
    stuffed = kernel.memory(k.masked_fill(hidden, 9.0), v.masked_fill(hidden, 9.0), PADDED)
    close(kernel.attend(q, stuffed, PADDED), out)
    weights, values = kernel.memory_weights(q, kernel.memory(k, v, PADDED), PADDED)
    close(weights @ values, out)
    assert is_sound(kernel, weights)
    wide = PADDED.repeat_interleave(beams, 0)
    many = kernel.memory(*(x.repeat_interleave(beams, 0) for x in (k, v)), wide)
    close(kernel.attend(q, many, wide), out)


@pytest.mark.parametrize("kind", ["local", "strided", "block", "longformer", "bigbird", "reformer"])
@pytest.mark.parametrize("causal", [False, True])
@torch.no_grad()
def test_sizes_beyond_the_length_cost_nothing(kind: str, causal: bool) -> None:
    """A window, block or chunk of 1,000 positions is not padded to if a row is shorter."""
    if causal and not KINDS[kind]().supports.causal:
        return
    fields = KINDS[kind].model_fields
    sizes = [name for name in ("window", "stride", "size", "chunk") if name in fields]
    counted = []
    for size in (T, 1000):
        kernel = built(KINDS[kind](**dict.fromkeys(sizes, size)), causal)
        some, mask, _ = once(kernel, heads(), Position())
        with FlopCounterMode(display=False) as counter, sdpa_kernel(SDPBackend.MATH):
            kernel(*some, mask, None, *more_heads(kernel))
        counted.append(counter.get_total_flops())
    assert counted[0] == counted[1] > 0


UNSUPPORTED = {
    "bidirectional": (TransformerEncoderOptions, "attention", "an encoder is bidirectional"),
    "causal": (CausalTransformerOptions, "attention", "is not causal, so only an encoder"),
    "cross": (TransformerDecoderOptions, "cross", "supports self-attention only"),
}


@pytest.mark.parametrize("ability", UNSUPPORTED)
def test_what_a_kernel_cannot_do_is_an_error_that_names_it(
    ability: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of each kind that states it itself, and of one that is made to state it."""
    options, slot, why = UNSUPPORTED[ability]
    unable = [kind for kind, one in KINDS.items() if not getattr(one.supports, ability)]
    for kind in unable:
        with pytest.raises(ValueError, match=f"{slot} {kind} .*{why}"):
            options(**{slot: kind})
    monkeypatch.setattr(Softmax, "supports", Supports()._replace(**{ability: False}))
    with pytest.raises(ValueError, match=f"{slot} softmax .*{why}"):
        options(**{slot: "softmax"})
