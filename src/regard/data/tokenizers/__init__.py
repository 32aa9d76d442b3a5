"""Tokenizers, which convert text into token ids and back."""
