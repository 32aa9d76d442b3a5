"""Encoder-only models: one label per position, or one output per row.

B rows (examples of the batch), S length, D width, C outputs (labels or target numbers).
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
from regard.models.fixed_rows import FixedRows
from regard.nn.ablation import zero_ablated
from regard.nn.capture_hooks import record_attention
from regard.nn.perturbation import perturbed

IMAGES_PER_BATCH, IMAGE_EPOCHS = 64, 30.0
SOUNDS_PER_BATCH, MAX_FRAMES = 32, 8192  # per batch
SOUND_DROPOUT = 0.5  # with less, models learn the voices of the training set
MIN_WIDE_UPDATES = 1_200  # of a wide tagger, as estimated; with fewer, a narrow one learns more


class EncoderModel(nn.Module):
    """A frontend, an encoder, a pooling and an output layer (`head`)."""

    def __init__(
        self, frontend: nn.Module, encoder: nn.Module, pool: nn.Module, head: nn.Module
    ) -> None:
        super().__init__()
        self.frontend, self.encoder = frontend, encoder
        self.pool, self.head = pool, head

    def forward(self, batch: Batch) -> Outputs:
        """Return the logits (B, C), or (B, S, C) without pooling."""
        return self.head(self.pool(self.encoder(perturbed(self.frontend(batch.source)))))

    def fast(self) -> FixedRows | None:
        """Return the model with a fixed number of rows if it reads vectors."""
        return FixedRows(self) if getattr(self.frontend, "one_shape", False) else None


class NoPooling(nn.Module):
    """No pooling: one vector per position."""

    def forward(self, encoded: Padded) -> Tensor:
        """Return the vectors (B, S, D) unchanged."""
        return encoded.data


class Pool(nn.Module):
    """The interface of poolings, which reduce the vectors of a row to one."""

    def __init__(self, width: int) -> None:
        super().__init__()

    def forward(self, encoded: Padded) -> Tensor:
        """Return one vector (B, D) per row of vectors (B, S, D)."""
        raise NotImplementedError


class MeanPool(Pool):
    """The mean over all positions without padding."""

    def forward(self, encoded: Padded) -> Tensor:
        real = encoded.mask.unsqueeze(-1)  # (B, S, 1)
        return (encoded.data * real).sum(1) / real.sum(1)


class MaxPool(Pool):
    """The maximum of each component over all positions without padding."""

    def forward(self, encoded: Padded) -> Tensor:
        real = encoded.mask.unsqueeze(-1)
        return encoded.data.masked_fill(~real, float("-inf")).amax(1)


class FirstPool(Pool):
    """The vector of the first position."""

    def forward(self, encoded: Padded) -> Tensor:
        return encoded.data[:, 0]


class LastPool(Pool):
    """The vector of the last position, or the final states of recurrent encoders."""

    def forward(self, encoded: Padded) -> Tensor:
        if encoded.summary is not None:
            return encoded.summary
        width = encoded.data.shape[-1]
        last = (encoded.mask.sum(1) - 1)[:, None, None].expand(-1, 1, width)
        return encoded.data.gather(1, last).squeeze(1)


class AttentionPool(Pool):
    """A learned weighted mean: softmax over v . tanh(W h) (Yang et al. 2016, eq. 5-7)."""

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
    """A linear output layer, which predicts labels independently."""

    def __init__(self, width: int, outputs: int) -> None:
        super().__init__()
        self.linear = nn.Linear(width, outputs)
        nn.init.zeros_(self.linear.bias)

    def forward(self, h: Tensor) -> Outputs:
        """Return the logits (..., C) for vectors (..., D)."""
        return Outputs(self.linear(h))


class CrfHead(nn.Module):
    """A CRF output layer: a linear layer and label transition scores (Lample et al. 2016)."""

    def __init__(self, width: int, outputs: int) -> None:
        super().__init__()
        self.linear = nn.Linear(width, outputs)
        self.transitions = nn.Parameter(0.01 * torch.randn(outputs + 1, outputs + 1))
        nn.init.zeros_(self.linear.bias)

    def forward(self, h: Tensor) -> Outputs:
        """Return the logits (B, S, C) for vectors (B, S, D), and the transition scores."""
        return Outputs(self.linear(h), transitions=self.transitions)


class TaggerOptions(SourceModelOptions):
    """Options of taggers, which predict one label per position."""

    gives: ClassVar[str] = "labels"
    head: Literal["softmax", "crf"] = Field(
        "softmax", description="independent labels (softmax) or the best label sequence (crf)"
    )

    def describe(self) -> list[dict[str, Any]]:
        head = [{"part": "head", "kind": "crf"}] if self.head == "crf" else []
        return [*super().describe(), *head]

    def default_kind(self, stats: DataStats) -> tuple[str, str]:
        if stats.edges:
            return "gcn", "nodes of a graph"
        return "recurrent", "a bidirectional LSTM converges fastest for tagging"

    def default_width(self, stats: DataStats) -> int:
        """Return 256, or 128 if the budget allows only few updates."""
        return 128 if stats.budget and self.updates_at(256, stats) < MIN_WIDE_UPDATES else 256

    def default_lr(self, stats: DataStats) -> float:
        return self.own_default("default_lr") or 2e-3

    def default_epochs(self, stats: DataStats) -> float | None:
        found: float | None = self.own_default("default_epochs")
        return found

    def trains_in_bfloat16(self, stats: DataStats) -> bool:
        return False

    def default_dropout(self, stats: DataStats, passes: float) -> float:
        return 0.33

    def build(self, shape: InputShape, outputs: int) -> EncoderModel:
        """Return the model for inputs of this shape. outputs: number of labels."""
        encoder: Any = self.encoder  # sizes must be set
        # The order of initialization determines the weights.
        frontend = build_frontend(self.frontend, encoder, shape)
        width = encoder.output_for(frontend)
        head = (CrfHead if self.head == "crf" else LabelHead)(width, outputs)
        return EncoderModel(frontend, encoder.build_for(frontend), NoPooling(), head)


class PooledOptions(SourceModelOptions):
    """Options of classifiers and regressors, which predict one output per row."""

    gives: ClassVar[str] = "labels"
    pooling: PoolKind | None = Field(None, description="how the token vectors are pooled into one")

    def describe(self) -> list[dict[str, Any]]:
        return [
            *super().describe(),
            *([{"part": "pool", "kind": self.pooling}] if self.pooling else []),
        ]

    def default_kind(self, stats: DataStats) -> tuple[str, str]:
        if stats.edges:
            return "gcn", "graphs"
        if stats.vectors:
            return "mlp", "vectors of numbers"
        if stats.frames:
            return "recurrent", "sounds: a bidirectional LSTM over windows"
        return "window", "local phrases determine the label, independent of position"

    def default_width(self, stats: DataStats) -> int:
        return 64 if stats.vectors else 192 if stats.subwords else 128

    def trains_in_bfloat16(self, stats: DataStats) -> bool:
        return False

    def default_lr(self, stats: DataStats) -> float:
        return self.own_default("default_lr") or 2e-3

    def default_dropout(self, stats: DataStats, passes: float) -> float:
        if stats.frames:
            return SOUND_DROPOUT
        texts = stats.labels and not stats.vectors
        return 0.33 if texts else super().default_dropout(stats, passes)

    def default_batch_tokens(self, stats: DataStats) -> int:
        if any(stats.grid):
            return IMAGES_PER_BATCH
        if stats.vectors:
            return 32 if stats.examples < 10_000 else 256
        if stats.frames:
            return max(512, min(MAX_FRAMES, SOUNDS_PER_BATCH * stats.tokens // stats.examples))
        return super().default_batch_tokens(stats)

    def default_epochs(self, stats: DataStats) -> float | None:
        """Return 3 to 8 epochs for texts, because models overfit them quickly; 30 for images."""
        if any(stats.grid):
            return None if stats.budget else IMAGE_EPOCHS
        if stats.edges:
            found: float | None = self.own_default("default_epochs")
            return found
        if stats.vectors or stats.frames:
            return None
        return max(3.0, min(8.0, round(1_000_000 / stats.tokens)))

    def propose(self, stats: DataStats, config: Any) -> Iterator[AutoSetting]:
        yield from super().propose(stats, config)
        if self.is_sized:
            yield from self.auto_settings(
                stats.reason, pooling=self.sides["encoder"].default_pooling
            )

    def build(self, shape: InputShape, outputs: int) -> EncoderModel:
        """Return the model for inputs of this shape. outputs: number of labels or targets."""
        encoder: Any = self.encoder  # sizes must be set
        assert self.pooling
        frontend = build_frontend(self.frontend, encoder, shape)
        alone = self.pooling in encoder.positions_without_context
        if alone and not frontend.one_shape:
            raise UserError(
                f"model.pooling={self.pooling}: with encoder {encoder.kind}, the output at this "
                f"position does not depend on the rest of the {shape.kind}",
                help="use mean, max or attention",
            )
        body, width = encoder.build_for(frontend), encoder.output_for(frontend)
        return EncoderModel(frontend, body, POOLS[self.pooling](width), LabelHead(width, outputs))
