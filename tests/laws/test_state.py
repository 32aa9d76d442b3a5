"""Laws of the decoder's state: steps equal one pass, and rows go where they are sent."""

import pytest
import torch
from torch import Tensor, nn

from regard.data.tensors.padded import Batch, Padded
from regard.data.tensors.special import BOS
from regard.data.tensors.tree import tree_map
from regard.nn.kernels.cache import Cache

from .conftest import each_past

T = 7


def close(one: Tensor, other: Tensor) -> None:
    torch.testing.assert_close(one, other, atol=1e-5, rtol=1e-5)


def words(rows: int, length: int = T) -> Tensor:
    """Random tokens (rows, length), BOS first."""
    letters = torch.randint(5, 8, (rows, length), generator=torch.Generator().manual_seed(1))
    letters[:, 0] = BOS
    return letters


def repeat(source: Padded, times: int) -> Padded:
    """Each row several times in a row."""
    return Padded(source.data.repeat_interleave(times, 0), source.mask.repeat_interleave(times, 0))


@torch.no_grad()
def test_steps_equal_one_pass(model: nn.Module, source: Padded) -> None:
    tokens = words(len(source.data))
    whole, _ = model.step(tokens, model.start(source))
    state, steps = model.start(source), []
    for t in range(T):
        logits, state = model.step(tokens[:, t : t + 1], state)
        steps.append(logits)
    close(torch.cat(steps, 1), whole)


@torch.no_grad()
def test_teacher_forcing_equals_steps(model: nn.Module, batch: Batch) -> None:
    """Training sees what decoding sees: each token is predicted from BOS and those before it."""
    tokens = torch.cat([torch.full((4, 1), BOS), batch.target.data[:, :-1]], 1)
    logits, _ = model.step(tokens, model.start(batch.source))
    close(model(batch).logits, logits[batch.target.mask])


@pytest.mark.parametrize("cuts", [(4, 3), (1, 4, 2)])
@torch.no_grad()
def test_a_prompt_then_more(model: nn.Module, source: Padded, cuts: tuple[int, ...]) -> None:
    tokens = words(len(source.data))
    whole, _ = model.step(tokens, model.start(source))
    state, pieces = model.start(source), []
    for piece in tokens.split(cuts, 1):
        logits, state = model.step(piece, state)
        pieces.append(logits)
    close(torch.cat(pieces, 1), whole)


@torch.no_grad()
def test_a_step_leaves_the_old_state_alone(model: nn.Module, source: Padded) -> None:
    """So that a search may continue twice from one place."""
    tokens = words(len(source.data))
    _, state = model.step(tokens[:, :2], model.start(source))
    first, _ = model.step(tokens[:, 2:4], state)
    model.step(tokens[:, 4:], state)
    again, _ = model.step(tokens[:, 2:4], state)
    assert torch.equal(first, again)


@pytest.mark.parametrize("seen", [0, 3])
@torch.no_grad()
def test_select_commutes(model: nn.Module, source: Padded, seen: int) -> None:
    """step(y[rows], state.select(rows)) = step(y, state)[rows]"""
    tokens, rows = words(len(source.data)), torch.tensor([2, 0, 0, 3, 1, 2])
    state = model.start(source)
    if seen:
        _, state = model.step(tokens[:, :seen], state)
    there, _ = model.step(tokens[:, seen:], state)
    here, _ = model.step(tokens[rows, seen:], state.select(rows, rows))
    close(here, there[rows])


@torch.no_grad()
def test_beams_share_the_memory(model: nn.Module, source: Padded) -> None:
    """k past rows to a row of memory = the memory repeated k times."""
    k, B = 3, len(source.data)
    tokens = words(k * B)
    shared, repeated = model.start(source), model.start(repeat(source, k))
    _, shared = model.step(tokens[:, :1], shared)
    _, repeated = model.step(tokens[:, :1], repeated)

    rows = torch.tensor([2, 0, 0, 3, 4, 5, 7, 7, 7, 11, 10, 9])  # each within its sentence
    shared, repeated = shared.select(rows), repeated.select(rows, rows)
    here, shared = model.step(tokens[rows, 1:4], shared)
    there, repeated = model.step(tokens[rows, 1:4], repeated)
    close(here, there)

    kept = torch.tensor([0, 2, 3])  # a sentence is over
    beams = (kept[:, None] * k + torch.arange(k)).flatten()
    shared = shared.select(beams, kept)
    here, _ = model.step(tokens[beams, 4:], shared)
    there, _ = model.step(tokens[beams, 4:], repeated.select(beams, beams))
    close(here, there)


@torch.no_grad()
def test_one_beam_becomes_many(model: nn.Module, source: Padded) -> None:
    """As a search begins: a past of B rows, then k of each."""
    k, B = 2, len(source.data)
    tokens = words(k * B)
    tokens[1::2, :2] = tokens[::2, :2]
    _, state = model.step(tokens[::2, :2], model.start(source))
    state = state.select(torch.arange(B).repeat_interleave(k))
    here, _ = model.step(tokens[:, 2:], state)
    there, _ = model.step(tokens, model.start(repeat(source, k)))
    close(here, there[:, 2:])


@each_past
@torch.no_grad()
def test_beams_over_many_steps(model: nn.Module, source: Padded) -> None:
    """Beams that change places, die out and continue, over more steps than a cache has room for."""
    k, B, steps = 3, len(source.data), 70  # a cache is full after 32 and 66
    chance = torch.Generator().manual_seed(3)
    tokens = torch.full((k * B, 1), BOS)
    shared, repeated = model.start(source), model.start(repeat(source, k))
    for step in range(steps):
        here, shared = model.step(tokens[:, -1:], shared)
        there, repeated = model.step(tokens[:, -1:], repeated)
        close(here, there)
        parents = torch.randint(k, (B, k), generator=chance)
        rows = (parents + torch.arange(B)[:, None] * k).flatten()
        if step == 40:
            parents, rows, B = parents[1:], rows[k:], B - 1
            shared = shared.select(rows, torch.arange(1, B + 1))
        else:
            shared = shared.select(rows)
        repeated = repeated.select(rows, rows)
        new = torch.randint(5, 8, (len(rows), 1), generator=chance)
        tokens = torch.cat([tokens[rows], new], 1)


@torch.no_grad()
def test_every_tensor_has_the_batch_first(model: nn.Module, source: Padded) -> None:
    k, B = 2, len(source.data)
    state = model.start(source)
    for _ in range(2):
        _, state = model.step(words(k * B, 3), state)
    rows: dict[str, set[int]] = {"memory": set(), "past": set()}

    def note(leaf: Tensor | Cache, name: str) -> Tensor | Cache:
        shared = isinstance(leaf, Cache)  # a row for each sentence
        rows["memory" if shared else name].add(len(leaf.keys if shared else leaf))
        return leaf

    tree_map(lambda leaf: note(leaf, "memory"), state.memory)
    tree_map(lambda leaf: note(leaf, "past"), state.past)
    assert rows == {"memory": {B}, "past": {k * B}}
