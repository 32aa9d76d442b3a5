"""Prediction with trained models: engines, batches, evaluation."""
