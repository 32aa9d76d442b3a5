"""Sampling: outputs drawn from a decoder's probabilities, by its step function and its State.

B rows, T symbols fed, V vocabulary.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from typing import Literal

import numpy as np
import torch
from pydantic import Field, model_validator
from torch import Tensor

from regard.core.errors import UserError
from regard.core.options import Options
from regard.data.tensors.padded import Padded
from regard.data.tensors.special import BOS, EOS
from regard.data.tensors.state import State
from regard.search.callbacks import tell_rows
from regard.search.draw import chances, draw
from regard.search.filters import Filters, filter_logits, pick
from regard.search.force import Stepper
from regard.search.hypothesis import NEVER, Hypothesis, TokenConstraints
from regard.search.rules import Rules, with_room
from regard.search.top import Step

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
    min_p: float | None = Field(
        None, ge=0, le=1, description="symbols with this share of the best one's p; None: all"
    )
    length: int | None = Field(
        None,
        gt=0,
        description="symbols of an answer, at most; None: 200, or by the source's length",
    )
    min_length: int = Field(0, ge=0, description="with a source: symbols of an answer, at least")
    no_repeat: int = Field(
        0, ge=0, description="with a source: no run of so many symbols comes twice; 0: it may"
    )
    seed: int = Field(1, ge=0, description="the same seed draws the same answers")

    @model_validator(mode="after")
    def _lengths_fit(self) -> "Sample":
        if self.length is not None and self.min_length > self.length:
            raise ValueError(f"min_length {self.min_length} is above length {self.length}")
        return self

    @property
    def filters(self) -> Filters:
        """Which symbols may be drawn."""
        return Filters(self.temperature, self.top_k, self.top_p, self.min_p)

    @property
    def longest(self) -> int:
        """The most symbols of an answer without a source."""
        return self.length or 200

    @property
    def max_length(self) -> int | None:
        """The most symbols of an answer to a source, where it is said."""
        return self.length

    @torch.inference_mode()
    def run(
        self,
        stepper: Stepper,
        source: Padded,
        limits: Tensor,
        nbest: int = 1,
        wishes: Sequence[TokenConstraints] | None = None,
    ) -> list[list[Hypothesis]]:
        """Outputs of each row of source as they are drawn, at most `limits` (B,) symbols long."""
        if wishes is not None and any(wish.must for wish in wishes):
            raise UserError("words that must appear: sampling cannot promise them; use a beam")
        limits = with_room(limits, self.min_length, wishes)
        rows = zip(source.data.tolist(), source.mask.sum(1).tolist(), strict=True)
        sentences = [ids[:length] for ids, length in rows]
        chance = chances(self.seed, sentences, nbest, int(limits.max()))
        rules = Rules(self.min_length, self.no_repeat, wishes)
        return draw(stepper.step, stepper.start(source), limits, chance, self.filters, rules)


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
    for drawn in _draw(step, start, [prompt], [row], options, context):
        yield from drawn.values()


def sample_many(
    step: Step,
    start: Start,
    prompts: list[list[int]],
    options: Sample,
    context: int | None = None,
    rows: Sequence[int] | None = None,
    batch_size: int = 64,
) -> list[list[int]]:
    """What `sample` gives for each prompt. rows: the number of each; else its place in the list.

    Prompts of the same length go together, at most `batch_size`.
    """
    rows = range(len(prompts)) if rows is None else rows
    groups: dict[int, list[int]] = defaultdict(list)
    for place, prompt in enumerate(prompts):
        groups[len(prompt)].append(place)
    answers: list[list[int]] = [[] for _ in prompts]
    for places in groups.values():
        for at in range(0, len(places), batch_size):
            group = places[at : at + batch_size]
            some, numbers = [prompts[place] for place in group], [rows[place] for place in group]
            for drawn in _draw(step, start, some, numbers, options, context):
                for at_group, symbol in drawn.items():
                    answers[group[at_group]].append(symbol)
                tell_rows([group[at_group] for at_group in drawn], answers)
    return answers


@torch.inference_mode()
def _draw(
    step: Step,
    start: Start,
    prompts: list[list[int]],
    numbers: list[int],
    options: Sample,
    context: int | None,
) -> Iterator[dict[int, int]]:
    """One symbol after the other by the places of prompts, all of one length; ended ones drop out.

    numbers: of the prompts; what is drawn for one depends on its own, so the batch does not matter.
    """
    rows = list(range(len(prompts)))
    seen = torch.tensor([[BOS, *prompt] for prompt in prompts])  # (B, T)
    chance = torch.from_numpy(
        np.stack(
            [np.random.default_rng([options.seed, n]).random(options.longest) for n in numbers]
        )
    )  # (B, length)
    fed, taken, state = seen, 0, start(len(rows))
    for t in range(options.longest):
        if context is not None and taken + fed.shape[1] > context:
            fed, taken, state = seen[:, -max(1, context // 2) :], 0, start(len(rows))
        logits, state = step(fed, state)
        taken += fed.shape[1]

        scores = logits[:, -1].float().cpu().index_fill(1, torch.tensor(NEVER), float("-inf"))
        symbols = pick(filter_logits(scores, options.filters), chance[:, t])  # (B,)
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
