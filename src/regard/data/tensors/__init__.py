"""Tensors of rows of different lengths, and the state of a decoder."""
