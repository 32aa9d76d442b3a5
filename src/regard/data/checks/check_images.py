"""Check images before training: sizes, channels, constant images and copies."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from regard.core.formatting import count_noun, size
from regard.data.checks.check_frame import MediaStats
from regard.data.checks.copies import copy_warnings, find_copies
from regard.data.reading.images import Image

MAX_SIZES = 5  # sizes that the report lists


@dataclass
class ImageStats(MediaStats):
    """Statistics of the images of the training and the dev set, each image counted once.

    sizes: number of images by height and width. mean, std: of each channel, from 0 to 255.
    constant: images whose pixels are all equal. copies: images that equal an earlier image of the
    training set. overlap: dev images that equal a training image. first_*: names of the first.
    """

    images: int
    dev_images: int
    sizes: dict[str, int]
    channels: dict[int, int]
    mean: list[float]
    std: list[float]
    constant: int
    first_constant: str
    copies: int
    first_copy: list[str]
    overlap: int
    first_overlap: list[str]
    bytes: int

    def rows(self) -> list[tuple[str, str]]:
        sizes = [f"{name} ({count:,})" for name, count in self.sizes.items()]
        more = f" and {len(sizes) - MAX_SIZES} more" if len(sizes) > MAX_SIZES else ""
        channels = [f"{number} ({count:,})" for number, count in self.channels.items()]
        return [
            ("height x width", ", ".join(sizes[:MAX_SIZES]) + more),
            ("channels", ", ".join(channels)),
            ("mean (0 to 255)", _numbers(self.mean)),
            ("standard deviation", _numbers(self.std)),
            ("constant images", f"{self.constant:,}"),
            ("copies in train", f"{self.copies:,}"),
            ("dev images in train", f"{self.overlap:,} of {self.dev_images:,}"),
            ("memory", size(self.bytes)),
        ]

    def warnings(self) -> list[str]:
        found = []
        if self.constant:
            count = count_noun(self.constant, "constant image")
            found.append(f"{count} (all pixels are equal), first: {self.first_constant}")
        found += copy_warnings(
            "image",
            *(self.copies, self.first_copy, self.overlap, self.first_overlap, self.dev_images),
        )
        return found


def image_stats(
    train: Sequence[Image], dev: Sequence[Image], mean: Sequence[float], std: Sequence[float]
) -> ImageStats:
    """Return the statistics of images. mean, std: of each channel of the training set."""
    images, held = ({image.name: image for image in some} for some in (train, dev))
    copies, overlap = find_copies(images, held)
    constant = [image.name for image in images.values() if image.pixels.min() == image.pixels.max()]
    shapes = [image.shape for image in images.values()]
    sizes = Counter(f"{height}x{width}" for height, width, _ in shapes)
    return ImageStats(
        images=len(images),
        dev_images=len(held),
        sizes=dict(sizes.most_common()),
        channels=dict(Counter(channels for _, _, channels in shapes).most_common()),
        mean=[round(float(one), 4) for one in mean],
        std=[round(float(one), 4) for one in std],
        constant=len(constant),
        first_constant=constant[0] if constant else "",
        copies=len(copies),
        first_copy=copies[0] if copies else [],
        overlap=len(overlap),
        first_overlap=overlap[0] if overlap else [],
        bytes=sum(image.nbytes for image in [*images.values(), *held.values()]),
    )


def _numbers(values: Sequence[float]) -> str:
    return ", ".join(f"{value:.1f}" for value in values)
