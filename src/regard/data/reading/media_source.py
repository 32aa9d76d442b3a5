"""Sources that are files or arrays instead of texts or numbers, such as images and sounds."""

from abc import ABC, abstractmethod


class MediaSource(ABC):
    """A source that is not a text. Two with the same content are equal, whatever their names.

    name: for messages. `repr` must depend only on the content, since it determines the split into
    training and dev set.
    """

    name: str

    @property
    @abstractmethod
    def digest(self) -> bytes:
        """Return a hash of the content."""

    @property
    @abstractmethod
    def nbytes(self) -> int:
        """Return the size in memory."""

    @abstractmethod
    def __len__(self) -> int:
        """Return the number of values, such as samples."""

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and self.digest == other.digest

    def __hash__(self) -> int:
        return int.from_bytes(self.digest[:8], "little")

    def __str__(self) -> str:
        return self.name
