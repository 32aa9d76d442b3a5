"""Images of one size, as bytes until a batch needs them as numbers.

N images, B rows of a batch, H height, W width, C channels.
"""

import hashlib
from dataclasses import dataclass

import numpy as np
import torch

from regard.data.corpus.ragged import Rows
from regard.data.tensors.padded import Padded


@dataclass(frozen=True)
class ImageRows(Rows):
    """Images (N, H, W, C), uint8. An image counts as one position.

    mean, std: (C,), of each channel, by which a batch is standardized.
    """

    pixels: np.ndarray
    mean: np.ndarray
    std: np.ndarray

    @property
    def lengths(self) -> np.ndarray:  # type: ignore[override]
        return np.ones(len(self.pixels), np.int64)

    def pad(self, rows: np.ndarray) -> Padded:
        """Return the standardized images (B, H, W, C) with mask (B, 1)."""
        data = torch.from_numpy(self.pixels[rows]).float()
        mean, std = (torch.from_numpy(one.astype(np.float32)) for one in (self.mean, self.std))
        return Padded(data.sub_(mean).div_(std), torch.ones(len(data), 1, dtype=torch.bool))

    def row(self, index: int) -> np.ndarray:
        return self.pixels[index : index + 1]

    def take(self, rows: np.ndarray) -> "ImageRows":
        return ImageRows(self.pixels[rows], self.mean, self.std)

    def update(self, digest: "hashlib._Hash") -> None:
        digest.update(repr(self.pixels.shape).encode())
        digest.update(np.ascontiguousarray(self.pixels).data)
