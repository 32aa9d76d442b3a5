"""The options of the searches of models that write frames."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from pydantic import Field

from regard.search.search import Search, SearchRequest
from regard.search.spectrogram import Spectrogram

if TYPE_CHECKING:
    import numpy as np


class FrameSearch(Search):
    """Common options of the searches of models that write frames."""

    speaker: str | None = Field(
        None, description="name of the speaker; None: the most common one of the training data"
    )
    max_seconds: float | None = Field(
        None,
        gt=0,
        le=3600,
        description="maximum length of the sound in seconds; None: derived from the text, at most "
        "60",
    )

    @property
    def stretch(self) -> float:
        """Return the factor by which sounds are longer than usual."""
        return 1.0

    @abstractmethod
    def align(self, model: Any, request: SearchRequest) -> tuple[Spectrogram, np.ndarray | None]:
        """Return the frames of the only source, and the weight (T, S) of each token per frame.

        The weights are None if the model does not attend to the source.
        """


class Unroll(FrameSearch):
    """Frames step by step, until the model stops."""

    takes: ClassVar[frozenset[str]] = frozenset({"frame_steps"})
    kind: Literal["unroll"] = "unroll"
    stop_threshold: float = Field(
        0.5, gt=0, lt=1, description="probability of the end at which the sound ends"
    )

    def run(self, model: Any, request: SearchRequest) -> list[Spectrogram]:
        """Return the frames of each source."""
        from regard.search.unroll import unroll

        source, limits = request.sequences()
        return unroll(model, source, limits, self.stop_threshold, request.on_step)

    def align(self, model: Any, request: SearchRequest) -> tuple[Spectrogram, np.ndarray | None]:
        from regard.search.unroll import attention

        return attention(model, *request.sequences(), self.stop_threshold)


class Expand(FrameSearch):
    """All frames at once, from the predicted durations of the tokens."""

    takes: ClassVar[frozenset[str]] = frozenset({"spectrogram"})
    kind: Literal["expand"] = "expand"
    speed: float = Field(
        1.0,
        ge=0.1,
        le=10,
        description="speed of speech, by which predicted durations are divided",
    )

    @property
    def stretch(self) -> float:
        return 1 / self.speed

    def run(self, model: Any, request: SearchRequest) -> list[Spectrogram]:
        """Return the frames of each source."""
        from regard.search.unroll import expand

        return expand(model, *request.sequences(), self.speed)

    def align(self, model: Any, request: SearchRequest) -> tuple[Spectrogram, np.ndarray | None]:
        from regard.search.unroll import staircase

        return staircase(model, *request.sequences(), self.speed)
