"""Optimizers, schedules, initialization, weight averaging and precision."""
