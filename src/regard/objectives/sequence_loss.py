"""The common part of objectives that reward complete outputs of the current model."""

from collections.abc import Iterator
from typing import Any, ClassVar

from pydantic import Field

from regard.core.data_stats import DataStats
from regard.core.options import AutoSetting
from regard.data.tensors.padded import Batch
from regard.metrics.rewards import Reward
from regard.objectives.cross_entropy import TokenLoss

FINE_TUNING = 0.1  # of the learning rate that a model has from random weights


class SequenceLoss(TokenLoss):
    """Base class of losses on complete outputs. In evaluation they are cross entropy.

    The loss in training is a sum over sources, and its count is their number.
    """

    takes: ClassVar[frozenset[str]] = frozenset({"steps"})
    searches: ClassVar[bool] = True
    starts_trained: ClassVar[bool] = True
    lr_factor: ClassVar[float] = FINE_TUNING
    reward: Reward | None = Field(
        None, description="reward of an output; None: the metric that selects the best checkpoint"
    )
    samples: int = Field(5, gt=0, description="outputs of the current model per source")
    temperature: float = Field(
        1.0, gt=0, allow_inf_nan=False, description="softmax temperature of sampled outputs"
    )
    cross_entropy: float = Field(
        0.1, ge=0, le=1, description="weight of the cross entropy of the reference in the loss"
    )

    def propose(self, stats: DataStats, config: Any) -> Iterator[AutoSetting]:
        """Yield the reward, once the metric of the run is known."""
        metric = getattr(config.task, "metric", None)
        if metric is not None:
            known = metric if metric != "perplexity" else "edit_distance"
            yield from self.auto_settings("the metric of this run", reward=known)

    @property
    def metric(self) -> str:
        """The name of the reward."""
        return self.reward or "edit_distance"

    def count(self, batch: Batch) -> int:
        """Return the number of sources of a prepared batch, otherwise of tokens."""
        return super().count(batch) if batch.prepared is None else batch.rows
