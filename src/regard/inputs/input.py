"""The interface of inputs, which encode sources of one kind, such as texts, as numbers.

An input is fitted on the training set. To add a kind of input, add a module to this package with
an `Input` and a frontend, and add the options of both to the two unions of `regard.inputs`.
"""

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, ClassVar, NamedTuple, cast

import numpy as np
from typing_extensions import Self

from regard.core.errors import UserError
from regard.core.options import AutoSetting, Options
from regard.data.checks.check_frame import MediaStats
from regard.data.corpus.ragged import Rows
from regard.data.tensors.padded import Padded
from regard.inputs.file_size import FileSize


class InputShape(NamedTuple):
    """The sizes that determine the frontend of an input.

    kind: kind of input. size: vocabulary size, numbers per vector, or channels of an image.
    characters: size of the character vocabulary, if the input consists of words.
    grid: height and width of an image. scale: mean and standard deviation of each number in the
    training set, if the frontend standardizes with them. rate: sampling rate of sounds in Hz.
    bag: for sparse features of nodes, `mean` or `sum` of the vectors of their indices. relations:
    kinds of edges; 0: edges have no kind.
    """

    kind: str
    size: int
    characters: int = 0
    grid: tuple[int, int] = (0, 0)
    scale: tuple[tuple[float, ...], ...] = ()
    rate: int = 0
    bag: str = ""
    relations: int = 0

    @property
    def values(self) -> int:
        """The numbers per vector or image."""
        return self.size * max(1, self.grid[0]) * max(1, self.grid[1])


class NamedSources(NamedTuple):
    """Sources in a file or folder that is no text, read one by one.

    notes: for the user. lines: line of each name in a table; empty for other files.
    """

    names: Sequence[str]
    read: Callable[[str], Any]
    notes: list[str]
    lines: Mapping[str, int] = MappingProxyType({})


class FileColumns(NamedTuple):
    """The columns of a table, or the arrays of a file, that a prediction reads.

    chosen: sources, by the user. trained, speakers: sources and speakers of the training data.
    """

    chosen: str | None = None
    trained: str | None = None
    speakers: str | None = None

    @property
    def sources(self) -> str | None:
        """The column of sources, if one is known."""
        return self.chosen or self.trained


class Input(ABC):
    """Base class of inputs, which encode sources.

    kind: name of the kind, as in the options.
    mismatch: error message if a pretrained model reads another kind.
    sequential: whether a source has several positions.
    whole_words: whether tokens are words or subwords, which determines the default model.
    characters: whether tokens are characters.
    unordered: whether the positions of a source have no order, as the nodes of a graph.
    written: whether `text` contains the entire source; otherwise it is a name, such as a path.
    inspects: views of an inspection that suit these sources: a subset of attention, gates, saliency
    (of each position), picture and sound.
    placeholder: stands for a source in commands that are shown. plural: noun for sources.
    media: MIME types of the files that `decode` reads; empty if sources are texts or numbers.
    """

    kind: ClassVar[str]
    inspects: ClassVar[frozenset[str]] = frozenset({"attention", "gates", "saliency"})
    media: ClassVar[frozenset[str]] = frozenset()
    mismatch: ClassVar[str] = "--init-from: the pretrained model reads another kind of sources"
    sequential: ClassVar[bool] = True
    whole_words: bool = False
    characters: bool = False
    unordered: ClassVar[bool] = False
    written: ClassVar[bool] = True
    placeholder: ClassVar[str] = "TEXT"
    plural: ClassVar[str] = "texts"

    @classmethod
    def like(cls, other: "Input") -> Self:
        """Return `other`, the input of a pretrained model. Raise UserError if its kind differs."""
        if other.kind != cls.kind:
            raise UserError(cls.mismatch)
        return cast(Self, other)

    @property
    @abstractmethod
    def shape(self) -> InputShape:
        """Return the sizes from which a frontend is built."""

    @abstractmethod
    def encode(self, sources: Sequence[Any]) -> Rows:
        """Return the sources as rows of numbers, such as token ids."""

    @abstractmethod
    def names(self, source: Any) -> list[str]:
        """Return a display name for each position of a source."""

    @abstractmethod
    def content(self) -> bytes:
        """Return all data that determines the encoding as bytes, for fingerprints."""

    @abstractmethod
    def save(self, folder: Path) -> None:
        """Write the files that `InputOptions.load` reads."""

    def batch(self, sources: Sequence[Any]) -> Padded:
        """Return the encoded sources as one padded batch."""
        return self.encode(sources).all()

    def parse(self, text: str) -> Any:
        """Return the source that a line of text represents."""
        return text

    def locate(self, text: str, input: str) -> str:
        """Return a line of an input file as a text to parse, such as a path that was relative.

        input: path of the input file.
        """
        return text

    def read_file(self, path: str, columns: FileColumns) -> "NamedSources | None":
        """Return the sources in a file or folder; None if each line of the file is a source."""
        return None

    def media_stats(self, train: Sequence[Any], dev: Sequence[Any]) -> MediaStats | None:
        """Return statistics of sources in files for the data check; None for other sources."""
        return None

    def decode(self, data: bytes, media: str, name: str) -> Any:
        """Return the source in the bytes of a file, as the model reads it.

        media: MIME type, one of `media`. name: of the file, for messages. Raise UserError if the
        file is corrupted, too large or of another type.
        """
        raise UserError(f"{name}: the model reads no files, but texts or numbers")

    def from_value(self, value: Any) -> Any:
        """Return the source that a Python value represents, if sources are files."""
        raise UserError(f"expected a string, found {value!r}")

    def declared_size(self, data: bytes, media: str, name: str) -> FileSize:
        """Return the size of a file by its header; nothing is decoded yet.

        Raise UserError if `decode` would reject the file because of its header.
        """
        raise UserError(f"{name}: the model reads no files, but texts or numbers")

    def reads(self) -> dict[str, Any]:
        """Return what sources are, ready for JSON: the kind, and MIME types of files."""
        return {"kind": self.kind, "media": sorted(self.media)}

    def blank(self) -> Any:
        """Return a source without content, such as a black image."""
        return self.parse("")

    def picture(self, source: Any) -> np.ndarray | None:
        """Return the pixels (H, W, C), uint8, of a source as the model reads it, if it has any."""
        return None

    def display_name(self, text: str) -> str:
        """Return the name in predictions of the source that `text` represents; empty: none."""
        return "" if self.written else text

    def text(self, source: Any) -> str:
        """Return a source as a line of text. Inverse of `parse`."""
        return str(source)

    def length(self, source: Any) -> int:
        """Return the approximate length of a source, for sorting."""
        return len(source)

    def alphabet(self) -> list[str]:
        """Return the names of all tokens in the vocabulary, if there is one."""
        return []

    def token_ids(self, sources: Sequence[Any], spelled: bool) -> list[np.ndarray] | None:
        """Return ids of each source in which UNK marks tokens that the model cannot read.

        Return None if sources have no tokens. spelled: whether the model also reads characters.
        """
        return None

    def knows(self, part: Any) -> bool:
        """Return whether one position of a source, such as a word, is in the vocabulary."""
        return True

    def unknown(self, source: Any, row: np.ndarray | None = None) -> tuple[str, ...]:
        """Return the out-of-vocabulary tokens of a source. row: encoded source, if available."""
        return ()

    def folded(self, source: Any) -> tuple[str, ...]:
        """Return which unknown characters of a source are read as similar ones, as `A → a`."""
        return ()


class InputOptions(Options):
    """Base class of input options.

    examples: example sources of different lengths.
    joint: whether sources are tokenized like targets, so that both can share a vocabulary.
    """

    examples: ClassVar[tuple[Any, ...]]
    joint: ClassVar[bool] = False
    kind: str

    @classmethod
    def accepts(cls, source: Any) -> bool:
        """Return whether this kind of input reads the source."""
        raise NotImplementedError

    def prepare(self, source: Any, changes: Counter[str]) -> Any:
        """Return a source that was read from a file, reduced to what the input reads.

        Data sets thus take less memory. changes: counts what was converted.
        """
        return source

    def fit(
        self,
        sources: Sequence[Any],
        path: str,
        auto_settings: list[AutoSetting],
        like: Input | None = None,
    ) -> tuple[Input, "InputOptions"]:
        """Return the input fitted on these sources, and its options with all values set.

        path: config path of these options, for messages.
        auto_settings: list to which automatic settings are appended.
        like: input of a pretrained model, whose vocabulary is kept.
        """
        raise NotImplementedError

    def load(self, folder: Path) -> Input:
        """Return the input that `Input.save` wrote."""
        raise NotImplementedError
