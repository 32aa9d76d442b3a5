"""The forced pass of a tagger over a sentence and its tags.

Shapes: n copies of the sentence, S words, C tags.
"""

from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from regard.core.errors import UserError
from regard.core.suggest import suggest_names
from regard.data.tensors.padded import Batch, Outputs, Padded
from regard.nn import crf
from regard.tasks.inspection.batched_pass import BatchedPass
from regard.tasks.inspection.forced_pass import ForcedOutput, InspectionRequest, TokenizedText
from regard.tasks.inspection.notes import Note


@dataclass(frozen=True, kw_only=True)
class TaggerPass(BatchedPass):
    """The forced pass over a sentence with a fixed tag per word."""

    source: Padded  # (1, S)

    def run(self, copies: int) -> Outputs:
        """Return the outputs of the model for the sentence."""
        return self.request.model(Batch(self.source.copies(copies)))

    def logits(self, copies: int) -> Tensor:
        """Return the logits (n, S, C) of all tags of each word."""
        return self.run(copies).logits.float()


@dataclass(frozen=True, kw_only=True)
class CRFTaggerPass(TaggerPass):
    """The forced pass of a tagger with a CRF, in which tags depend on each other."""

    def probabilities(self) -> Tensor:
        """Return the marginal probabilities (S, C) of the tags."""
        return crf.marginals(*self._potentials(1))[0]

    def scores(self, copies: int) -> Tensor:
        """Return the log probability (n, 1) of the tag sequence."""
        scores, transitions, mask = self._potentials(copies)
        tags = torch.tensor(self.tokens, device=scores.device).expand(copies, -1)
        return -crf.nll(scores, transitions, tags, mask)[:, None]

    def output_scores(self, parts: list[int]) -> Tensor:
        """Return the log odds (n,) of these tags, summed over all tag sequences of the CRF."""
        scores, transitions, mask = self._potentials(len(parts))
        rows, forced = torch.arange(len(parts)), [self.tokens[part] for part in parts]
        is_tag = torch.zeros_like(scores, dtype=torch.bool)  # (n, S, C)
        is_tag[rows, parts, forced] = True
        is_other_tag = torch.zeros_like(is_tag)
        is_other_tag[rows, parts] = ~is_tag[rows, parts]
        excluded = (is_other_tag, is_tag)
        masked = [scores.masked_fill(tags, float("-inf")) for tags in excluded]
        with_tag, without_tag = (crf.partition_in_logs(one, transitions, mask) for one in masked)
        return with_tag - without_tag

    def _potentials(self, copies: int) -> tuple[Tensor, Tensor, Tensor]:
        """Return emission scores (n, S, C), transition scores and the mask of words (n, S)."""
        outputs = self.run(copies)
        assert outputs.transitions is not None
        return outputs.logits.float(), outputs.transitions, self.source.copies(copies).mask


def tagger_pass(request: InspectionRequest) -> TaggerPass:
    """Return the forced pass over the predicted tags of a sentence, or over given tags."""
    task, words = request.task, request.source
    if not words:
        raise UserError("text: the sentence has no words", help="separate words by spaces")
    request.check_length("text", len(words), "shorten the sentence")
    (prediction,) = request.predictor.predict([words])
    tags = prediction.value
    if request.target is not None:
        tags = _parse_tags(task, words, request.target)
    has_crf = getattr(request.model.head, "transitions", None) is not None
    forced_pass = (CRFTaggerPass if has_crf else TaggerPass)(
        request=request,
        source=task.source.batch([words]).to(request.device),
        tokens=tuple(task.tag_ids[tag] for tag in tags),
    )
    output = ForcedOutput(
        source=TokenizedText(" ".join(words), tuple(task.source.names(words))),
        target=TokenizedText(" ".join(tags), tuple(tags)),
        steps=forced_pass.steps(task.tags.__getitem__),
        forced=request.forced,
        score=forced_pass.score(),
        unknown_tokens=prediction.unknown_tokens,
        notes=(Note("crf"),) if has_crf else (),
    )
    return replace(forced_pass, output=output)


def _parse_tags(task: Any, words: tuple[str, ...], target: str) -> list[str]:
    """Parse the tags of a target, one per word. Raise UserError if a tag is unknown."""
    tags = target.split()
    if len(tags) != len(words):
        raise UserError(f"target: expected {len(words)} tags, one per word, found {len(tags)}")
    for tag in tags:
        if tag not in task.tag_ids:
            raise UserError(f"target: unknown tag {tag!r}{suggest_names(tag, task.tags)}")
    return tags
