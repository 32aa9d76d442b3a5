"""The size of a file by its header, which determines its cost and whether it is read."""

from typing import NamedTuple


class FileSize(NamedTuple):
    """What reading a file takes.

    values: pixels or samples, as stored or as converted. row: numbers that the model reads.
    length: about that of the row in a batch.
    """

    values: int
    row: int
    length: int
