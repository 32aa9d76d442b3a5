"""The interface of inputs: encode sources of one kind, fitted on the training set.

A new kind of input is one file in this package with its Input and its frontend, registered in the
two unions of `regard.inputs`.
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
    """The shape of an input, for its frontend.

    kind: of the input; size: vocabulary size, or numbers per vector; characters: vocabulary size
    of the characters of words.
    """

    kind: str
    size: int
    characters: int = 0


class Input(ABC):
    """Encodes sources.

    kind: as in its options; mismatch: the error if a pretrained model reads another kind;
    sequential: whether a source has several positions; whole_words: whether its tokens are words
    or subwords, which determines the default model.
    """

    kind: ClassVar[str]
    mismatch: ClassVar[str] = "--init-from: the pretrained model reads another kind of sources"
    sequential: ClassVar[bool] = True
    whole_words: bool = False

    @classmethod
    def like(cls, other: "Input") -> Self:
        """Return the input of a pretrained model; raise UserError if it is of another kind."""
        if other.kind != cls.kind:
            raise UserError(cls.mismatch)
        return cast(Self, other)

    @property
    @abstractmethod
    def shape(self) -> InputShape:
        """The shape that a frontend is built for."""

    @abstractmethod
    def encode(self, sources: Sequence[Any]) -> Rows:
        """Return sources as rows of numbers."""

    @abstractmethod
    def names(self, source: Any) -> list[str]:
        """Return a display name for each position of a source."""

    @abstractmethod
    def content(self) -> bytes:
        """Return everything that determines the encoding, for fingerprints."""

    @abstractmethod
    def save(self, folder: Path) -> None:
        """Write everything that `load` of its options needs."""

    def batch(self, sources: Sequence[Any]) -> Padded:
        """Return sources as one tensor."""
        return self.encode(sources).all()

    def parse(self, text: str) -> Any:
        """Return the source that a line of text represents."""
        return text

    def text(self, source: Any) -> str:
        """Return a source as a line of text; inverse of `parse`."""
        return str(source)

    def length(self, source: Any) -> int:
        """Return the approximate length of a source, for sorting."""
        return len(source)

    def alphabet(self) -> list[str]:
        """Return the names of all tokens of the vocabulary, if it has one."""
        return []

    def token_ids(self, sources: Sequence[Any], spelled: bool) -> list[np.ndarray] | None:
        """Return the token ids of each source, UNK for unreadable tokens; None without tokens.

        spelled: whether the model also reads the characters of words.
        """
        return None

    def knows(self, part: Any) -> bool:
        """Return whether one position of a source, such as a word, is in the vocabulary."""
        return True

    def unknown(self, source: Any, row: np.ndarray | None = None) -> tuple[str, ...]:
        """Return the out-of-vocabulary tokens of a source; row: its ids, if known."""
        return ()


class InputOptions(Options):
    """The options of an input.

    examples: sources that it reads, of different lengths; joint: whether it tokenizes like targets,
    so that both can share a vocabulary.
    """

    examples: ClassVar[tuple[Any, ...]]
    joint: ClassVar[bool] = False
    kind: str

    @classmethod
    def accepts(cls, source: Any) -> bool:
        """Return whether it reads sources like this one."""
        raise NotImplementedError

    def fit(
        self,
        sources: Sequence[Any],
        path: str,
        auto_settings: list[AutoSetting],
        like: Input | None = None,
    ) -> tuple[Input, "InputOptions"]:
        """Return the input for these sources, and its complete options.

        path: of the config section; like: the input of a pretrained model, whose ids are kept.
        """
        raise NotImplementedError

    def load(self, folder: Path) -> Input:
        """Return the input that `save` wrote."""
        raise NotImplementedError
