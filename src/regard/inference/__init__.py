"""From sources to predictions: engines, batches, evaluation."""
