"""Baselines of all tasks, and the union of those that are stored in the run folder."""

from typing import Annotated

from pydantic import Field

from regard.baselines.affix_rules import AffixRules
from regard.baselines.baseline import Baseline, BaselineFit, StoredBaseline
from regard.baselines.constant import (
    CopySource,
    MeanTarget,
    MostFrequentLabel,
    MostFrequentTag,
    MostFrequentTarget,
    WordTags,
)
from regard.baselines.mean_frame import MeanFrame
from regard.baselines.nearest_neighbor import NearestNeighbor, TooSlow, trigrams, words
from regard.baselines.unigram import Unigram

StoredBaselines = Annotated[
    MostFrequentLabel
    | MostFrequentTarget
    | MostFrequentTag
    | WordTags
    | MeanTarget
    | MeanFrame
    | CopySource
    | AffixRules
    | Unigram,
    Field(discriminator="kind"),
]

__all__ = [
    "AffixRules",
    "Baseline",
    "BaselineFit",
    "CopySource",
    "MeanFrame",
    "MeanTarget",
    "MostFrequentLabel",
    "MostFrequentTag",
    "MostFrequentTarget",
    "NearestNeighbor",
    "StoredBaseline",
    "StoredBaselines",
    "TooSlow",
    "Unigram",
    "WordTags",
    "trigrams",
    "words",
]
