"""Digests of the files that predictions depend on."""

import hashlib
from collections.abc import Iterator
from pathlib import Path

from regard.core.version import __version__

FILES = ("config.yaml", "model.safetensors", "export.json")
FOLDERS = ("vocabulary", "regard", "ctranslate2", "onnx")
BLOCK = 1 << 20


def model_digest(folder: Path) -> str:
    """Return a digest of the files of a model and of regard's version, not of the folder's path."""
    digest = hashlib.blake2b(__version__.encode(), digest_size=16)
    for path in _files(folder):
        digest.update(f"{path.relative_to(folder)}\0{path.stat().st_size}\0".encode())
        with open(path, "rb") as file:
            while block := file.read(BLOCK):
                digest.update(block)
    return digest.hexdigest()


def file_digest(path: Path) -> str:
    """Return a digest of the content of a file."""
    return hashlib.blake2b(path.read_bytes(), digest_size=16).hexdigest()


def _files(folder: Path) -> Iterator[Path]:
    yield from (folder / name for name in FILES if (folder / name).is_file())
    for name in FOLDERS:
        yield from sorted(path for path in (folder / name).rglob("*") if path.is_file())
