"""Predictions for many texts: read as they arrive, predicted in windows, written in order."""
