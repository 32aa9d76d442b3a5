"""The options of CTC decoding."""

from typing import Any, ClassVar, Literal

from pydantic import Field

from regard.search.hypothesis import Hypothesis
from regard.search.search import Explanation, Search, SearchRequest


class Collapse(Search):
    """CTC decoding: the best path with beam 1, otherwise prefix beam search."""

    takes: ClassVar[frozenset[str]] = frozenset({"frames"})
    kind: Literal["ctc"] = "ctc"
    beam: int = Field(
        1,
        gt=0,
        description="outputs kept per frame; 1: the most probable token of each frame, without "
        "repeats and blanks",
    )
    tokens: int = Field(
        20, gt=0, description="most probable tokens of a frame that can extend an output"
    )

    @property
    def candidates(self) -> int:
        return self.beam

    def run(self, model: Any, request: SearchRequest) -> list[list[Hypothesis]]:
        """Return the best hypotheses per source."""
        from regard.search.ctc import decode_frames

        return decode_frames(self, model, request)

    def explain(self, model: Any, request: SearchRequest) -> Explanation:
        """Return the best hypothesis, and the frames of its tokens."""
        from regard.search.ctc import frame_alignment

        ((best, *_),) = self.run(model, request)
        return Explanation(best, steps=frame_alignment(model, request, best.tokens))
