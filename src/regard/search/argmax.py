"""Prediction of the most probable labels.

B rows (examples of the batch), S sequence length, C labels.
"""

from typing import Any, ClassVar, Literal

from pydantic import Field

from regard.search.search import Search, SearchRequest, SearchResult


class Argmax(Search):
    """The most probable label; for multi-label models, all labels above the threshold."""

    takes: ClassVar[frozenset[str]] = frozenset({"labels"})
    kind: Literal["argmax"] = "argmax"
    threshold: float = Field(
        0.5, gt=0, lt=1, description="minimum probability for a label to be predicted"
    )

    def run(self, model: Any, request: SearchRequest) -> list[SearchResult]:
        """Return the label logits (C,) of each row.

        For taggers, return the best labels and their probabilities, both one per position.
        """
        import torch

        from regard.data.tensors.padded import Batch
        from regard.nn import crf

        assert request.source is not None
        with torch.inference_mode():
            outputs = model(Batch(request.source))
            scores, transitions = outputs.logits, outputs.transitions
            if scores.dim() == 2:
                return list(scores.float().cpu().numpy())
            mask = request.source.mask
            if transitions is None:
                p, labels = scores.softmax(-1).max(-1)  # (B, S)
            else:
                labels, _ = crf.viterbi(scores, transitions, mask)
                marginals = crf.marginals(scores, transitions, mask)  # (B, S, C)
                p = marginals.gather(-1, labels.unsqueeze(-1)).squeeze(-1)
            sizes, rows = mask.sum(1).tolist(), zip(labels.tolist(), p.tolist(), strict=True)
            return [
                (ids[:size], probabilities[:size])
                for size, (ids, probabilities) in zip(sizes, rows, strict=True)
            ]
