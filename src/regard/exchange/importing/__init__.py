"""Models that others trained, as run folders."""
