"""Images of one size: the input `image`. Its frontends are in `image_frontends.py`.

N images, H height, W width, C channels.
"""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from pydantic import BeforeValidator, Field

from regard.core.errors import UserError
from regard.core.field_types import Deviations, Numbers
from regard.core.files import corrupted, read_fields, write_json
from regard.core.options import AutoSetting
from regard.data.checks.check_images import ImageStats, image_stats
from regard.data.corpus.image_rows import ImageRows
from regard.data.reading.idx import is_idx, read_arrays
from regard.data.reading.image_arrays import is_npz
from regard.data.reading.image_files import IMAGES, read_image
from regard.data.reading.image_media import MEDIA
from regard.data.reading.images import (
    MAX_SIDE,
    Image,
    from_array,
    show_channels,
    show_shape,
    show_size,
)
from regard.data.reading.media import show_names
from regard.data.reading.media_table import locate
from regard.data.reading.pillow_images import convert, decode_image, open_image
from regard.inputs.file_size import FileSize
from regard.inputs.input import FileColumns, Input, InputOptions, InputShape, NamedSources
from regard.inputs.media_files import media_sources

Side = Annotated[int, Field(gt=0, le=MAX_SIDE)]
Channels = Literal[1, 2, 3, 4]
VALUES_PER_POSITION = 4_096  # that take as much memory as one token
FIELDS = {  # fields of input.json and their types
    "size": Annotated[list[Side], Field(min_length=2, max_length=2)],
    "channels": Channels,
    "mean": Numbers,
    "std": Deviations,
    "resizes": bool,
    "recolors": bool,
}


class ImageInput(Input):
    """Images, standardized per channel with mean and standard deviation of the training set.

    size: height and width. resizes, recolors: whether images of another size, or with other
    channels, are converted instead of rejected.
    """

    kind = "image"
    sequential = False
    written = False
    inspects = frozenset({"attention", "gates", "picture", "saliency"})
    placeholder = "FILE"
    plural = "images"
    media = frozenset(MEDIA)

    def __init__(
        self,
        size: Sequence[int],
        channels: int,
        mean: Sequence[float],
        std: Sequence[float],
        resizes: bool = False,
        recolors: bool = False,
    ) -> None:
        self.size, self.channels = (size[0], size[1]), channels
        self.mean, self.std = np.asarray(mean, np.float64), np.asarray(std, np.float64)
        self.resizes, self.recolors = resizes, recolors

    @property
    def shape(self) -> InputShape:
        return InputShape("image", self.channels, grid=self.size)

    def encode(self, sources: Sequence[Any]) -> ImageRows:
        """Return the pixels (N, H, W, C) of N images."""
        if not len(sources):
            return ImageRows(
                np.zeros((0, *self.size, self.channels), np.uint8), self.mean, self.std
            )
        pixels = np.stack([self._fitted(source).pixels for source in sources])
        return ImageRows(pixels, self.mean, self.std)

    def _fitted(self, source: Any) -> Image:
        """Return an image with the size and channels of this input, converted if that is set."""
        if not isinstance(source, Image):
            raise UserError(f"expected an image, found {source!r:.80}")
        expected = (*self.size, self.channels)
        if source.shape == expected:
            return source
        if source.shape[:2] != self.size and not self.resizes:
            raise other_shape(source, expected, "as in training", "size")
        if source.shape[2] != self.channels and not self.recolors:
            raise other_shape(source, expected, "as in training", "channels")
        return convert(source, self.size, self.channels)

    def names(self, source: Any) -> list[str]:
        """Return the name of the image, which is one position."""
        return [self.text(self._fitted(source))]

    def parse(self, text: str) -> Image:
        """Return the image in the file with this path, as this input reads it."""
        return self._fitted(read_image(text))

    def locate(self, text: str, input: str) -> str:
        return str(locate(text, input))

    def read_file(self, path: str, columns: FileColumns) -> NamedSources | None:
        """Return the images of a folder, an NPZ or IDX file, a table, or an image file."""
        if is_npz(path) or is_idx(path):
            images, notes = read_arrays(path, columns.chosen, columns.trained)
            by_name = {image.name: image for image in images}
            return NamedSources([*by_name], lambda name: self._fitted(by_name[name]), notes)
        return media_sources(path, columns.sources, IMAGES, self.parse)

    def media_stats(self, train: Sequence[Any], dev: Sequence[Any]) -> ImageStats:
        return image_stats(train, dev, self.mean.tolist(), self.std.tolist())

    def decode(self, data: bytes, media: str, name: str) -> Image:
        """Return the image in the bytes of a file, with the size and channels of this input."""
        return self._fitted(decode_image(data, name, media=media))

    def from_value(self, value: Any) -> Image:
        """Return the image of an array, of an image of Pillow, or of an `Image`."""
        image = value if isinstance(value, Image) else from_array(value, "image")
        return self._fitted(image)

    def declared_size(self, data: bytes, media: str, name: str) -> FileSize:
        opened, row = open_image(data, name, media), self.shape.values
        return FileSize(int(opened.height * opened.width), row, row // VALUES_PER_POSITION)

    def picture(self, source: Any) -> np.ndarray:
        return self._fitted(source).pixels

    def reads(self) -> dict[str, Any]:
        height, width = self.size
        sizes = {"height": height, "width": width, "channels": self.channels}
        return super().reads() | sizes | {"mean": self.mean.round(1).tolist()}

    def blank(self) -> Image:
        return Image(np.zeros((*self.size, self.channels), np.uint8), "blank")

    def length(self, source: Any) -> int:
        """Return 1 for small images, more for large ones, so that batches fit in memory."""
        return max(1, len(source) // VALUES_PER_POSITION)

    def content(self) -> bytes:
        return repr(
            [getattr(self, name) for name in ("size", "channels", "resizes", "recolors")]
        ).encode() + (self.mean.tobytes() + self.std.tobytes())

    def save(self, folder: Path) -> None:
        scale = {"mean": self.mean.tolist(), "std": self.std.tolist()}
        write_json(folder / "input.json", {name: getattr(self, name) for name in FIELDS} | scale)


def other_shape(
    image: Image, expected: tuple[int, int, int], where: str, setting: str
) -> UserError:
    """Return the error for an image of another shape. where: where the expected shape occurs."""
    size = f"{expected[0]},{expected[1]}" if setting == "size" else expected[2]
    return UserError(
        f"{image.name}: expected {show_shape(expected)} {where}, found {show_shape(image.shape)}",
        help=f"convert the image, or train with --set task.source.{setting}={size} to convert all "
        "images",
    )


def check_same(images: Sequence[Image], setting: str, values: Sequence[str]) -> None:
    """Raise UserError unless all values are the same. values: size or channels of each image."""
    counts = Counter(values).most_common()
    if len(counts) == 1:
        return
    (usual, count), bad = counts[0], next(n for n, one in enumerate(values) if one != counts[0][0])
    shown = [f"{value} ({number:,})" for value, number in counts]
    error = other_shape(
        images[bad],
        images[values.index(usual)].shape,
        f"as {count:,} of {len(images):,} images",
        setting,
    )
    note = f"found {show_names(shown, 10)}"
    raise UserError(error.message, note=note, help=error.help)


def _parse_size(value: Any) -> Any:
    """Return height and width of a setting such as `28,32`, or `28` for a square."""
    if isinstance(value, int) and not isinstance(value, bool):
        return value, value
    if isinstance(value, str) and all(one.strip().isdecimal() for one in value.split(",")):
        return tuple(map(int, value.split(",")))
    return value


class Images(InputOptions):
    """Options of the input `image`."""

    examples: ClassVar[tuple[Any, ...]] = tuple(
        Image(
            (np.arange(36 * 3, dtype=np.int64) * step % 256).astype(np.uint8).reshape(6, 6, 3), "e"
        )
        for step in (7, 31, 97)
    )
    kind: Literal["image"] = "image"
    size: Annotated[tuple[Side, Side] | None, BeforeValidator(_parse_size)] = Field(
        None,
        description="height and width to which images are resized, as 64,64 or 64; None: all have "
        "one size",
    )
    channels: Literal[1, 3] | None = Field(
        None, description="convert to grayscale (1) or RGB (3); None: all have the same channels"
    )

    @classmethod
    def accepts(cls, source: Any) -> bool:
        return isinstance(source, Image)

    def prepare(self, source: Any, changes: Counter[str]) -> Any:
        size, channels = self.size or source.shape[:2], self.channels or source.shape[2]
        if source.shape == (*size, channels):
            return source
        found = convert(source, size, channels)
        changes.update(found.changes[len(source.changes) :])
        return found

    def fit(
        self,
        sources: Sequence[Any],
        path: str,
        auto_settings: list[AutoSetting],
        like: Input | None = None,
    ) -> tuple[Input, "Images"]:
        """Return `like`, the input of a pretrained model, or an input fitted on these images."""
        if like is not None:
            return ImageInput.like(like), self
        first: Image = sources[0]
        if self.size is None:
            check_same(sources, "size", [show_size(image.shape) for image in sources])
        if self.channels is None:
            check_same(sources, "channels", [show_channels(image.shape) for image in sources])
        size, channels = self.size or first.shape[:2], self.channels or first.shape[2]
        empty = ImageInput(
            *(size, channels, [0.0] * channels, [1.0] * channels),
            *(self.size is not None, self.channels is not None),
        )
        mean, std = channel_stats(empty, sources)
        return (
            ImageInput(size, channels, mean.tolist(), std.tolist(), empty.resizes, empty.recolors),
            self,
        )

    def load(self, folder: Path) -> ImageInput:
        path = folder / "input.json"
        found = dict(zip(FIELDS, read_fields(path, **FIELDS), strict=True))
        if not len(found["mean"]) == len(found["std"]) == found["channels"]:
            raise corrupted(path, "mean and std: expected one number per channel")
        return ImageInput(**found)


def channel_stats(source: ImageInput, images: Sequence[Image]) -> tuple[np.ndarray, np.ndarray]:
    """Return mean and standard deviation (C,) of each channel; deviation 1 if it is constant."""
    counts = np.zeros((source.channels, 256))
    for start in range(0, len(images), 1024):
        pixels = source.encode(images[start : start + 1024]).pixels
        for channel in range(source.channels):
            counts[channel] += np.bincount(pixels[..., channel].ravel(), minlength=256)
    values, total = np.arange(256), counts.sum(1)
    mean = counts @ values / total
    std = np.sqrt((counts * (values - mean[:, None]) ** 2).sum(1) / total)
    return mean, np.where(std > 1e-9, std, 1.0)
