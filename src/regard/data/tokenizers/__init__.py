"""Texts as numbers and back."""
