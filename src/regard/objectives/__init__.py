"""Objectives: what training makes small. Each gives a sum and a count, never a mean."""

from regard.objectives.cross_entropy import CrossEntropy, Loss

__all__ = ["CrossEntropy", "Loss", "Objective"]

Objective = CrossEntropy
