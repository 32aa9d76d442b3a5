"""Exports in the cache, found by the digest of the model. This module does not import torch."""

from pathlib import Path

from regard.core.cache import find_cached, make_key
from regard.storage.export_folder import FORMAT_VERSION
from regard.storage.fingerprint import model_digest

KIND = "exports"  # the folder in the cache


def export_key(folder: Path, to: str, quantize: str | None) -> str:
    """Return the cache key of the export of a model to an engine."""
    return make_key(to, quantize, FORMAT_VERSION, model_digest(folder))


def find_export(folder: Path, to: str, quantize: str | None) -> Path | None:
    """Return the cached export of a model, or None if there is none."""
    return find_cached(KIND, export_key(folder, to, quantize))
