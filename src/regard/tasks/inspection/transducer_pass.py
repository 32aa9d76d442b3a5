"""The forced pass of a sequence-to-sequence model over a source and a target.

The target is the output of the search, or given by the user. Shapes: n copies of the source, T
target tokens with EOS, S source tokens with EOS, V target vocabulary size.
"""

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from regard.data.tensors.padded import Padded, shifted
from regard.data.tensors.special import BOS, EOS, SPECIALS
from regard.models.max_length import check_length
from regard.search.explore import SearchTree
from regard.search.forced_decoding import score_targets
from regard.search.hypothesis import NON_OUTPUT_IDS, Hypothesis
from regard.search.scoring import Scoring
from regard.tasks.inspection.batched_pass import (
    BatchedPass,
    EncodedText,
    encode_text,
    folded_notes,
    unknown_notes,
)
from regard.tasks.inspection.forced_pass import (
    ForcedOutput,
    InspectionRequest,
    OwnStep,
    TokenizedText,
)
from regard.tasks.inspection.notes import Note
from regard.tasks.inspection.own_prefix import own_steps


@dataclass(frozen=True, kw_only=True)
class TransducerPass(BatchedPass):
    """The forced pass over a source and a fixed target, both with EOS."""

    source: Padded  # (1, S)

    def logits(self, copies: int) -> Tensor:
        """Return the logits (n, T, V) at each target position, given the previous tokens."""
        model = self.request.model
        inputs = shifted(torch.tensor([self.tokens], device=self.request.device))
        state = model.start(self.source.copies(copies))
        return model.step(inputs.expand(copies, -1), state)[0].float()

    def num_outputs(self) -> int:
        return len(self.request.task.target)

    def lengths(self) -> tuple[int, int]:
        return len(self.tokens), max(len(self.tokens), self.source.data.shape[1])


def transducer_pass(request: InspectionRequest) -> TransducerPass:
    """Return the forced pass over the output of the search, or over a given target."""
    task, text, engine = request.task, request.source, request.predictor.engine
    names, own = request.source_names, tuple[OwnStep, ...]()
    request.check_length("text", len(names), "shorten the text")
    engine.check(len(names))
    search_request = engine.fit_request(task.search_request(task.rows([text]), [0], request.search))
    search_request = replace(search_request, on_step=lambda rows, outputs: request.on_step())
    best, tree, _ = request.search.explain(engine.stepper(), search_request)
    if request.target is None:
        target = EncodedText(best.tokens, list(map(task.target.name, best.tokens)), ())
        request.check_length("output", len(target.ids) + 1, "use a smaller max_length")
        notes = [Note("sampled.tree")] if tree is None else []
    else:
        target = encode_text(task.target, request.target)
        check_length(request.model, "decoder", len(target.ids) + 1)
        own = own_steps(request, search_request.source, target.ids, best.tokens)
        best, notes = _score_target(request, search_request.source, target, tree)
        request.check_length("target", len(target.ids) + 1, "shorten the target")
    tokens = (*target.names, SPECIALS[EOS])
    forced_pass = TransducerPass(
        request=request, source=search_request.source, tokens=(*target.ids, EOS)
    )
    output = ForcedOutput(
        source=TokenizedText(task.source.text(text), tuple(names)),
        target=TokenizedText(request.target or task.target.decode(target.ids), tokens),
        steps=forced_pass.steps(task.target.name, NON_OUTPUT_IDS, tokens),
        forced=request.forced,
        inputs=(SPECIALS[BOS], *tokens[:-1]),
        score=best.score,
        truncated=best.truncated,
        unknown_tokens=(*task.source.unknown(text), *target.unknown_tokens),
        tree=None if tree is None else tree.as_dict(task.target),
        own=own,
        notes=(
            *notes,
            *folded_notes(task.source.folded(text)),
            *_smoothing_note(request, forced_pass.num_outputs()),
        ),
    )
    return replace(forced_pass, output=output)


def _smoothing_note(request: InspectionRequest, outputs: int) -> list[Note]:
    """Return a note on the highest probability that label smoothing aims at, if any."""
    rate = getattr(request.predictor.config.objective, "label_smoothing", 0.0)
    if not rate:
        return []
    return [Note("smoothing", rate=rate, percent=round(100 * (1 - rate + rate / outputs)))]


def _score_target(
    request: InspectionRequest, source: Padded, target: EncodedText, tree: SearchTree | None
) -> tuple[Hypothesis, list[Note]]:
    """Score a given target by forced decoding. Return it as a hypothesis, and notes."""
    scoring: Scoring = getattr(request.search, "scoring", Scoring("none"))
    stepper = request.predictor.engine.stepper()
    (hypothesis,) = score_targets(stepper, source, [target.ids], scoring)
    notes = [Note("target.forced")]
    if tree is not None:
        notes.append(Note("target.tree"))
    if scoring.coverage_penalty:
        notes.append(Note("target.coverage"))
    return hypothesis, [*notes, *unknown_notes(target.unknown_tokens)]
