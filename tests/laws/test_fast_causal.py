"""Laws of the fast path of language models: less around it, the same numbers and texts."""

import copy

import pytest
import torch
from torch import Tensor

from regard.data.tensors.special import BOS, EOS
from regard.models.causal import FastCausalModel
from regard.nn.capture_hooks import recording
from regard.nn.fast import fast
from regard.nn.quantize import quantize
from regard.search import Sample
from regard.search.sample import continue_prompts

from .toys import Case, built, cases

CASES = [
    case for case in cases("language-model") if isinstance(fast(built(case).model), FastCausalModel)
]
every = pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)


def close(one: Tensor, other: Tensor) -> None:
    torch.testing.assert_close(one, other, atol=1e-5, rtol=1e-5)


@every
@torch.inference_mode()
def test_the_fast_path_steps_alike(case: Case) -> None:
    """A prompt, then tokens one by one, among them EOS; a step is watched; a row leaves."""
    model = built(case).model
    twin = fast(model)
    chance = torch.Generator().manual_seed(2)
    here, there = model.start(3), twin.start(3)
    tokens = torch.cat([torch.full((3, 1), BOS), torch.randint(5, 8, (3, 3), generator=chance)], 1)
    for step in range(12):
        logits, here = model.step(tokens, here)
        if step == 6:
            with recording():
                found, there = twin.step(tokens, there)
        else:
            found, there = twin.step(tokens, there)
        close(found, logits)
        if step == 8:
            kept = torch.tensor([0, 2])
            here, there = here.select(kept, kept), there.select(kept, kept)
        rows = 3 if step < 8 else 2
        tokens = torch.randint(5, 8, (rows, 1), generator=chance)
        tokens[0] = EOS if step == 4 else tokens[0]


@every
@torch.inference_mode()
def test_a_fast_path_without_a_prompt_steps_alike(case: Case) -> None:
    model = built(case).model
    twin, tokens = fast(model), torch.full((2, 1), BOS)
    here, there = model.start(2), twin.start(2)
    for _ in range(3):
        logits, here = model.step(tokens, here)
        found, there = twin.step(tokens, there)
        close(found, logits)


@pytest.mark.parametrize("kind", ["transformer", "recurrent"])
def test_default_language_models_take_the_fast_step(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All steps but that of the prompt."""
    case = next(case for case in CASES if built(case).config.model.decoder.kind == kind)
    twin, calls = fast(built(case).model), list[int]()
    assert twin.decoder is not None
    step = twin.model.step
    monkeypatch.setattr(
        twin.model,
        "step",
        lambda tokens, state: calls.append(tokens.shape[1]) or step(tokens, state),
    )
    options = Sample(max_length=6, temperature=0.0)
    list(continue_prompts(twin, [[5, 6]], [0], options))
    assert calls == [3]


@every
def test_the_same_texts_in_any_batch(case: Case) -> None:
    """Of the model and of its fast path, all prompts together or one by one, also where the text
    outgrows the context."""
    model = built(case).model
    options = Sample(max_length=20, seed=3)
    prompts = [[5, 6, 7], [7, 5, 5], [6, 6, 8]]

    def texts(stepper: object, rows: list[int]) -> dict[int, list[int]]:
        found: dict[int, list[int]] = {row: [] for row in rows}
        for tokens in continue_prompts(stepper, [prompts[row] for row in rows], rows, options, 8):
            for at, token in tokens.items():
                found[rows[at]].append(token)
        return found

    twin = fast(model)
    together = texts(model, [0, 1, 2])
    assert texts(twin, [0, 1, 2]) == together
    assert texts(twin, [0]) | texts(twin, [1]) | texts(twin, [2]) == together


@every
@torch.inference_mode()
def test_int8_language_models_step_alike(case: Case) -> None:
    """By the fused step of a Transformer, and by the modules of others."""
    model = quantize(copy.deepcopy(built(case).model))
    twin, tokens = fast(model), torch.full((2, 1), BOS)
    here, there = model.start(2), twin.start(2)
    for _ in range(2):
        logits, here = model.step(tokens, here)
        found, there = twin.step(tokens, there)
        close(found, logits)
