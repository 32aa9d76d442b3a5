"""The EncoderModel: a label for each position, or one answer for the whole row.

B rows, S length, D width, C outputs.
"""

from collections.abc import Iterator
from typing import Any, ClassVar, Literal

import torch
from pydantic import Field
from torch import Tensor, nn

from regard.core.data_stats import DataStats
from regard.core.errors import UserError
from regard.core.options import AutoSetting
from regard.data.tensors.padded import Batch, Outputs, Padded
from regard.inputs.input import InputShape
from regard.models.contracts import build_frontend
from regard.models.encoders import SourceModelOptions
from regard.nn.ablation import zero_ablated
from regard.nn.capture_hooks import record_attention


class EncoderModel(nn.Module):
    """Frontend, encoder, a pool where one answer is wanted, and a head."""

    def __init__(
        self, frontend: nn.Module, encoder: nn.Module, pool: nn.Module, head: nn.Module
    ) -> None:
        super().__init__()
        self.frontend = frontend
        self.encoder = encoder
        self.pool = pool
        self.head = head

    def forward(self, batch: Batch) -> Outputs:
        """The scores of all labels."""
        return self.head(self.pool(self.encoder(self.frontend(batch.source))))


class Each(nn.Module):
    """No pool: every position goes on."""

    def forward(self, encoded: Padded) -> Tensor:
        """(B, S, D)."""
        return encoded.data


class Pool(nn.Module):
    """The contract: one vector per row, (B, S, D) to (B, D)."""

    def __init__(self, width: int) -> None:
        super().__init__()

    def forward(self, encoded: Padded) -> Tensor:
        """(B, S, D) to (B, D)."""
        raise NotImplementedError


class MeanPool(Pool):
    """The mean over all positions."""

    def forward(self, encoded: Padded) -> Tensor:
        real = encoded.mask.unsqueeze(-1)  # (B, S, 1)
        return (encoded.data * real).sum(1) / real.sum(1)


class MaxPool(Pool):
    """The largest value over all positions."""

    def forward(self, encoded: Padded) -> Tensor:
        real = encoded.mask.unsqueeze(-1)
        return encoded.data.masked_fill(~real, float("-inf")).amax(1)


class FirstPool(Pool):
    """The vector of the first position."""

    def forward(self, encoded: Padded) -> Tensor:
        return encoded.data[:, 0]


class LastPool(Pool):
    """The vector of the last position; of two directions each at its own end."""

    def forward(self, encoded: Padded) -> Tensor:
        if encoded.summary is not None:
            return encoded.summary
        width = encoded.data.shape[-1]
        last = (encoded.mask.sum(1) - 1)[:, None, None].expand(-1, 1, width)
        return encoded.data.gather(1, last).squeeze(1)


class AttentionPool(Pool):
    """A weighted mean that is learned: softmax over v . tanh(W h) (Yang et al. 2016, eq. 5-7)."""

    heads = 1

    def __init__(self, width: int) -> None:
        super().__init__(width)
        self.weigh = nn.Sequential(nn.Linear(width, width), nn.Tanh(), nn.Linear(width, 1))

    def forward(self, encoded: Padded) -> Tensor:
        x, real = encoded.data, encoded.mask.unsqueeze(-1)  # (B, S, D), (B, S, 1)
        weight = self.weigh(x).masked_fill(~real, float("-inf")).softmax(1)  # (B, S, 1)
        record_attention(self, lambda: weight.transpose(1, 2).unsqueeze(1), at="itself")
        return zero_ablated(self, (x * weight).sum(1, keepdim=True)).squeeze(1)


PoolKind = Literal["mean", "max", "last", "first", "attention"]
POOLS: dict[PoolKind, type[Pool]] = {
    "mean": MeanPool,
    "max": MaxPool,
    "last": LastPool,
    "first": FirstPool,
    "attention": AttentionPool,
}


class LabelHead(nn.Module):
    """Each label on its own: a linear map."""

    def __init__(self, width: int, outputs: int) -> None:
        super().__init__()
        self.linear = nn.Linear(width, outputs)
        nn.init.zeros_(self.linear.bias)

    def forward(self, h: Tensor) -> Outputs:
        """(..., D) to (..., C)."""
        return Outputs(self.linear(h))


class CrfHead(nn.Module):
    """A linear map, and a score for each pair of neighboring labels (Lample et al. 2016)."""

    def __init__(self, width: int, outputs: int) -> None:
        super().__init__()
        self.linear = nn.Linear(width, outputs)
        self.transitions = nn.Parameter(0.01 * torch.randn(outputs + 1, outputs + 1))
        nn.init.zeros_(self.linear.bias)

    def forward(self, h: Tensor) -> Outputs:
        """(B, S, D) to (B, S, C)."""
        return Outputs(self.linear(h), transitions=self.transitions)


class TaggerOptions(SourceModelOptions):
    """A label for each position."""

    gives: ClassVar[str] = "labels"
    head: Literal["softmax", "crf"] = Field(
        "softmax", description="independent labels (softmax) or the best label sequence (crf)"
    )

    def describe(self) -> list[dict[str, Any]]:
        head = [{"part": "head", "kind": "crf"}] if self.head == "crf" else []
        return [*super().describe(), *head]

    def usual_kind(self, stats: DataStats) -> tuple[str, str]:
        return "recurrent", "an LSTM from both ends learns tags soonest"

    def usual_width(self, stats: DataStats) -> int:
        return 256

    def usual_dropout(self, stats: DataStats, passes: float) -> float:
        return 0.33

    def build(self, shape: InputShape, outputs: int) -> EncoderModel:
        """The model of such sources for so many labels."""
        encoder: Any = self.encoder  # sizes must be filled
        # The order in which parts draw their first weights is part of a model.
        frontend = build_frontend(self.frontend, encoder, shape)
        width = encoder.output(frontend.width)
        head = (CrfHead if self.head == "crf" else LabelHead)(width, outputs)
        return EncoderModel(frontend, encoder.build(frontend.width), Each(), head)


class PooledOptions(SourceModelOptions):
    """One answer for the whole row."""

    gives: ClassVar[str] = "labels"
    pooling: PoolKind | None = Field(None, description="pooling of the vectors of a row into one")

    def describe(self) -> list[dict[str, Any]]:
        return [
            *super().describe(),
            *([{"part": "pool", "kind": self.pooling}] if self.pooling else []),
        ]

    def usual_kind(self, stats: DataStats) -> tuple[str, str]:
        if stats.vectors:
            return "mlp", "vectors of numbers"
        return "window", "phrases decide, wherever they stand"

    def usual_width(self, stats: DataStats) -> int:
        return 64 if stats.vectors else super().usual_width(stats)

    def usual_dropout(self, stats: DataStats, passes: float) -> float:
        texts = stats.labels and not stats.vectors
        return 0.33 if texts else super().usual_dropout(stats, passes)

    def usual_tokens(self, stats: DataStats) -> int:
        if stats.vectors:
            return 32 if stats.examples < 10_000 else 256
        return super().usual_tokens(stats)

    def few_epochs(self, stats: DataStats) -> float | None:
        """Passes over texts with one answer each: they are soon known by heart."""
        return None if stats.vectors else max(3.0, min(8.0, round(1_000_000 / stats.tokens)))

    def propose(self, stats: DataStats, config: Any) -> Iterator[AutoSetting]:
        yield from super().propose(stats, config)
        if self.is_sized:
            yield from self.auto_settings(stats.reason, pooling=self.sides["encoder"].usual_pool)

    def build(self, shape: InputShape, outputs: int) -> EncoderModel:
        """The model of such sources for so many outputs."""
        encoder: Any = self.encoder  # sizes must be filled
        assert self.pooling
        if shape.kind == "text" and self.pooling in encoder.blind:
            raise UserError(
                f"model.pooling={self.pooling}: with this encoder that token knows nothing of the "
                "others, so every text would get the same answer; choose mean, max or attention"
            )
        frontend = build_frontend(self.frontend, encoder, shape)
        body, width = encoder.build(frontend.width), encoder.output(frontend.width)
        return EncoderModel(frontend, body, POOLS[self.pooling](width), LabelHead(width, outputs))
