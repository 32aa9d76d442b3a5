"""Traces of searches that decode in parallel: the passes of mask-predict, the frames of CTC."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from torch import Tensor

from regard.data.tensors.special import BLANK
from regard.data.tokenizers.tokenizer import Tokenizer


@dataclass(frozen=True)
class Candidate:
    """An output of mask-predict after a pass. masked: which tokens this pass has written."""

    tokens: tuple[int, ...]
    probabilities: tuple[float, ...]
    masked: tuple[bool, ...]


@dataclass
class Refinement:
    """The lengths that mask-predict considered, and each candidate after each pass.

    lengths: tokens without EOS. probabilities: of the lengths; empty if outputs end at EOS.
    passes: by pass, then by candidate.
    """

    lengths: list[int] = field(default_factory=list)
    probabilities: list[float] = field(default_factory=list)
    passes: list[list[Candidate]] = field(default_factory=list)

    def add_lengths(self, lengths: Tensor, logprobs: Tensor, by_eos: bool) -> None:
        """Record the candidate lengths of one source."""
        self.lengths = lengths.tolist()
        self.probabilities = [] if by_eos else logprobs.exp().tolist()

    def add_pass(self, tokens: Tensor, logprobs: Tensor, masked: Tensor, ends: Tensor) -> None:
        """Record all candidates (R, T) of one source after a pass. ends: (R,), their lengths."""
        columns = (tokens.tolist(), logprobs.exp().tolist(), masked.tolist(), ends.tolist())
        self.passes.append(
            [
                Candidate(tuple(row[:end]), tuple(p[:end]), tuple(written[:end]))
                for row, p, written, end in zip(*columns, strict=True)
            ]
        )

    def as_dict(self, tokenizer: Tokenizer, best: Sequence[int]) -> dict[str, Any]:
        """Return lengths, and the passes of the candidate that became the best, for JSON."""
        final = [one.tokens for one in self.passes[-1]]
        winner = final.index(tuple(best)) if tuple(best) in final else 0
        lengths = [
            {
                "length": length,
                "probability": self.probabilities[i] if self.probabilities else None,
                "text": tokenizer.decode(list(final[i])),
                "best": i == winner,
            }
            for i, length in enumerate(self.lengths)
        ]
        passes = [
            [
                {"token": tokenizer.name(token), "probability": p, "written": written}
                for token, p, written in zip(*_columns(candidates[winner]), strict=True)
            ]
            for candidates in self.passes
        ]
        return {"kind": "refinement", "lengths": lengths, "passes": passes}


def _columns(one: Candidate) -> tuple[Sequence[Any], ...]:
    return one.tokens, one.probabilities, one.masked


@dataclass(frozen=True)
class FrameAlignment:
    """The most probable way to place an output in the frames of CTC.

    frames: the token of each frame, BLANK for none. probabilities: of these tokens. tokens: index
    of the output token of each frame; -1 for blanks. top: the most probable token of each frame.
    """

    frames: tuple[int, ...]
    probabilities: tuple[float, ...]
    tokens: tuple[int, ...]
    top: tuple[int, ...]
    per_source: float = 1.0

    def as_dict(self, tokenizer: Tokenizer, best: Sequence[int]) -> dict[str, Any]:
        """Return one entry per frame, for JSON."""

        def name(token: int) -> str | None:
            return None if token == BLANK else tokenizer.name(token)

        frames = [
            {"token": name(token), "probability": p, "index": index, "top": name(top)}
            for token, p, index, top in zip(
                self.frames, self.probabilities, self.tokens, self.top, strict=True
            )
        ]
        return {"kind": "frames", "frames": frames, "per_source": self.per_source}
