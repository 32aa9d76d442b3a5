"""Padded tensors and batches, and the state of a decoder."""
