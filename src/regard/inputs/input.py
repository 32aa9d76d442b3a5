"""The contract of an input: sources of one sense as numbers, fitted on the training part.

A sense is one file in this room with its Input and its frontend, and a name in each of the two
unions in `regard.inputs`.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, cast

import numpy as np
from typing_extensions import Self

from regard.core.errors import UserError
from regard.core.options import AutoSetting, Options
from regard.data.corpus.ragged import Rows
from regard.data.tensors.padded import Padded


class InputShape(NamedTuple):
    """What a frontend is built for. kind: of the input; size: tokens of its vocabulary, or
    numbers of a vector; characters: of the vocabulary that words are spelled with."""

    kind: str
    size: int
    characters: int = 0


class Input(ABC):
    """Sources as numbers. kind: as of its options; unlike: what is said of a model to start from
    that reads another kind; sequential: whether a source has several
    positions; whole_words: whether its tokens are words or pieces of words, for the choice of a
    model."""

    kind: ClassVar[str]
    unlike: ClassVar[str] = "--init-from: that model reads another kind of sources"
    sequential: ClassVar[bool] = True
    whole_words: bool = False

    @classmethod
    def like(cls, other: "Input") -> Self:
        """The input of a model to start from, if it is of this kind."""
        if other.kind != cls.kind:
            raise UserError(cls.unlike)
        return cast(Self, other)

    @property
    @abstractmethod
    def shape(self) -> InputShape:
        """What a frontend needs to know."""

    @abstractmethod
    def encode(self, sources: Sequence[Any]) -> Rows:
        """Sources as rows of numbers."""

    @abstractmethod
    def names(self, source: Any) -> list[str]:
        """A name for each position of a source, as pages and alignments show it."""

    @abstractmethod
    def content(self) -> bytes:
        """All that decides how sources become numbers: equal for inputs that read alike."""

    @abstractmethod
    def save(self, place: Path) -> None:
        """Writes all that the `load` of its options needs."""

    def batch(self, sources: Sequence[Any]) -> Padded:
        """Sources as one tensor."""
        return self.encode(sources).all()

    def parse(self, text: str) -> Any:
        """A source as it is written in a line."""
        return text

    def text(self, source: Any) -> str:
        """A source as a line would have it: the way back from `parse`."""
        return str(source)

    def length(self, source: Any) -> int:
        """How long a source is, near enough for sorting."""
        return len(source)

    def alphabet(self) -> list[str]:
        """What its texts are written with, where they are texts."""
        return []

    def token_ids(self, sources: Sequence[Any], spelled: bool) -> list[np.ndarray] | None:
        """The ids of the tokens of each source, UNK where a model can read nothing of one; None
        where sources have no tokens.

        spelled: whether the model also reads words by their characters.
        """
        return None

    def knows(self, part: Any) -> bool:
        """Whether training saw what is at one position of a source, such as a word."""
        return True

    def unknown(self, source: Any, row: np.ndarray | None = None) -> tuple[str, ...]:
        """The tokens of a source that training never saw; row: its numbers, where known."""
        return ()


class InputOptions(Options):
    """What the options of all inputs can do. examples: sources such as it reads, some of them of
    different lengths; joint: whether it cuts texts as targets are cut, so that both can have one
    vocabulary."""

    examples: ClassVar[tuple[Any, ...]]
    joint: ClassVar[bool] = False
    kind: str

    @classmethod
    def accepts(cls, source: Any) -> bool:
        """Whether it reads sources such as this one."""
        raise NotImplementedError

    def fit(
        self,
        sources: Sequence[Any],
        path: str,
        auto_settings: list[AutoSetting],
        like: Input | None = None,
    ) -> tuple[Input, "InputOptions"]:
        """The input for these sources, and the options with nothing left open.

        path: of the section, for what is chosen; like: the input of a model to start from, whose
        numbers are kept.
        """
        raise NotImplementedError

    def load(self, place: Path) -> Input:
        """The input that `save` wrote."""
        raise NotImplementedError
