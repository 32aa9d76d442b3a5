"""Sampling: outputs drawn from a decoder's probabilities, by its step function and its State.

B rows, T symbols fed, V vocabulary.
"""

from collections.abc import Iterator, Sequence
from typing import Any, ClassVar, Literal

import numpy as np
import torch
from pydantic import Field, model_validator

from regard.core.errors import UserError
from regard.data.tensors.special import BOS, EOS
from regard.search.callbacks import remap_rows, tell_rows
from regard.search.draw import chances, draw
from regard.search.filters import Filters, filter_logits, pick
from regard.search.hypothesis import NEVER, Hypothesis
from regard.search.rules import Rules, with_room
from regard.search.search import Search, SearchRequest


class Sample(Search):
    """Sampling, from the whole distribution or its most probable part."""

    takes: ClassVar[frozenset[str]] = frozenset({"steps", "masked"})  # of masked: nothing
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
    def run(self, model: Any, request: SearchRequest) -> list[list[Hypothesis]]:
        """Return outputs for each row as they are drawn: from a source, or after a prompt."""
        if request.source is None:
            return self._continue(model, request)
        (source, limits), constraints = request.sequences(), request.constraints
        if constraints is not None and any(one.must for one in constraints):
            raise UserError("words that must appear: sampling cannot promise them; use a beam")
        limits = with_room(limits, self.min_length, constraints)
        rows = zip(source.data.tolist(), source.mask.sum(1).tolist(), strict=True)
        sentences = [ids[:length] for ids, length in rows]
        chance = chances(self.seed, sentences, request.nbest, int(limits.max()))
        rules, start = Rules(self.min_length, self.no_repeat, constraints), model.start(source)
        return draw(model.step, start, limits, chance, self.filters, rules, request.on_step)

    def _continue(self, model: Any, request: SearchRequest) -> list[list[Hypothesis]]:
        """Return what follows each prompt; nothing is known of its probability."""
        count, prompts = request.nbest, request.prompts or ()
        copies = [prompt for prompt in prompts for _ in range(count)]
        each = request.indices or range(len(prompts))
        indices = [count * index + copy for index in each for copy in range(count)]
        follower = remap_rows(request.on_step, [row // count for row in range(len(copies))])
        outputs: list[list[int]] = [[] for _ in copies]
        for drawn in continued(model, copies, indices, self, request.context):
            for row, token in drawn.items():
                outputs[row].append(token)
            tell_rows(follower, list(drawn), outputs)
        found = [Hypothesis(tuple(tokens), 0.0, ()) for tokens in outputs]
        return [found[at : at + count] for at in range(0, len(found), count)]


@torch.inference_mode()
def continued(
    model: Any,
    prompts: Sequence[Sequence[int]],
    indices: Sequence[int],
    options: Sample,
    context: int | None = None,
) -> Iterator[dict[int, int]]:
    """Yield the next token of each prompt, by its row; those that ended drop out, without EOS.

    indices: of the prompts; what is drawn for one depends on its own, so the batch does not matter.
    context: maximum tokens the model can look back on, or None; when its state has taken in so
    many, it starts again with the later half.
    """
    context = None if getattr(model, "unbounded", False) else context
    rows = list(range(len(prompts)))
    seen = torch.tensor([[BOS, *prompt] for prompt in prompts])  # (B, T)
    chance = torch.from_numpy(
        np.stack(
            [np.random.default_rng([options.seed, n]).random(options.longest) for n in indices]
        )
    )  # (B, length)
    fed, taken, state = seen, 0, model.start(len(rows))
    for t in range(options.longest):
        if context is not None and taken + fed.shape[1] > context:
            fed, taken, state = seen[:, -max(1, context // 2) :], 0, model.start(len(rows))
        logits, state = model.step(fed, state)
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
