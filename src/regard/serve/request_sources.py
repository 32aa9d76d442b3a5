"""The sources in a request: texts, and files as base64. They are read when their batch runs."""

import base64
import binascii
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from regard.core.errors import UserError
from regard.inputs.file_size import FileSize
from regard.serve.api_errors import MAX_SHOWN, ApiError, shorten
from regard.serve.schemas import FileSchema
from regard.serve.served_models import ServedModel

VALUES_PER_COST = 1_000  # pixels or samples that cost as much as one step of a hypothesis


class RequestSource(Protocol):
    """A source of a request, not read yet.

    where: its path in a request with several sources, otherwise empty. cost: work to read it.
    Its length is about that of the row in a batch.
    """

    @property
    def where(self) -> str: ...

    @property
    def cost(self) -> int: ...

    def __len__(self) -> int: ...

    def read(self, task: Any) -> Any:
        """Return the source for the model."""


@dataclass(frozen=True)
class TextSource:
    """A text in the format of one line of an input file."""

    text: str
    where: str = ""

    @property
    def cost(self) -> int:
        return len(self.text) + 1

    def __len__(self) -> int:
        return len(self.text)

    def read(self, task: Any) -> Any:
        """Return the text as the task parses it."""
        return task.parse(self.text)


@dataclass(frozen=True)
class FileSource:
    """A file of a MIME type, and its size by its header."""

    data: bytes
    media: str
    where: str
    size: FileSize

    @property
    def cost(self) -> int:
        return 1 + (self.size.values + self.size.row) // VALUES_PER_COST

    def __len__(self) -> int:
        return self.size.length

    def read(self, task: Any) -> Any:
        """Return the decoded file. Raise UserError if it is corrupted."""
        return task.source.decode(self.data, self.media, self.where)


def request_sources(
    texts: Sequence[str] | None,
    files: Sequence[FileSchema] | None,
    model: ServedModel,
    max_values: int,
    fields: tuple[str, str] = ("texts", "inputs"),
) -> list[RequestSource]:
    """Return the sources of a request. Raise ApiError unless they are what the model reads.

    max_values: maximum pixels or samples of a file. fields: names of texts and files in the body.
    """
    if (texts is None) == (files is None):
        found = "neither" if texts is None else "both"
        raise ApiError(
            422,
            f"{fields[0]}: expected either {fields[0]} or {fields[1]}, found {found}",
            fields[0],
        )
    media = model.task.source.media
    if texts is not None:
        if media:
            raise ApiError(
                422,
                f"{fields[0]}: model {model.name} reads files ({', '.join(sorted(media))}), not "
                f'texts; send {fields[1]}, each as {{"data": BASE64, "type": MIME_TYPE}}',
                fields[0],
            )
        return [
            TextSource(text, f"{fields[0]}.{index}" if len(texts) > 1 else "")
            for index, text in enumerate(texts)
        ]
    assert files is not None
    if not media:
        raise ApiError(
            422, f"{fields[1]}: model {model.name} reads texts; send {fields[0]}", fields[1]
        )
    is_list = fields[1] == "inputs"
    return [
        _file_source(file, f"{fields[1]}.{index}" if is_list else fields[1], model, max_values)
        for index, file in enumerate(files)
    ]


def _file_source(file: FileSchema, where: str, model: ServedModel, max_values: int) -> FileSource:
    """Return a file of a request. Only its header is read."""
    source = model.task.source
    if file.type not in source.media:
        raise ApiError(
            422,
            f"{where}.type: expected {', '.join(sorted(source.media))}, found "
            f"{shorten(file.type, MAX_SHOWN)!r}",
            f"{where}.type",
        )
    try:
        data = base64.b64decode(file.data.encode("ascii"), validate=True)
    except (binascii.Error, UnicodeEncodeError) as error:
        raise ApiError(
            422,
            f"{where}.data: expected the bytes of a file in base64 (RFC 4648, without a data: "
            f"prefix): {shorten(str(error), MAX_SHOWN)}",
            f"{where}.data",
        ) from None
    try:
        size = source.declared_size(data, file.type, where)
    except UserError as error:
        raise ApiError(422, shorten(str(error)), f"{where}.data") from None
    if size.values > max_values:
        raise ApiError(
            422,
            f"{where}: expected at most {max_values:,} pixels or samples, found {size.values:,}; "
            "send a smaller file, or raise the limit with regard serve --max-file-values",
            f"{where}.data",
        )
    return FileSource(data, file.type, where, size)
