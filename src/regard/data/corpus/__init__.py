"""Encoded examples, and the order of batches."""
