"""Sampling from any decoder that has a step function and a decoder state (`State`).

B rows (sources or prompts), T input tokens, V vocabulary.
"""

from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from typing import Any

import numpy as np
import torch
from torch import Tensor

from regard.core.errors import UserError
from regard.core.threads import single_threaded_torch
from regard.data.tensors.special import BOS, EOS
from regard.search.callbacks import notify_rows, remap_rows
from regard.search.filters import filter_logits, sample_tokens
from regard.search.hypothesis import NON_OUTPUT_IDS, Hypothesis
from regard.search.logit_masks import LogitMasks, raise_limits
from regard.search.search import SearchRequest
from regard.search.sequence_sampling import sample_sequences, uniforms

MIN_ROWS_PER_THREAD = 32  # with fewer rows, threads wait longer for each other than they work


@torch.inference_mode()
def run_sample(options: Any, model: Any, request: SearchRequest) -> list[list[Hypothesis]]:
    """Return the sampled hypotheses per source. options: a `Sample`."""
    (source, limits), constraints = request.sequences(), request.constraints
    if constraints is not None and any(one.require for one in constraints):
        raise UserError("require: not supported with sampling", help="use beam search")
    limits = raise_limits(limits, options.min_length, constraints)
    if source.data.is_floating_point():  # not tokens
        sentences = [[index] for index in request.indices]
    else:
        rows = zip(source.data.flatten(1).tolist(), source.mask.sum(1).tolist(), strict=True)
        width = source.data[0, 0].numel()
        sentences = [ids[: width * length] for ids, length in rows]
    uniform = uniforms(options.seed, sentences, request.nbest, int(limits.max()))
    masks = LogitMasks(options.min_length, options.no_repeat_ngram, constraints)
    start, filters = model.start(source), options.filters
    return sample_sequences(model.step, start, limits, uniform, filters, masks, request.on_step)


@torch.inference_mode()
def run_continuation(options: Any, model: Any, request: SearchRequest) -> list[list[Hypothesis]]:
    """Return the sampled continuations of each prompt, without scores. options: a `Sample`."""
    count, prompts = request.nbest, request.prompts or ()
    copies = [prompt for prompt in prompts for _ in range(count)]
    prompt_indices = request.indices or range(len(prompts))
    indices = [count * index + copy for index in prompt_indices for copy in range(count)]
    callback = remap_rows(request.on_step, [row // count for row in range(len(copies))])
    outputs: list[list[int]] = [[] for _ in copies]
    for tokens in continue_prompts(model, copies, indices, options, request.context):
        for row, token in tokens.items():
            outputs[row].append(token)
        notify_rows(callback, list(tokens), outputs)
    found = [Hypothesis(tuple(output), 0.0, ()) for output in outputs]
    return [found[at : at + count] for at in range(0, len(found), count)]


@torch.inference_mode()
def continue_prompts(
    model: Any,
    prompts: Sequence[Sequence[int]],
    indices: Sequence[int],
    options: Any,
    context: int | None = None,
) -> Iterator[dict[int, int]]:
    """Yield the next token of each prompt, keyed by row. Rows that reach EOS are dropped.

    indices: one per prompt. The samples for a prompt depend on its index, not on the batch.
    context: maximum context length of the model, or None. If the text exceeds the context length,
    the decoder state is computed again from the last context // 2 tokens.
    """
    context = None if getattr(model, "unbounded", False) else context
    rows = list(range(len(prompts)))
    history = torch.tensor([[BOS, *prompt] for prompt in prompts])  # (B, T)
    uniform = torch.from_numpy(
        np.stack(
            [
                np.random.default_rng([options.seed, n]).random(options.max_new_tokens)
                for n in indices
            ]
        )
    )  # (B, length)
    inputs, length, state = history, 0, model.start(len(rows))
    excluded = torch.tensor(NON_OUTPUT_IDS)
    new: list[Tensor] = []  # (B, 1) each, not yet in `history`
    for t in range(options.max_new_tokens):
        if context is not None and length + inputs.shape[1] > context:
            history, new = torch.cat([history, *new], 1), []
            inputs, length = history[:, -max(1, context // 2) :], 0
            state = model.start(len(rows))
        few = len(rows) < MIN_ROWS_PER_THREAD and inputs.shape[1] == 1
        with single_threaded_torch() if few else nullcontext():
            logits, state = model.step(inputs, state)
        length += inputs.shape[1]

        scores = logits[:, -1].float().cpu().index_fill(1, excluded, float("-inf"))
        tokens = sample_tokens(filter_logits(scores, options.filters), uniform[:, t])  # (B,)
        sampled = tokens.tolist()
        if EOS in sampled:
            unfinished = (tokens != EOS).nonzero().flatten()
            rows = [rows[b] for b in unfinished.tolist()]
            if not rows:
                return
            kept = unfinished.to(logits.device)
            state = state.select(kept, kept)
            history = torch.cat([history, *new], 1)[unfinished]
            uniform, tokens, new = uniform[unfinished], tokens[unfinished], []
            sampled = tokens.tolist()
        yield dict(zip(rows, sampled, strict=True))
        inputs = tokens[:, None]
        if context is not None:
            new.append(inputs)
