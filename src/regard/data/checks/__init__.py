"""Data checks before training."""
