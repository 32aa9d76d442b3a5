"""Recurrent layers give the numbers of torch.nn and of their equations written as plain loops.

B rows, S source length, T target length, D width of the decoder, M width of the memory.
"""

import math

import pytest
import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from regard.core.options import kinds_of
from regard.data.tensors.padded import Padded
from regard.models.recurrent import RecurrentDecoderOptions, RecurrentEncoderOptions
from regard.nn.attention_scores import Score
from regard.nn.cross_kinds import RecurrentCross
from regard.nn.recurrent import CELLS, reverse_indices

B, S, T, D, M = 3, 5, 4, 8, 6
LENGTHS = torch.tensor([5, 3, 1])
MASK = torch.arange(S) < LENGTHS[:, None]  # (B, S)


def build_score(kind: str, width: int, memory_width: int) -> Score:
    return kinds_of(RecurrentCross)[kind]().build(width, memory_width)


def close(one: Tensor, other: Tensor) -> None:
    torch.testing.assert_close(one, other, atol=2e-6, rtol=1e-5)


def noisy(module: nn.Module) -> nn.Module:
    """The module with all weights and biases moved, so that none can be mistaken."""
    with torch.no_grad():
        for parameter in module.parameters():
            parameter += 0.1 * torch.randn(parameter.shape)
    return module.eval()


def build_encoder(cell: str, layers: int, both: bool) -> nn.Module:
    options = RecurrentEncoderOptions(
        cell=cell, layers=layers, width=D, bidirectional=both, dropout=0.0
    )
    return noisy(options.build())


@pytest.mark.parametrize("cell", list(CELLS))
def test_encoder_in_one_direction(cell: str) -> None:
    """The states are those of torch.nn; the summary is the state after the last real token."""
    torch.manual_seed(0)
    ours = build_encoder(cell, 1, False)
    theirs = CELLS[cell](D, D, batch_first=True)
    theirs.load_state_dict(ours.body.layers[0].state_dict())
    x = torch.randn(B, S, D)
    out = ours(Padded(x, MASK))
    packed = pack_padded_sequence(x, LENGTHS, batch_first=True)
    states, last = theirs(packed)
    expected, _ = pad_packed_sequence(states, batch_first=True)
    close(out.data[MASK], expected[MASK])
    close(out.pooled(), (last[0] if cell == "lstm" else last)[0])


@pytest.mark.parametrize("cell", list(CELLS))
def test_encoder_in_both_directions(cell: str) -> None:
    """The summary is what each direction says at its own end."""
    torch.manual_seed(0)
    ours = build_encoder(cell, 1, True)
    theirs = CELLS[cell](D, D // 2, batch_first=True, bidirectional=True)
    names = {"": ours.body.forwards, "_reverse": ours.body.backwards}
    theirs.load_state_dict(
        {
            name + ending: weight
            for ending, stack in names.items()
            for name, weight in stack[0].layers[0].state_dict().items()
        }
    )
    x = torch.randn(B, S, D)
    out = ours(Padded(x, MASK))
    states, last = theirs(pack_padded_sequence(x, LENGTHS, batch_first=True))
    expected, _ = pad_packed_sequence(states, batch_first=True)
    close(out.data[MASK], expected[MASK])
    ahead, back = last[0] if cell == "lstm" else last
    close(out.pooled(), torch.cat([ahead, back], -1))


def equations(layer: nn.RNNBase, x: Tensor, h: Tensor, c: Tensor) -> tuple[Tensor, Tensor]:
    """One step of a cell, from its paper (with torch's order of gates)."""
    inner = x @ layer.weight_ih_l0.T + layer.bias_ih_l0
    outer = h @ layer.weight_hh_l0.T + layer.bias_hh_l0
    if isinstance(layer, nn.LSTM):
        i, f, g, o = (inner + outer).chunk(4, -1)
        c = f.sigmoid() * c + i.sigmoid() * g.tanh()
        return o.sigmoid() * c.tanh(), c
    if isinstance(layer, nn.GRU):
        (reset, update, new), (reset_, update_, new_) = inner.chunk(3, -1), outer.chunk(3, -1)
        keep = (update + update_).sigmoid()
        return keep * h + (1 - keep) * (new + (reset + reset_).sigmoid() * new_).tanh(), c
    return (inner + outer).tanh(), c


def scan(layer: nn.RNNBase, x: Tensor, h: Tensor, c: Tensor) -> Tensor:
    """A layer over a sequence (T, D) without a batch."""
    states = []
    for step in x:
        h, c = equations(layer, step, h, c)
        states.append(h)
    return torch.stack(states)


@pytest.mark.parametrize("cell", list(CELLS))
def test_deep_encoder_in_one_direction(cell: str) -> None:
    """Layers after the first are added to what they read (Wu et al. 2016)."""
    torch.manual_seed(0)
    ours = build_encoder(cell, 3, False)
    x, zero = torch.randn(B, S, D), torch.zeros(D)
    out = ours(Padded(x, MASK))
    for row, length in enumerate(LENGTHS):
        first, *more = ours.body.layers
        states = scan(first, x[row, :length], zero, zero)
        for layer in more:
            states = states + scan(layer, states, zero, zero)
        close(out.data[row, :length], states)
        close(out.pooled()[row], states[-1])


@pytest.mark.parametrize("cell", list(CELLS))
def test_deep_encoder_in_both_directions(cell: str) -> None:
    """Each layer reads both directions of the one below."""
    torch.manual_seed(0)
    ours = build_encoder(cell, 2, True)
    x, zero = torch.randn(B, S, D), torch.zeros(D // 2)
    out = ours(Padded(x, MASK))
    for row, length in enumerate(LENGTHS):
        states = x[row, :length]
        for i, (ahead, back) in enumerate(
            zip(ours.body.forwards, ours.body.backwards, strict=True)
        ):
            left = scan(ahead.layers[0], states, zero, zero)
            right = scan(back.layers[0], states.flip(0), zero, zero).flip(0)
            both = torch.cat([left, right], -1)
            states = both if i == 0 else states + both
        close(out.data[row, :length], states)
        half = D // 2
        close(out.pooled()[row], torch.cat([states[-1, :half], states[0, half:]]))


def test_reverse_indices_by_hand() -> None:
    mask = torch.tensor([[True, True, True], [True, True, False], [True, False, False]])
    assert reverse_indices(mask).tolist() == [[2, 1, 0], [1, 0, 2], [0, 1, 2]]


@pytest.mark.parametrize("score", ["none", "additive", "bilinear"])
@pytest.mark.parametrize("input_feeding", [False, True])
@pytest.mark.parametrize("cell", list(CELLS))
def test_decoder(cell: str, input_feeding: bool, score: str) -> None:
    """Row by row and step by step, from the equations of Bahdanau (start) and Luong (output)."""
    torch.manual_seed(0)
    options = RecurrentDecoderOptions(
        cell=cell, layers=2, width=D, cross=score, input_feeding=input_feeding, dropout=0.0
    )
    ours = noisy(options.build(M))
    memory, x = torch.randn(B, S, M), torch.randn(B, T, D)
    out, _ = ours(x, ours.start(Padded(memory, MASK)))
    for row, length in enumerate(LENGTHS):
        real = memory[row, :length]
        starts = torch.tanh(ours.bridge(real.mean(0))).view(-1, 2, D)  # (parts, layers, D)
        hidden = [[starts[0, i], starts[-1, i]] for i in range(2)]
        last = torch.zeros(D)
        for t in range(T):
            h = torch.cat([x[row, t], last]) if input_feeding else x[row, t]
            for i, layer in enumerate(ours.body.layers):
                hidden[i] = list(equations(layer, h, *hidden[i]))
                h = hidden[i][0] if i == 0 else h + hidden[i][0]
            last = torch.tanh(ours.join(torch.cat([h, context(ours.score, score, h, real)])))
            close(out[row, t], last)


def context(module: nn.Module, kind: str, h: Tensor, memory: Tensor) -> Tensor:
    """The weighted mean of the memory (S, M) for one state h (D,)."""
    if kind == "none":
        return memory.mean(0)
    weights = torch.stack([plain_score(module, kind, h, m) for m in memory]).softmax(0)
    return sum(w * m for w, m in zip(weights, memory, strict=True))


def plain_score(module: nn.Module, kind: str, h: Tensor, m: Tensor) -> Tensor:
    """The formula of a score, one state and one place of the memory at a time."""
    if kind == "additive":
        inner = module.query.weight @ h + module.query.bias + module.key.weight @ m
        return module.weigh.weight[0] @ torch.tanh(inner)
    if kind == "bilinear":
        return h @ (module.key.weight @ m)
    return h @ m / (math.sqrt(len(h)) if kind == "scaled_dot" else 1.0)


@pytest.mark.parametrize("kind", ["additive", "dot", "scaled_dot", "bilinear"])
def test_scores(kind: str) -> None:
    torch.manual_seed(0)
    width = D if "dot" in kind else M
    module = build_score(kind, D, width)
    memory, h = Padded(torch.randn(B, S, width), MASK), torch.randn(B, T, D)
    contexts, keys, _ = module(h, memory, None, None)
    weights = module.weights(h, memory, keys)
    close(weights.sum(-1), torch.ones(B, T))
    assert (weights[~MASK.unsqueeze(1).expand(-1, T, -1)] == 0).all()
    scores = module.score(h, keys)
    for row, length in enumerate(LENGTHS):
        for t in range(T):
            for s in range(length):
                plain = plain_score(module, kind, h[row, t], memory.data[row, s])
                close(scores[row, t, s], plain)
            close(contexts[row, t], context(module, kind, h[row, t], memory.data[row, :length]))


def test_no_score_is_the_summary_or_the_mean() -> None:
    module = build_score("none", 2, 2)
    data = torch.tensor([[[1.0, 2.0], [3.0, 6.0], [9.0, 9.0]]])
    mask = torch.tensor([[True, True, False]])
    summary = torch.tensor([[7.0, 8.0]])
    mean, *_ = module(torch.zeros(1, 2, 2), Padded(data, mask), None, None)
    with_summary = Padded(data, mask, summary=summary)
    given, *_ = module(torch.zeros(1, 2, 2), with_summary, None, None)
    assert mean.tolist() == [[[2.0, 4.0], [2.0, 4.0]]]
    assert given.tolist() == [[[7.0, 8.0], [7.0, 8.0]]]


def test_dot_by_hand() -> None:
    """h = (1, 0); places (log 3, 5) and (0, 7): weights 3/4 and 1/4."""
    h = torch.tensor([[[1.0, 0.0]]])
    data = torch.tensor([[[math.log(3), 5.0], [0.0, 7.0]]])
    memory = Padded(data, torch.tensor([[True, True]]))
    module = build_score("dot", 2, 2)
    close(module.weights(h, memory, data), torch.tensor([[[0.75, 0.25]]]))
    contexts, *_ = module(h, memory, None, None)
    close(contexts, torch.tensor([[[0.75 * math.log(3), 5.5]]]))
