"""Laws of looking inside, over every model: what is shown is what was computed, and no more."""

import copy
import math
import re

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

import regard
from regard.data.tensors.padded import Batch, Padded, pad
from regard.data.tensors.special import BOS
from regard.inference.model_capture import attention_modules
from regard.models.encoder_decoder import EncoderDecoderOptions
from regard.nn.capture import Capture
from regard.nn.quantize import quantize

from .conftest import SIDES, SOURCES, TARGETS, filled, tiny
from .toys import Case, built, cases, one_of_each_kind

POOLED = {(c.kind, c.model["pooling"]): c for c in cases("classify")}
CASES = [*cases("tag"), *POOLED.values(), *cases("language-model")]
CASES += one_of_each_kind([*cases("classify-vectors"), *cases("words")])
every = pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
ROWS = np.array([0, 1, 2, 3, 4])
WINDOWS = np.array([[0, 6], [6, 12], [16, 20], [45, 47]])  # of all documents in one row
LETTERS = torch.tensor([[BOS, 5, 6, 7], [BOS, 7, 7, 5], [BOS, 6, 5, 6], [BOS, 5, 5, 7]])
GATES = {
    nn.GRU: {"reset", "update", "new"},
    nn.LSTM: {"input", "forget", "cell", "output"},
    nn.RNN: set(),
}


def close(one: Tensor, other: Tensor) -> None:
    torch.testing.assert_close(one, other, atol=1e-5, rtol=1e-5)


def is_attention(captured: Capture, source: Tensor | None) -> None:
    """Rows sum to one; padding of the source (B, S) and what comes later are not attended to."""
    for name, weights in captured.attention.items():
        real = captured.real[name]  # of queries; what padding attends to does not matter
        is_row = torch.ones(len(weights), weights.shape[2]).bool() if real is None else real
        if name.startswith("decoder") and name.endswith("attention"):
            visible = torch.ones(weights.shape[2:]).tril().bool().expand_as(weights)
        else:
            assert source is not None
            visible = source[:, None, None].expand_as(weights)
        weights, visible = (x.transpose(1, 2)[is_row] for x in (weights, visible))
        assert (weights[~visible] == 0).all()
        if captured.map_kinds[name].normalized:
            close(weights.sum(-1), torch.ones(weights.shape[:-1]))
            assert (weights[visible] >= 0).all()


def all_layers(captured: Capture, model: nn.Module) -> None:
    """Every layer of a stack shows what it gives."""
    stacks = [name for name, _ in model.named_modules() if re.search(r"\.layers\.\d+$", name)]
    assert sorted(captured.hidden) == sorted(stacks)


def gates_explain(captured: Capture, model: nn.Module, mask: Tensor | None = None) -> None:
    """Every recurrent layer gives what its gates make of its state before.

    mask: (B, S), where a layer that reads from right to left has a state before.
    """
    parts = dict(model.named_modules())
    recurrent = {name: GATES[type(part)] for name, part in parts.items() if type(part) in GATES}
    assert {name: set(g) for name, g in captured.gates.items()} == {
        name: gates for name, gates in recurrent.items() if gates
    }
    for name, gates in captured.gates.items():
        h = captured.hidden[name]
        if "cell" in gates:
            close(gates["output"] * gates["cell"].tanh(), h)
        elif "backwards" in name:
            assert mask is not None
            made = _gru(gates, slice(None, -1), h[:, 1:])
            close(made[mask[:, 1:]], h[:, :-1][mask[:, 1:]])
        else:
            close(_gru(gates, slice(1, None), h[:, :-1]), h[:, 1:])


def _gru(gates: dict[str, Tensor], places: slice, before: Tensor) -> Tensor:
    update, new = gates["update"][:, places], gates["new"][:, places]
    return (1 - update) * new + update * before


@torch.no_grad()
def test_a_transducer_is_seen_whole(model: nn.Module, batch: Batch) -> None:
    """Its output stays, and all its attention, gates and layers are captured."""
    plain = model(batch).logits
    with regard.capture(model) as captured:
        close(model(batch).logits, plain)
    assert sorted(captured.attention) == sorted(attention_modules(model))
    is_attention(captured, batch.source.mask)
    all_layers(captured, model)
    gates_explain(captured, model, batch.source.mask)
    assert captured.inputs["target"].shape[:2] == batch.target.data.shape
    shapes = {"encoder": batch.source.data.shape, "decoder": batch.target.data.shape}
    for name, h in captured.hidden.items():
        assert h.shape[:2] == shapes[name.split(".")[0]]
    assert all(
        len(calls) == 1 for calls in (*captured.calls.values(), *captured.hidden.calls.values())
    )


@every
@torch.no_grad()
def test_other_models_are_seen_whole(case: Case) -> None:
    run = built(case)
    streamed = case.toy == "language-model" and case.model["kind"] != "masked"
    batch = run.corpus.batch(WINDOWS if streamed else ROWS)
    plain = run.config.objective(run.model, batch)
    with regard.capture(run.model) as captured:
        found = run.config.objective(run.model, batch)
    assert float(found.sum) == pytest.approx(float(plain.sum), rel=1e-5)
    assert sorted(captured.attention) == sorted(attention_modules(run.model))
    mask = (batch.source or batch.target).mask
    is_attention(captured, mask)
    all_layers(captured, run.model)
    gates_explain(captured, run.model, mask)
    assert captured.inputs or case.kind == "ngram"
    if "pool" in captured.attention:
        assert captured["pool"].shape == (len(ROWS), 1, 1, mask.shape[1])


def test_steps_show_what_one_pass_shows(model: nn.Module, source: Padded) -> None:
    steps_show_what_one_pass_shows(model, source)


@torch.no_grad()
def steps_show_what_one_pass_shows(model: nn.Module, source: Padded) -> None:
    with regard.capture(model) as whole:
        model.step(LETTERS, model.start(source))
    state = model.start(source)
    with regard.capture(model) as captured:
        for token in LETTERS.split(1, 1):
            _, state = model.step(token, state)
    for name, calls in captured.calls.items():
        for t, weights in enumerate(calls):
            close(weights, whole[name][:, :, t : t + 1, : weights.shape[3]])
    for name, layers in captured.hidden.calls.items():
        close(torch.cat(layers, 1), whole.hidden[name])
    assert [name for name in whole.gates if name.startswith("decoder")] == list(captured.gates)
    for name, steps in captured.gates.calls.items():
        for gate, expected in whole.gates[name].items():
            close(torch.cat([step[gate] for step in steps], 1), expected)


@torch.no_grad()
def test_beams_that_share_a_cache_show_their_own_past(
    pair: EncoderDecoderOptions, source: Padded
) -> None:
    """Long enough for entries that are no longer visible to be dropped."""
    model, chance = tiny(pair), torch.Generator().manual_seed(1)
    first = torch.arange(4).repeat_interleave(3) * 3
    state, history = model.start(source), torch.full((12, 1), BOS)
    _, state = model.step(history[::3], state)
    state = state.select(torch.arange(4).repeat_interleave(3))
    for _ in range(12):
        history = torch.cat([history, torch.randint(5, 8, (12, 1), generator=chance)], 1)
        with regard.capture(model) as captured:
            _, state = model.step(history[:, -1:], state)
        rows = first + torch.randint(3, (12,), generator=chance)
        last, history, state = history, history[rows], state.select(rows)
    repeated = Padded(*(part.repeat_interleave(3, 0) for part in source[:2]))
    with regard.capture(model) as whole:
        model.step(last, model.start(repeated))
    for name, weights in captured.attention.items():
        close(weights, whole[name][:, :, -1:])
    for name, gates in captured.gates.items():
        for gate, opened in gates.items():
            close(opened, whole.gates[name][gate][:, -1:])


def test_saliency_is_the_gradient_of_the_embedding(some: nn.Module, batch: Batch) -> None:
    """Summed over where a token stands; padding and what comes later move nothing."""
    with regard.capture(some) as captured:
        logits = some(batch).logits
    true = batch.target.data[batch.target.mask]
    weight = some.frontend.tokens.weight
    (expected,) = torch.autograd.grad(
        F.cross_entropy(logits, true, reduction="sum"), weight, retain_graph=True
    )
    found = captured.gradients(F.cross_entropy(logits, true, reduction="sum"))["frontend.tokens"]
    summed = torch.zeros_like(weight).index_add(0, batch.source.data.flatten(), found.flatten(0, 1))
    close(summed * some.frontend.tokens.scale, expected)

    saliency = captured.saliency(logits[1].sum())  # the second token of the first row
    assert saliency["frontend.tokens"].shape == batch.source.data.shape
    assert (saliency["frontend.tokens"][~batch.source.mask] == 0).all()
    assert (saliency["frontend.tokens"][1:] == 0).all()
    assert (saliency["target"][0, :2] > 0).all() and (saliency["target"][0, 2:] == 0).all()


@torch.no_grad()
def test_the_entropy_of_a_row_does_not_hang_on_its_batch(some: nn.Module, batch: Batch) -> None:
    with regard.capture(some) as captured:
        some(batch)
    with regard.capture(some) as alone:
        some(Batch(pad(SOURCES[3:]), pad(TARGETS[3:])))
    for name, entropy in captured.entropy().items():
        close(entropy[3:], alone.entropy()[name])
        weights = alone[name][0]  # (H, T, S)
        if not alone.map_kinds[name].normalized:
            sums = weights.abs().sum(-1, keepdim=True)
            weights = weights.abs() / sums.masked_fill(sums == 0, 1.0)
        by_hand = [
            sum(-w * math.log(w) for w in head.flatten().tolist() if w > 0) / len(head)
            for head in weights
        ]
        assert entropy[3].tolist() == pytest.approx(by_hand, abs=1e-5)


CELLS = [
    filled({side: {"kind": "recurrent", "cell": cell} for side in SIDES})
    for cell in ("gru", "lstm", "rnn")
]


@pytest.mark.parametrize("kind", CELLS, ids=["gru", "lstm", "rnn"])
def test_int8_is_seen_as_well(kind: EncoderDecoderOptions, batch: Batch) -> None:
    """Its gates explain what it gives, at once and in steps, and it has gradients."""
    model = quantize(copy.deepcopy(tiny(kind)))
    with regard.capture(model) as captured:
        logits = model(batch).logits
    assert bool(captured.gates) == (kind.decoder.cell != "rnn")
    for name, gates in captured.gates.items():
        if "cell" in gates:
            close(gates["output"] * gates["cell"].tanh(), captured.hidden[name])
        elif "backwards" not in name:
            close(
                _gru(gates, slice(1, None), captured.hidden[name][:, :-1]),
                captured.hidden[name][:, 1:],
            )
    assert (captured.saliency(logits.sum())["frontend.tokens"][batch.source.mask] > 0).all()
    steps_show_what_one_pass_shows(model, batch.source)
