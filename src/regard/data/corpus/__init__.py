"""Corpora of encoded examples, and the order of their batches."""
