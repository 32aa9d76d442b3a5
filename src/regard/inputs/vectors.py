"""Vectors as sequences of length one: the input `vectors` and its frontend.

N vectors, B rows of a batch, S = 1 length, F numbers per vector, D width.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np
from torch import nn

from regard.core.errors import UserError
from regard.core.field_types import Deviations, Numbers
from regard.core.files import corrupted, read_fields, write_json
from regard.core.options import AutoSetting
from regard.data.corpus.ragged import Ragged
from regard.data.reading.columns import number
from regard.data.tensors.padded import Padded
from regard.inputs.frontend import Frontend, FrontendOptions
from regard.inputs.input import Input, InputOptions, InputShape
from regard.nn.capture_hooks import record_input


class VectorInput(Input):
    """Vectors of numbers, standardized to mean 0 and standard deviation 1 on the training set."""

    kind = "vectors"
    sequential = False
    inspects = frozenset({"saliency"})
    plural = "vectors"

    def __init__(self, mean: Sequence[float], std: Sequence[float]) -> None:
        self.mean = np.asarray(mean, np.float64)
        self.std = np.asarray(std, np.float64)

    @property
    def shape(self) -> InputShape:
        return InputShape("vectors", len(self.mean))

    def encode(self, sources: Sequence[Any]) -> Ragged:
        """Return the standardized numbers (N, F) of N vectors."""
        for index, source in enumerate(sources, 1):
            if isinstance(source, str) or len(source) != len(self.mean):
                found = repr(source) if isinstance(source, str) else len(source)
                raise UserError(f"vector {index}: expected {len(self.mean)} numbers, found {found}")
        rows = np.asarray(sources, np.float64).reshape(len(sources), len(self.mean))
        with np.errstate(over="ignore"):
            scaled = ((rows - self.mean) / self.std).astype(np.float32)
        if len(bad := np.argwhere(~np.isfinite(scaled))):
            index, column = bad[0]
            raise UserError(
                f"vector {index + 1}: expected numbers like those in training, found "
                f"{rows[index, column]:g} (number {column + 1})"
            )
        return Ragged.from_flat(scaled, np.ones(len(rows), np.int64))

    def names(self, source: Any) -> list[str]:
        """Return the index and value of each number, although a vector is only one position."""
        self.encode([source])  # raises UserError for a wrong size
        return [f"x{index}={value:.6g}" for index, value in enumerate(source, 1)]

    def text(self, source: Any) -> str:
        return ", ".join(f"{number:.6g}" for number in source)

    def parse(self, text: str) -> tuple[float, ...]:
        """Return the numbers of a line, separated by commas, semicolons, tabs or spaces."""
        cells = text.replace(",", " ").replace(";", " ").split()
        found = [value for cell in cells if (value := number(cell)) is not None]
        if len(found) != len(cells) or len(found) != len(self.mean):
            raise UserError(
                f"{text!r}: expected {len(self.mean)} finite numbers, separated by commas"
            )
        return tuple(found)

    def length(self, source: Any) -> int:
        return 1

    def content(self) -> bytes:
        return self.mean.tobytes() + self.std.tobytes()

    def save(self, folder: Path) -> None:
        scale = {"mean": self.mean.tolist(), "std": self.std.tolist()}
        write_json(folder / "input.json", scale)


class Vectors(InputOptions):
    """Options of the input `vectors`."""

    examples: ClassVar[tuple[Any, ...]] = ((0.5, -1.25), (2.0, 0.0), (1.5, 3.0))
    kind: Literal["vectors"] = "vectors"

    @classmethod
    def accepts(cls, source: Any) -> bool:
        return isinstance(source, tuple) and all(isinstance(one, float | int) for one in source)

    def fit(
        self,
        sources: Sequence[Any],
        path: str,
        auto_settings: list[AutoSetting],
        like: Input | None = None,
    ) -> tuple[Input, "Vectors"]:
        """Return `like`, the input of a pretrained model, or an input fitted on these vectors."""
        count = len(sources[0])
        if like is not None:
            if like.shape != InputShape("vectors", count):
                raise UserError(
                    f"--init-from: the pretrained model does not read vectors of {count} numbers"
                )
            return like, self
        mean, std = standard(np.asarray(sources, np.float64))
        return VectorInput(mean.tolist(), std.tolist()), self

    def load(self, folder: Path) -> VectorInput:
        path = folder / "input.json"
        mean, std = read_fields(path, mean=Numbers, std=Deviations)
        if len(mean) != len(std):
            raise corrupted(path, "mean and std have different lengths")
        return VectorInput(mean, std)


def standard(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return mean and standard deviation per column. A constant column gets deviation 1.

    Raise UserError if they overflow.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        mean, std = rows.mean(0), rows.std(0)
    if not (np.isfinite(mean).all() and np.isfinite(std).all()):
        raise UserError(
            f"expected finite numbers, found {rows.flat[np.abs(rows).argmax()]:g}: too large to "
            "standardize",
            help="fix or rescale the numbers",
        )
    return mean, np.where(std > 1e-12 * np.maximum(1, np.abs(mean)), std, 1.0)


class VectorFrontend(Frontend):
    """A frontend that returns vectors unchanged or projected to the width of the encoder."""

    one_shape: ClassVar[bool] = True

    def __init__(self, adapt: nn.Module, width: int) -> None:
        super().__init__()
        self.adapt = adapt
        self.width = width

    def forward(self, source: Padded) -> Padded:
        """Return the vectors (B, S, D) for vectors (B, S, F)."""
        return source._replace(data=self.adapt(record_input(self, source.data)))


class VectorFrontendOptions(FrontendOptions):
    """Options of the frontend of vectors, which projects them unless the encoder is `direct`."""

    reads: ClassVar[str] = "vectors"
    kind: Literal["vectors"] = "vectors"

    def build(
        self, shape: InputShape, width: int, scale: float, dropout: float, direct: bool
    ) -> VectorFrontend:
        if direct:
            return VectorFrontend(nn.Identity(), shape.size)
        return VectorFrontend(nn.Linear(shape.size, width), width)
