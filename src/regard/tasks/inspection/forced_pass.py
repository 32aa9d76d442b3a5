"""The interface of a forced pass: a repeatable forward pass over a source and a fixed output.

Each call runs a batch of n copies of the source. Copies can differ, for example in the ablated
head, or in the output part whose gradient is computed. R parts of the output: tokens, tags, labels
or numbers. A side is the source or the target.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import torch
from torch import Tensor

from regard.core.errors import UserError
from regard.nn.capture import Capture
from regard.tasks.inspection.notes import Note

MAX_ATTENTION_VALUES = 2_000_000  # attention weights per map, over all copies
MAX_OUTPUT_VALUES = 20_000_000  # logits of the output layer, over all copies
MAX_TOKENS = 200  # default maximum tokens of the source, and of the target
NUM_ALTERNATIVES = 5
TokenAxis = Literal["source", "target", "inputs", "one"]


@dataclass(frozen=True)
class TokenizedText:
    """A text and its tokens as printed."""

    text: str
    tokens: tuple[str, ...]


@dataclass(frozen=True)
class OutputStep:
    """One output token with its probability, or one predicted number with its value.

    alternatives: the most probable other tokens, in descending order. given: whether the token is
    part of the prompt of a language model.
    """

    token: str
    probability: float | None
    alternatives: tuple[tuple[str, float], ...] = ()
    value: float | None = None
    given: bool = False

    def as_dict(self) -> dict[str, Any]:
        """Return the step for JSON. A predicted number has a value instead of a probability."""
        value = {"value": self.value}
        if self.probability is not None:
            value = {"probability": self.probability}
        alternatives = [list(pair) for pair in self.alternatives]
        step = {"token": self.token, **value, "alternatives": alternatives}
        return step | ({"given": True} if self.given else {})


@dataclass(frozen=True)
class OwnStep:
    """The model's own token at a target position; empty after the end of its output.

    probability: of the target token, if the model has read its own tokens so far.
    """

    token: str
    probability: float | None


@dataclass(frozen=True, kw_only=True)
class ForcedOutput:
    """The output that an inspection explains, with source, probabilities and search tree.

    forced: whether the user passed the target (forced decoding). inputs: tokens read by the
    decoder. truncated: whether the output reached the length limit. tree: the search tree, search:
    the steps of a search that decodes in parallel, graph: nodes and edges of a graph, all ready for
    JSON. own: the model's own output next to a given target. notes: remarks for the user, such as
    what is missing and why.
    """

    source: TokenizedText
    target: TokenizedText
    steps: tuple[OutputStep, ...]
    forced: bool = False
    inputs: tuple[str, ...] = ()
    score: float | None = None
    truncated: bool = False
    unknown_tokens: tuple[str, ...] = ()
    tree: dict[str, Any] | None = None
    graph: dict[str, Any] | None = None
    search: dict[str, Any] | None = None
    own: tuple[OwnStep, ...] = ()
    notes: tuple[Note, ...] = ()


def no_step() -> None:
    """Do nothing."""


@dataclass(frozen=True)
class InspectionRequest:
    """Arguments of an inspection.

    target: the output to explain; None: the model's own prediction. search: search options.
    max_tokens: maximum tokens of the source, and of the target. on_step: called between forward
    passes; may raise an exception to cancel the inspection.
    """

    predictor: Any
    source: Any
    target: str | None = None
    search: Any = None
    max_tokens: int = MAX_TOKENS
    on_step: Callable[[], None] = no_step

    @property
    def task(self) -> Any:
        """The task of the model."""
        return self.predictor.task

    @property
    def forced(self) -> bool:
        """Whether the user passed a target."""
        return self.target is not None

    @property
    def device(self) -> torch.device:
        """The device of the model."""
        device: torch.device = self.predictor.engine.device
        return device

    @cached_property
    def model(self) -> Any:
        """The torch module, in evaluation mode."""
        return self.predictor.engine.torch_module().eval()

    @cached_property
    def source_names(self) -> list[str]:
        """The name of each vector that the encoder reads, after a frontend with a stride."""
        names: list[str] = self.task.source.names(self.source)
        return names[:: self.stride]

    @property
    def stride(self) -> int:
        """The positions of the source per vector that the encoder reads."""
        stride: int = getattr(getattr(self.model, "frontend", None), "stride", 1)
        return stride

    def check_length(self, side: str, count: int, advice: str) -> None:
        """Raise TooLong if `count` tokens are more than `max_tokens`.

        side: name of the text in the message. advice: how to shorten it.
        """
        if count > self.max_tokens:
            raise TooLong(side, count, self.max_tokens, advice)


class TooLong(UserError):
    """The error for a source or target with too many tokens. advice: how to shorten it."""

    def __init__(self, side: str, count: int, limit: int, advice: str) -> None:
        super().__init__(
            f"{side}: {count:,} tokens, but the limit is {limit:,} per side",
            help=f"{advice}, or raise the limit: --max-tokens {count}",
        )
        self.side, self.count, self.advice = side, count, advice


@dataclass(frozen=True, kw_only=True)
class ForcedPass(ABC):
    """A repeatable forward pass over a source and a fixed output.

    output: what the inspection shows; None while the pass is being built.
    """

    request: InspectionRequest
    output: ForcedOutput | None = None

    @property
    def row_axis(self) -> TokenAxis:
        """The axis of the output parts in saliency maps: "target", or "one" for a single part."""
        return "target"

    @property
    def kept(self) -> int | None:
        """The number of first source positions that are shown; None: all."""
        return None

    @property
    def supported_views(self) -> frozenset[str]:
        """The views that model and source support; see `Input.inspects`."""
        inspects: frozenset[str] = self.request.task.source.inspects
        return inspects

    @abstractmethod
    def output_scores(self, parts: list[int]) -> Tensor:
        """Return the log odds (or the number) of these output parts (n,), one part per copy."""

    @abstractmethod
    def forward(self) -> None:
        """Run the model once, so that a recorder can capture its internals."""

    @abstractmethod
    def total_score(self, copies: int) -> Tensor:
        """Return the log probability of the output, or the sum of its numbers, per copy (n,)."""

    @abstractmethod
    def lengths(self) -> tuple[int, int]:
        """Return R, and the length of source or target, whichever is longer."""

    def num_outputs(self) -> int:
        """Return the number of logits per output part."""
        return 1

    def max_copies(self) -> int:
        """Return the maximum number of copies that fit into memory with their attention maps."""
        parts, longest = self.lengths()
        num_outputs = parts * self.num_outputs()
        max_by_attention = MAX_ATTENTION_VALUES // (8 * longest * longest)
        return max(1, min(max_by_attention, MAX_OUTPUT_VALUES // num_outputs))

    def max_total_copies(self) -> int:
        """Return the maximum number of copies for `total_score`."""
        return self.max_copies()

    def too_expensive(self, heads: int) -> bool:
        """Return whether the ablation of this many heads would take too long."""
        return False

    def saliency(self, captured: Capture, score: Tensor) -> dict[str, Tensor]:
        """Return the saliency (n, positions) of the input positions, by module name."""
        return captured.saliency(score)

    def notes(self, internals: Sequence[Note]) -> tuple[Note, ...]:
        """Return all notes. internals: notes about attention, heads and gates."""
        assert self.output is not None
        return (*self.output.notes, *internals)
