"""The interface of positional encodings.

Shapes: B batch size, T length, S positions attended to, D width, H heads, K head width.
"""

from typing import ClassVar, Literal

from torch import Tensor, nn

from regard.core.options import Options


class Position(nn.Module):
    """Base class of positional encodings, and the encoding without positions.

    Without positions, only the causal mask reveals the order. A stack of layers has one encoding,
    with three methods that do nothing unless overridden: `embed`, `rotate` and `bias`.
    rotates, biases: whether `rotate` and `bias` do anything.
    every_layer: whether `embed` is called before each layer, not only before the first.
    adds: whether the encoding only adds a vector per position before the first layer, which the
    fused step (`nn.fused`) supports. Not inherited (see `claim`).
    length: the maximum length. None: unlimited.
    """

    adds: ClassVar[bool] = True
    rotates: ClassVar[bool] = False
    biases: ClassVar[bool] = False
    every_layer: ClassVar[bool] = False
    length: int | None = None

    def embed(self, x: Tensor, at: int, layer: int = 0) -> Tensor:
        """Return x (B, T, D) with positions added. `at` is the position of the first token."""
        return x

    def rotate(self, q: Tensor, k: Tensor, at: int) -> tuple[Tensor, Tensor]:
        """Return queries and keys (B, H, T, K), rotated by their positions, which start at `at`."""
        return q, k

    def bias(self, q: Tensor, at_q: Tensor, at_k: Tensor) -> Tensor | None:
        """Return the bias (B|1, H, T, S) of scores, for positions at_q (T,) and at_k (B|1, S).

        It depends only on q and on the differences of positions.
        """
        return None


def differences(at_q: Tensor, at_k: Tensor) -> Tensor:
    """Return the position of each key minus that of each query, (B|1, T, S)."""
    return at_k[:, None, :] - at_q[None, :, None]


def table_size(length: int, least: int = 256) -> int:
    """Return the number of rows of a table for this length, so that it is rarely computed again."""
    return max(least, 1 << (length - 1).bit_length())


class PositionOptions(Options):
    """Base class of position options. rotates, biases: as in the `Position` that they build.

    ordered: whether the encoding distinguishes positions.
    """

    exports: ClassVar[frozenset[str]] = frozenset()
    ordered: ClassVar[bool] = True
    rotates: ClassVar[bool] = False
    biases: ClassVar[bool] = False
    kind: str

    def build(self, width: int, heads: int, causal: bool = False) -> Position:
        """Return the positional encoding of a stack of layers. causal: of a decoder."""
        raise NotImplementedError

    def problem(self, width: int, heads: int) -> str | None:
        """Return why the encoding does not support these sizes, or None."""
        return None


class NoPositions(PositionOptions):
    """No positions: for inputs without order."""

    exports: ClassVar[frozenset[str]] = frozenset({"onnx", "ctranslate2"})
    ordered: ClassVar[bool] = False
    kind: Literal["none"] = "none"

    def build(self, width: int, heads: int, causal: bool = False) -> Position:
        return Position()
