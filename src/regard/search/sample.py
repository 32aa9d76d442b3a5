"""Sampling: outputs drawn from a decoder's probabilities, by its step function and its State.

B rows, T tokens fed, V vocabulary.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import torch

from regard.core.errors import UserError
from regard.data.tensors.special import BOS, EOS
from regard.search.callbacks import notify_rows, remap_rows
from regard.search.filters import filter_logits, pick
from regard.search.hypothesis import NON_OUTPUT_IDS, Hypothesis
from regard.search.logit_masks import LogitMasks, raise_limits
from regard.search.search import SearchRequest
from regard.search.sequence_sampling import chances, draw


@torch.inference_mode()
def run_sample(options: Any, model: Any, request: SearchRequest) -> list[list[Hypothesis]]:
    """Return outputs for each row of the source as they are drawn. options: of `Sample`."""
    (source, limits), constraints = request.sequences(), request.constraints
    if constraints is not None and any(one.require for one in constraints):
        raise UserError("words that must appear: sampling cannot promise them; use a beam")
    limits = raise_limits(limits, options.min_length, constraints)
    rows = zip(source.data.tolist(), source.mask.sum(1).tolist(), strict=True)
    sentences = [ids[:length] for ids, length in rows]
    chance = chances(options.seed, sentences, request.nbest, int(limits.max()))
    masks, start = (
        LogitMasks(options.min_length, options.no_repeat_ngram, constraints),
        model.start(source),
    )
    return draw(model.step, start, limits, chance, options.filters, masks, request.on_step)


@torch.inference_mode()
def run_continuation(options: Any, model: Any, request: SearchRequest) -> list[list[Hypothesis]]:
    """Return what follows each prompt; nothing is known of its probability."""
    count, prompts = request.nbest, request.prompts or ()
    copies = [prompt for prompt in prompts for _ in range(count)]
    each = request.indices or range(len(prompts))
    indices = [count * index + copy for index in each for copy in range(count)]
    follower = remap_rows(request.on_step, [row // count for row in range(len(copies))])
    outputs: list[list[int]] = [[] for _ in copies]
    for drawn in continue_prompts(model, copies, indices, options, request.context):
        for row, token in drawn.items():
            outputs[row].append(token)
        notify_rows(follower, list(drawn), outputs)
    found = [Hypothesis(tuple(tokens), 0.0, ()) for tokens in outputs]
    return [found[at : at + count] for at in range(0, len(found), count)]


@torch.inference_mode()
def continue_prompts(
    model: Any,
    prompts: Sequence[Sequence[int]],
    indices: Sequence[int],
    options: Any,
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
            [
                np.random.default_rng([options.seed, n]).random(options.max_new_tokens)
                for n in indices
            ]
        )
    )  # (B, length)
    fed, taken, state = seen, 0, model.start(len(rows))
    for t in range(options.max_new_tokens):
        if context is not None and taken + fed.shape[1] > context:
            fed, taken, state = seen[:, -max(1, context // 2) :], 0, model.start(len(rows))
        logits, state = model.step(fed, state)
        taken += fed.shape[1]

        scores = (
            logits[:, -1].float().cpu().index_fill(1, torch.tensor(NON_OUTPUT_IDS), float("-inf"))
        )
        tokens = pick(filter_logits(scores, options.filters), chance[:, t])  # (B,)
        going = (tokens != EOS).nonzero().flatten()
        rows = [rows[b] for b in going.tolist()]
        if not rows:
            return
        if len(rows) < len(tokens):
            left = going.to(logits.device)
            state = state.select(left, left)
            seen, chance, tokens = seen[going], chance[going], tokens[going]
        yield dict(zip(rows, tokens.tolist(), strict=True))
        fed = tokens[:, None]
        seen = torch.cat([seen, fed], 1)
