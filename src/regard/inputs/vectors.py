"""Vectors of numbers, sequences of length one: the input `vectors`, and the frontend that reads it.

B rows, F numbers of a vector, D width.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np
from torch import nn

from regard.core.errors import UserError
from regard.core.files import read_fields, write_json
from regard.core.options import AutoSetting
from regard.data.corpus.ragged import Ragged
from regard.data.reading.columns import number
from regard.data.tensors.padded import Padded
from regard.inputs.frontend import Frontend, FrontendOptions
from regard.inputs.input import Input, InputOptions, InputShape
from regard.nn.capture_hooks import record_input


class VectorInput(Input):
    """Vectors, each number shifted and scaled to mean 0 and deviation 1 over the training part."""

    kind = "vectors"
    sequential = False

    def __init__(self, mean: Sequence[float], deviation: Sequence[float]) -> None:
        self.mean = np.asarray(mean, np.float64)
        self.deviation = np.asarray(deviation, np.float64)

    @property
    def shape(self) -> InputShape:
        return InputShape("vectors", len(self.mean))

    def encode(self, sources: Sequence[Any]) -> Ragged:
        """(N, F) numbers around zero, each a row of its own."""
        for place, source in enumerate(sources, 1):
            if isinstance(source, str) or len(source) != len(self.mean):
                found = repr(source) if isinstance(source, str) else len(source)
                raise UserError(f"vector {place}: {len(self.mean)} numbers expected, {found} found")
        rows = np.asarray(sources, np.float64).reshape(len(sources), len(self.mean))
        scaled = ((rows - self.mean) / self.deviation).astype(np.float32)
        return Ragged.from_flat(scaled, np.ones(len(rows), np.int64))

    def names(self, source: Any) -> list[str]:
        """Of each number its place and its value: there is only one position."""
        self.encode([source])  # refuses a vector of another size
        return [f"x{place}={number:.6g}" for place, number in enumerate(source, 1)]

    def text(self, source: Any) -> str:
        return ", ".join(f"{number:.6g}" for number in source)

    def parse(self, text: str) -> tuple[float, ...]:
        """The numbers between commas, semicolons, tabs or spaces."""
        cells = text.replace(",", " ").replace(";", " ").split()
        found = [value for cell in cells if (value := number(cell)) is not None]
        if len(found) != len(cells) or len(found) != len(self.mean):
            raise UserError(
                f"{text!r}: {len(self.mean)} finite numbers expected, separated by commas"
            )
        return tuple(found)

    def length(self, source: Any) -> int:
        return 1

    def content(self) -> bytes:
        return self.mean.tobytes() + self.deviation.tobytes()

    def save(self, place: Path) -> None:
        scale = {"mean": self.mean.tolist(), "deviation": self.deviation.tolist()}
        write_json(place / "input.json", scale)


class Vectors(InputOptions):
    """Vectors of numbers."""

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
        """Fitted to these vectors, or as the weights of a model to start from expect them."""
        count = len(sources[0])
        if like is not None:
            if like.shape != InputShape("vectors", count):
                raise UserError(f"--init-from: that model does not read vectors of {count} numbers")
            return like, self
        mean, deviation = standard(np.asarray(sources, np.float64))
        return VectorInput(mean.tolist(), deviation.tolist()), self

    def load(self, place: Path) -> VectorInput:
        return VectorInput(*read_fields(place / "input.json", "mean", "deviation"))


def standard(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean and deviation of each column; the deviation of a constant one is 1."""
    mean, deviation = rows.mean(0), rows.std(0)
    return mean, np.where(deviation > 1e-12 * np.maximum(1, np.abs(mean)), deviation, 1.0)


class VectorFrontend(Frontend):
    """Vectors as they are, or mapped to the width of the encoder."""

    def __init__(self, adapt: nn.Module, width: int) -> None:
        super().__init__()
        self.adapt = adapt
        self.width = width

    def forward(self, source: Padded) -> Padded:
        """(B, S, F) to (B, S, D)."""
        return source._replace(data=self.adapt(record_input(self, source.data)))


class Mapped(FrontendOptions):
    """Vectors through a linear map, or as they are to encoders that take any width."""

    reads: ClassVar[str] = "vectors"
    kind: Literal["vectors"] = "vectors"

    def build(
        self, shape: InputShape, width: int, scale: float, dropout: float, direct: bool
    ) -> VectorFrontend:
        if direct:
            return VectorFrontend(nn.Identity(), shape.size)
        return VectorFrontend(nn.Linear(shape.size, width), width)
