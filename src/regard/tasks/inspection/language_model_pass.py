"""The forced pass of a causal language model over a text and its continuation.

Shapes: n copies of the text, T tokens, V vocabulary size.
"""

from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from regard.core.errors import UserError
from regard.data.tensors.padded import shifted
from regard.data.tensors.special import BOS, EOS, SPECIALS
from regard.search.hypothesis import NON_OUTPUT_IDS
from regard.search.sample import continue_prompts
from regard.tasks.inspection.batched_pass import BatchedPass, encode_text, unknown_notes
from regard.tasks.inspection.forced_pass import ForcedOutput, InspectionRequest, TokenizedText
from regard.tasks.inspection.notes import Note

DEFAULT_SEARCH = {"temperature": 0.0, "max_length": 30}
SAMPLING = ("temperature", "top_k", "top_p", "min_p")


def continuation_search(settings: dict[str, Any]) -> dict[str, Any]:
    """Return the search settings with defaults for inspection: a short greedy continuation."""
    sampled = any(name in settings for name in SAMPLING)
    defaults = {
        name: value for name, value in DEFAULT_SEARCH.items() if name == "max_length" or not sampled
    }
    return defaults | settings


class LanguageModelPass(BatchedPass):
    """The forced pass over a text, in which each token is predicted from the previous tokens."""

    @property
    def supported_views(self) -> frozenset[str]:
        return frozenset() if self.request.model.only_counts else super().supported_views

    def logits(self, copies: int) -> Tensor:
        """Return the logits (n, T, V) at each position, given the previous tokens."""
        model = self.request.model
        inputs = shifted(torch.tensor([self.tokens], device=self.request.device))
        return model.step(inputs.expand(copies, -1), model.start(copies))[0].float()

    def num_outputs(self) -> int:
        return len(self.request.task.tokenizer)


def language_model_pass(request: InspectionRequest) -> LanguageModelPass:
    """Return the forced pass over a prompt with the model's continuation, or a given one."""
    tokenizer, text = request.task.tokenizer, request.source
    prompt, names, unknown_tokens = encode_text(tokenizer, text)
    request.check_length("text", len(prompt), "shorten the text")
    if request.target is None:
        new, notes = _continue(request, prompt)
        names += map(tokenizer.name, new)
        continuation = tokenizer.decode([*prompt, *new])[len(tokenizer.decode(prompt)) :]
    else:
        new, new_names = _encode_target(request, prompt, request.target)
        names, notes, continuation = [*names, *new_names], [], request.target
        unknown_tokens = encode_text(tokenizer, text + continuation).unknown_tokens
    if not (tokens := (*prompt, *new)):
        raise UserError("text and target are empty")
    side = "text and continuation"
    request.check_length(side, len(tokens), "shorten the text, or use a smaller max_length")
    forced_pass = LanguageModelPass(request=request, tokens=tokens)
    steps = forced_pass.steps(tokenizer.name, NON_OUTPUT_IDS, names)
    ngram = [Note("ngram")] if request.model.only_counts else []
    output = ForcedOutput(
        source=TokenizedText(text, tuple(names[: len(prompt)])),
        target=TokenizedText(text + continuation, tuple(names)),
        steps=tuple(replace(step, given=n < len(prompt)) for n, step in enumerate(steps)),
        forced=request.forced,
        inputs=(SPECIALS[BOS], *names[:-1]),
        score=forced_pass.score(),
        truncated=not request.forced and EOS not in new,
        unknown_tokens=unknown_tokens,
        notes=(*notes, *unknown_notes(unknown_tokens), *ngram),
    )
    return replace(forced_pass, output=output)


def _continue(request: InspectionRequest, prompt: list[int]) -> tuple[list[int], list[Note]]:
    """Return the token ids of the model's continuation, with EOS if it ended, and notes."""
    search, context = request.search, request.task.max_context(request.model)
    room = None if context is None else context - len(prompt)
    if room is not None and room < 1:
        raise UserError(
            f"text: {len(prompt):,} tokens leave no room in the context of {context:,} tokens",
            help="shorten the text",
        )
    kind = "sampled" if search.temperature else "greedy"
    notes = [Note(f"continuation.{kind}", limit=search.max_new_tokens)]
    if room is not None and search.max_new_tokens > room:
        notes.append(Note("continuation.context", tokens=room, context=context))
        search = search.model_copy(update={"max_length": room})
    new = list[int]()
    for tokens in continue_prompts(request.model, [prompt], [0], search, context):
        new += tokens.values()
        request.on_step()
    return (new if len(new) == search.max_new_tokens else [*new, EOS]), notes


def _encode_target(
    request: InspectionRequest, prompt: list[int], target: str
) -> tuple[list[int], list[str]]:
    """Return the token ids of a given continuation, and their names."""
    tokenizer, context = request.task.tokenizer, request.task.max_context(request.model)
    ids, names, _ = encode_text(tokenizer, request.source + target)
    if ids[: len(prompt)] == prompt:
        ids, names = ids[len(prompt) :], names[len(prompt) :]
    else:  # joint tokenization would change the tokens of the prompt
        ids, names, _ = encode_text(tokenizer, target)
    if context is not None and len(prompt) + len(ids) > context:
        raise UserError(
            f"text and target: {len(prompt) + len(ids):,} tokens exceed the context of "
            f"{context:,} tokens",
            help="shorten them",
        )
    return ids, names
