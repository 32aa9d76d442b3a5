"""Sampling: outputs drawn from a decoder's probabilities, by its step function and its State.

B rows, T symbols fed, V vocabulary.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator
from typing import Literal

import numpy as np
import torch
import torch.nn.functional as F
from pydantic import Field
from torch import Tensor

from regard.data.vocabulary import BOS, EOS
from regard.nn.state import State
from regard.options import Options
from regard.search.beam import Step
from regard.search.hypothesis import NEVER

Start = Callable[[int], State]  # the state of so many rows before their first symbol


class Sample(Options):
    """Sampling, from the whole distribution or its most probable part."""

    kind: Literal["sample"] = "sample"
    temperature: float = Field(
        1.0, ge=0, allow_inf_nan=False, description="p^(1/temperature); 0 is greedy"
    )
    top_k: int | None = Field(None, ge=0, description="the best k symbols only; 0 or None: all")
    top_p: float | None = Field(
        None, ge=0, le=1, description="the best symbols that reach this probability; None: all"
    )
    length: int = Field(200, gt=0, description="symbols of an answer, at most")
    seed: int = Field(1, ge=0, description="the same seed draws the same answers")


def filter_logits(
    logits: Tensor, temperature: float = 1.0, top_k: int | None = None, top_p: float | None = None
) -> Tensor:
    """Log probabilities (B, V) of the symbols that stay, -inf for the others.

    First the temperature, then the best `top_k`, then of these the fewest that reach `top_p`
    (nucleus sampling, Holtzman et al. 2020, 3.1), at least one. Temperature 0: only the best.
    """
    if temperature == 0:
        top_k, temperature = 1, 1.0
    scores = (logits - logits.amax(-1, keepdim=True)) / temperature
    if top_k:
        best = scores.topk(min(top_k, scores.shape[-1]))
        scores = torch.full_like(scores, float("-inf")).scatter(-1, best.indices, best.values)
    if top_p is not None and top_p < 1:
        ordered, places = scores.double().softmax(-1).sort(dim=-1, descending=True, stable=True)
        before = F.pad(ordered.cumsum(-1)[..., :-1], (1, 0))  # (B, V) probability of better ones
        cut = before >= top_p
        cut[..., 0] = False
        scores = scores.masked_fill(cut.gather(-1, places.argsort(-1)), float("-inf"))
    return scores.log_softmax(-1)


def sample(
    step: Step,
    start: Start,
    prompt: list[int],
    options: Sample,
    row: int = 0,
    context: int | None = None,
) -> Iterator[int]:
    """The symbols that follow BOS and the prompt, one by one as they are drawn; without EOS.

    row: the number of this answer; with the seed it decides what is drawn. context: the most
    symbols the decoder can look back on, or None; when its state has taken in so many, it starts
    anew with the later half.
    """
    for drawn in _draw(step, start, {row: prompt}, options, context):
        yield from drawn.values()


def sample_many(
    step: Step,
    start: Start,
    prompts: list[list[int]],
    options: Sample,
    context: int | None = None,
) -> list[list[int]]:
    """What `sample` gives for each prompt, its row its place in the list.

    Prompts of the same length go together.
    """
    groups: dict[int, dict[int, list[int]]] = defaultdict(dict)
    for row, prompt in enumerate(prompts):
        groups[len(prompt)][row] = prompt
    answers: list[list[int]] = [[] for _ in prompts]
    for group in groups.values():
        for drawn in _draw(step, start, group, options, context):
            for row, symbol in drawn.items():
                answers[row].append(symbol)
    return answers


@torch.inference_mode()
def _draw(
    step: Step, start: Start, prompts: dict[int, list[int]], options: Sample, context: int | None
) -> Iterator[dict[int, int]]:
    """One symbol after the other of each row, for prompts of one length; ended rows drop out."""
    rows = list(prompts)
    seen = torch.tensor([[BOS, *prompts[row]] for row in rows])  # (B, T)
    chance = torch.from_numpy(
        np.stack(
            [np.random.default_rng([options.seed, row]).random(options.length) for row in rows]
        )
    )  # (B, length): each row has its own numbers, so the batch does not matter
    fed, taken, state = seen, 0, start(len(rows))
    for t in range(options.length):
        if context is not None and taken + fed.shape[1] > context:
            fed, taken, state = seen[:, -max(1, context // 2) :], 0, start(len(rows))
        logits, state = step(fed, state)
        taken += fed.shape[1]

        scores = logits[:, -1].float().cpu().index_fill(1, torch.tensor(NEVER), float("-inf"))
        scores = filter_logits(scores, options.temperature, options.top_k, options.top_p)
        symbols = _pick(scores, chance[:, t])  # (B,)
        going = (symbols != EOS).nonzero().flatten()
        rows = [rows[b] for b in going.tolist()]
        if not rows:
            return
        if len(rows) < len(symbols):
            left = going.to(logits.device)
            state = state.select(left, left)
            seen, chance, symbols = seen[going], chance[going], symbols[going]
        yield dict(zip(rows, symbols.tolist(), strict=True))
        fed = symbols[:, None]
        seen = torch.cat([seen, fed], 1)


def _pick(scores: Tensor, chance: Tensor) -> Tensor:
    """The symbols (B,) at which the summed probabilities first exceed `chance` (B,) < 1."""
    sums = scores.double().exp().cumsum(-1)  # (B, V)
    sums = sums / sums[:, -1:]
    return torch.searchsorted(sums, chance[:, None].contiguous(), right=True).squeeze(1)
