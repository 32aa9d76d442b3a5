"""Objectives: the losses that training minimizes, and the choices for each task."""

from typing import Annotated

from pydantic import Field

from regard.objectives.cmlm import CMLM
from regard.objectives.cross_entropy import CrossEntropy
from regard.objectives.ctc import CTC
from regard.objectives.distill import Distill
from regard.objectives.frame_loss import FrameLoss
from regard.objectives.label_losses import Absolute, Huber, Labels, Squared, Tags
from regard.objectives.objective import Context, Loss, Objective
from regard.objectives.reinforce import Mixer, Reinforce
from regard.objectives.risk import MinimumRisk
from regard.objectives.scheduled import ScheduledSampling
from regard.objectives.token_losses import Masked, NextToken

__all__ = [
    "CMLM",
    "CTC",
    "Absolute",
    "ClassifyObjective",
    "Context",
    "CrossEntropy",
    "Distill",
    "FrameLoss",
    "Huber",
    "Labels",
    "LanguageObjective",
    "Loss",
    "Masked",
    "MinimumRisk",
    "Mixer",
    "NextToken",
    "Objective",
    "RegressObjective",
    "Reinforce",
    "ScheduledSampling",
    "Squared",
    "SynthesizeObjective",
    "TagObjective",
    "Tags",
    "TransduceObjective",
]

# pydantic accepts a discriminator only for a union of two or more kinds
TransduceObjective = Annotated[
    CrossEntropy | ScheduledSampling | Reinforce | Mixer | MinimumRisk | Distill | CTC | CMLM,
    Field(discriminator="kind"),
]
TagObjective = Tags
SynthesizeObjective = FrameLoss
ClassifyObjective = Labels
RegressObjective = Annotated[Squared | Absolute | Huber, Field(discriminator="kind")]
LanguageObjective = Annotated[NextToken | Masked, Field(discriminator="kind")]
