"""Forced passes of models with parallel decoders.

`FillPass` shows the first decoder call, in which all tokens are masked. `FramesPass` shows the
frames of CTC: each frame is an output part. Shapes: n copies of the source, T output tokens with
EOS, F frames, V target vocabulary size.
"""

from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from regard.data.tensors.padded import LengthScores, Padded, pad
from regard.data.tensors.special import BLANK, EOS, MASK, SPECIALS
from regard.objectives.ctc import ctc_nll
from regard.search.ctc import frame_alignment
from regard.search.hypothesis import NON_OUTPUT_IDS
from regard.search.search import SearchRequest
from regard.tasks.inspection.batched_pass import (
    BatchedPass,
    EncodedText,
    encode_text,
    folded_notes,
    log_odds,
    unknown_notes,
)
from regard.tasks.inspection.forced_pass import (
    ForcedOutput,
    InspectionRequest,
    OutputStep,
    TokenizedText,
)
from regard.tasks.inspection.notes import Note

BLANK_NAME = "·"


@dataclass(frozen=True, kw_only=True)
class FillPass(BatchedPass):
    """The first call of a decoder that fills in masks.

    size: number of output tokens, EOS included. If outputs end at EOS, the decoder has more
    positions: EOS too, but not part of the output.
    """

    source: Padded  # (1, S)
    size: int

    def logits(self, copies: int) -> Tensor:
        """Return the logits (n, T, V) at each position, if all tokens are masked."""
        return self._outputs(copies)[0]

    def scores(self, copies: int) -> Tensor:
        """Return the log probability (n, T) of each token; of EOS, that of the length."""
        logits, lengths = self._outputs(copies)
        true = torch.tensor(self.tokens, device=logits.device).expand(copies, -1)
        found = logits.log_softmax(-1).gather(-1, true[..., None]).squeeze(-1)
        if lengths is None:
            return found * (torch.arange(len(self.tokens), device=found.device) < self.size)
        own = lengths.logits.log_softmax(-1).gather(1, self._label(lengths)[:, None])
        return torch.cat([found[:, :-1], own], 1)

    def output_scores(self, parts: list[int]) -> Tensor:
        logits, lengths = self._outputs(len(parts))
        rows = logits[torch.arange(len(parts)), parts]
        found = log_odds(rows, [self.tokens[part] for part in parts])
        if lengths is None:
            return found
        last = torch.tensor(parts, device=found.device) == len(self.tokens) - 1
        return torch.where(last, log_odds(lengths.logits, self._label(lengths).tolist()), found)

    def probabilities(self) -> Tensor:
        """Return the probability (T, V) of each token; of EOS, that of the length."""
        found = super().probabilities().clone()
        if self.request.model.length_classifier is not None:
            found[-1] = 0.0
            found[-1, EOS] = self.scores(1)[0, -1].exp()
        return found

    def num_outputs(self) -> int:
        return len(self.request.task.target)

    def lengths(self) -> tuple[int, int]:
        return len(self.tokens), max(len(self.tokens), self.source.data.shape[1])

    def _label(self, lengths: LengthScores) -> Tensor:
        """Return the class (n,) of the length of the output, or of the nearest length."""
        last = lengths.logits.shape[1] - 1
        return (len(self.tokens) - lengths.shortest).clamp(0, last)

    def _outputs(self, copies: int) -> tuple[Tensor, LengthScores | None]:
        """Return the logits (n, T, V) of tokens, and the scores of lengths."""
        model = self.request.model
        state = model.start(self.source.copies(copies))
        tokens = torch.tensor([self.tokens], device=self.request.device).expand(copies, -1)
        inputs = model.unknown(tokens)
        logits = model.fill(inputs, torch.ones_like(inputs, dtype=torch.bool), state)
        return logits.float(), model.lengths(state)


@dataclass(frozen=True, kw_only=True)
class FramesPass(BatchedPass):
    """The frames of CTC for an output. `tokens` are those of the most probable path.

    target: (1, T), the output with EOS.
    """

    source: Padded  # (1, S)
    target: Padded

    def logits(self, copies: int) -> Tensor:
        """Return the logits (n, F, V) of each frame."""
        found: Tensor = self.request.model.frames(self.source.copies(copies)).data
        return found.float()

    def total_score(self, copies: int) -> Tensor:
        """Return the log probability of the output, summed over all paths, per copy (n,)."""
        scores = self.logits(copies).log_softmax(-1)
        mask = torch.ones(scores.shape[:2], dtype=torch.bool, device=scores.device)
        return -ctc_nll(scores, mask, self.target.copies(copies)).double()

    def num_outputs(self) -> int:
        return len(self.request.task.target)

    def lengths(self) -> tuple[int, int]:
        return len(self.tokens), max(len(self.tokens), self.source.data.shape[1])


@dataclass(frozen=True)
class _Target:
    """The output to explain: given, or found by the search. steps: those of the search."""

    text: EncodedText
    score: float | None
    truncated: bool
    steps: dict[str, Any]
    notes: list[Note]


def fill_pass(request: InspectionRequest) -> FillPass:
    """Return the pass over the output of mask-predict, or over a given target."""
    search = _request(request)
    target = _target(request, search)
    assert search.source is not None
    size, by_eos = len(target.text.ids) + 1, request.model.positions
    beyond = max(0, by_eos - size)
    tokens = (*target.text.ids, *[EOS] * (1 + beyond))
    found = FillPass(request=request, source=search.source, tokens=tokens, size=size)
    names = (*target.text.names, SPECIALS[EOS], *[BLANK_NAME] * beyond)
    score = target.score
    if score is None:
        logprobs = found.scores(1)[0, :size].double()
        score = float(logprobs[:-1].mean() if size > 1 else logprobs[0])
    steps = found.steps(request.task.target.name, NON_OUTPUT_IDS, names)
    last = SPECIALS[MASK if by_eos else EOS]
    inputs = (*[SPECIALS[MASK]] * (len(tokens) - 1), last)
    output = _output(request, target, names, steps, inputs, score)
    note = Note("fill.eos" if by_eos else "fill.first")
    return replace(found, output=replace(output, notes=(note, *output.notes)))


def frames_pass(request: InspectionRequest) -> FramesPass:
    """Return the pass over the output of CTC decoding, or over a given target."""
    search = _request(request)
    target = _target(request, search)
    assert search.source is not None
    path = frame_alignment(request.model, search, target.text.ids)
    found = FramesPass(
        request=request,
        source=search.source,
        tokens=path.frames,
        target=pad([[*target.text.ids, EOS]]).to(request.device),
    )

    def name(token: int) -> str:
        return BLANK_NAME if token == BLANK else request.task.target.name(token)

    names = tuple(map(name, path.frames))
    excluded = [token for token in (*NON_OUTPUT_IDS, EOS) if token != BLANK]
    steps = found.steps(name, excluded, names)
    score = float(found.total_score(1)) if target.score is None else target.score
    source_names = request.source_names
    per = max(1, len(path.frames) // max(1, len(source_names)))
    inputs = tuple(
        f"{source_names[min(i // per, len(source_names) - 1)]}.{i % per + 1}"
        for i in range(len(path.frames))
    )
    output = _output(request, target, names, steps, inputs, score)
    notes = (Note("frames.parts", blank=BLANK_NAME), *output.notes)
    return replace(
        found, output=replace(output, notes=notes, search=path.as_dict(request.task.target, ()))
    )


def _request(request: InspectionRequest) -> SearchRequest:
    """Return the search request for the source."""
    task, engine = request.task, request.predictor.engine
    names = request.source_names
    request.check_length("text", len(names), "shorten the text")
    engine.check(len(names))
    rows = task.rows([request.source])
    found: SearchRequest = engine.fit_request(task.search_request(rows, [0], request.search))
    return replace(found, on_step=lambda rows, outputs: request.on_step())


def _target(request: InspectionRequest, search: SearchRequest) -> _Target:
    """Return the given target, or the output of the search."""
    task = request.task
    best, _, steps = request.search.explain(request.predictor.engine.stepper(), search)
    record = {} if steps is None else steps.as_dict(task.target, best.tokens)
    if request.target is None:
        text = EncodedText(list(best.tokens), [*map(task.target.name, best.tokens)], ())
        request.check_length("output", len(text.ids) + 1, "use a smaller max_length")
        return _Target(text, best.score, best.truncated, record, [])
    text = encode_text(task.target, request.target)
    request.check_length("target", len(text.ids) + 1, "shorten the target")
    notes = [Note("target.forced"), Note("target.passes"), *unknown_notes(text.unknown_tokens)]
    return _Target(text, None, False, record, notes)


def _output(
    request: InspectionRequest,
    target: _Target,
    names: tuple[str, ...],
    steps: tuple[OutputStep, ...],
    inputs: tuple[str, ...],
    score: float,
) -> ForcedOutput:
    """Return what the inspection shows of an output. names: of its parts. inputs: of decoder."""
    task, source = request.task, request.source
    return ForcedOutput(
        source=TokenizedText(task.source.text(source), tuple(request.source_names)),
        target=TokenizedText(request.target or task.target.decode(target.text.ids), names),
        steps=steps,
        forced=request.forced,
        inputs=inputs,
        score=score,
        truncated=target.truncated,
        unknown_tokens=(*task.source.unknown(source), *target.text.unknown_tokens),
        search=target.steps or None,
        notes=(*target.notes, *folded_notes(task.source.folded(source))),
    )
