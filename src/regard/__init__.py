"""regard: train, decode and use sequence models from scratch, on your own data."""

__version__ = "0.1.0"
