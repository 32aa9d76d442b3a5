"""Laws of the lean twin and of greedy search: less ado, the same numbers."""

import copy
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from regard.data.tensors.padded import Padded, pad
from regard.data.tensors.special import BOS, EOS
from regard.data.tensors.state import State
from regard.data.tensors.tree import tree_map
from regard.models.generator import GeneratorOptions
from regard.models.lean import LeanStepper, lean
from regard.nn.attention_scores import FixedContext
from regard.nn.capture_hooks import recording
from regard.nn.kernels.cache import Cache
from regard.nn.quantize import quantize
from regard.search import TokenConstraints
from regard.search.beam import Plan, Stop, beam_search
from regard.search.greedy import greedy_search
from regard.search.rules import Rules
from regard.search.scoring import Scoring

from .conftest import MODELS, NAMES, tiny

BEAMS, STEPS = 3, 24


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
def pair_of_steppers(request: pytest.FixtureRequest) -> tuple[nn.Module, LeanStepper]:
    model = tiny(request.param)
    return model, lean(model)


def test_every_plain_model_has_a_twin(model: nn.Module) -> None:
    assert isinstance(lean(model), LeanStepper)


def test_recurrent_layers_in_int8_are_their_own_twins() -> None:
    options = next(m for m in MODELS if m.decoder.kind == m.encoder.kind == "recurrent")
    model = quantize(copy.deepcopy(tiny(options)))
    assert lean(model) is model


@torch.inference_mode()
def test_the_twin_steps_alike(
    pair_of_steppers: tuple[nn.Module, LeanStepper], source: Padded
) -> None:
    """Beams change places, die out and go on; a sentence leaves; some steps have two symbols,
    and some are watched."""
    model, twin = pair_of_steppers
    chance = torch.Generator().manual_seed(5)
    symbols, B = torch.full((len(source.data), 1), BOS), len(source.data)
    here, there = model.start(source), twin.start(source)
    for step in range(STEPS):
        logits, here = model.step(symbols, here)
        if step == STEPS - 4:
            with recording() as seen:
                twin_logits, there = twin.step(symbols, there)
            if not isinstance(getattr(model.decoder, "score", None), FixedContext):
                assert seen.alignment().shape[:2] == symbols.shape
        else:
            twin_logits, there = twin.step(symbols, there)
        close(twin_logits, logits)
        alike(there, here)
        own = len(symbols) // B
        parents = torch.randint(own, (B, BEAMS), generator=chance)
        rows = (parents + torch.arange(B)[:, None] * own).flatten()
        kept = None
        if step == 9:
            kept, B = torch.tensor([0, 2, 3]), 3
            rows = rows.view(-1, BEAMS)[kept].flatten()
        here, there = here.select(rows, kept), there.select(rows, kept)
        length = 2 if step in (2, 14) else 1
        symbols = torch.randint(5, 8, (B * BEAMS, length), generator=chance)


@torch.inference_mode()
def test_the_twin_reads_a_beginning_at_once(
    pair_of_steppers: tuple[nn.Module, LeanStepper], source: Padded
) -> None:
    """Four symbols, then one by one; and without padding, where nothing is masked."""
    for rows in (source, pad([[5, 6, EOS], [7, 8, EOS]])):
        model, twin = pair_of_steppers
        here, there = model.start(rows), twin.start(rows)
        encoded, other = there.memory["encoded"].data, here.memory["encoded"].data
        close(encoded[rows.mask], other[rows.mask])
        for length in (4, 1, 1):
            symbols = torch.full((len(rows.data), length), 6)
            logits, here = model.step(symbols, here)
            twin_logits, there = twin.step(symbols, there)
            close(twin_logits, logits)


@torch.inference_mode()
def test_large_vocabularies(
    options: GeneratorOptions, source: Padded, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No table of what symbols add to gates, but an output layer whose weights are laid out."""
    monkeypatch.setattr("regard.models.lean.cells.MOST", 0)
    monkeypatch.setattr("regard.models.lean.bare.LARGE", 0)
    model, symbols = tiny(options), torch.full((len(source.data), 1), 6)
    twin = lean(model)
    close(twin.step(symbols, twin.start(source))[0], model.step(symbols, model.start(source))[0])


WISHES = [
    TokenConstraints((5, 6)),
    TokenConstraints(),
    TokenConstraints((), (), ((5,), (6, 7))),
    TokenConstraints((7,)),
]


WAYS: list[tuple[Rules, Scoring, Stop]] = [
    (Rules(), Scoring(), "likely"),
    (Rules(shortest=3), Scoring("gnmt", 1.0), "full"),
    (Rules(no_repeat=2), Scoring("none"), "exact"),
    (Rules(1, 1, WISHES), Scoring(), "first"),
]


def test_greedy_is_a_beam_of_one(
    model: nn.Module, options: GeneratorOptions, source: Padded
) -> None:
    """Output by output, with all its scores; each model in one of four ways."""
    rules, scoring, stop = WAYS[MODELS.index(options) % len(WAYS)]
    limits = torch.tensor([7, 4, 4, 9])
    greedy = greedy_search(model.step, model.start(source), limits, scoring, rules)
    plan = Plan(1, scoring=scoring, rules=rules, stop=stop)
    beam = beam_search(model.step, model.start(source), limits, plan)
    for (one,), (other,) in zip(greedy, beam, strict=True):
        assert one.symbols == other.symbols and one.cut == other.cut
        assert one.score == pytest.approx(other.score, abs=1e-5)
        assert one.symbol_scores == pytest.approx(other.symbol_scores, abs=1e-5)
