"""The cache of large data, such as tokenized corpora: one folder per key.

Several runs may write at once. A folder is built under a temporary name and renamed when it is
complete. If two runs build the same folder, the first rename wins. `header.json` stores metadata,
file sizes and checksums.
"""

import contextlib
import hashlib
import json
import os
import shutil
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from regard.core.errors import UserError, info, warn
from regard.core.files import write_json
from regard.core.formatting import size

FORMAT_VERSION = 3  # part of every key
HEADER = "header.json"
STALE_SECONDS = 3 * 86_400.0
MAX_HASHED = 1 << 22  # bytes; smaller files are checked by content, larger ones by size

Metadata = dict[str, Any]
Build = Callable[[Path], Metadata]


def cache_root() -> Path:
    """Return the cache folder: $REGARD_CACHE, or regard/ in the user's cache folder."""
    path = os.environ.get("REGARD_CACHE")
    if path:
        return Path(path)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "regard"


def make_key(*parts: object) -> str:
    """Return a hash of these parts (bytes or JSON values) and of the cache format version."""
    digest = hashlib.blake2b(digest_size=16)
    for part in (FORMAT_VERSION, *parts):
        data = part if isinstance(part, bytes) else json.dumps(part, sort_keys=True).encode()
        digest.update(len(data).to_bytes(8, "little") + data)
    return digest.hexdigest()


def cached(kind: str, key: str, build: Build) -> tuple[Path, Metadata]:
    """Return the folder of a key and its metadata. kind: the name of its parent folder.

    If the folder is missing, `build(folder)` writes its files and returns its metadata. A corrupted
    folder is rebuilt, with a warning.
    """
    folder = cache_root() / kind / key
    metadata = _find(folder)
    if metadata is not None:
        return folder, metadata
    with readable_cache_errors(folder):
        folder.parent.mkdir(parents=True, exist_ok=True)
        _remove_stale(folder.parent)
        new = Path(tempfile.mkdtemp(prefix=".new-", dir=folder.parent))
        try:
            _close(new, json.loads(json.dumps(build(new))))
            _rename(new, folder)
        finally:
            shutil.rmtree(new, ignore_errors=True)
    metadata = _find(folder)
    assert metadata is not None, f"{folder} disappeared"
    used = sum(entry.stat().st_size for entry in folder.rglob("*"))
    if used > MAX_HASHED:
        info(f"cache: {folder} ({size(used)})")
    return folder, metadata


def find_cached(kind: str, key: str) -> Path | None:
    """Return the intact folder of a key, or None if there is none. kind: as for `cached`."""
    folder = cache_root() / kind / key
    return None if _find(folder) is None else folder


def save_metadata(name: str, metadata: Metadata) -> None:
    """Store some metadata under a name, for `load_metadata`."""
    folder = cache_root() / "files"
    with readable_cache_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)
        write_json(folder / f"{make_key(name)}.json", metadata)


def load_metadata(name: str) -> Metadata:
    """Return the metadata stored under a name, or an empty dict."""
    with contextlib.suppress(OSError, ValueError):
        metadata = json.loads((cache_root() / "files" / f"{make_key(name)}.json").read_bytes())
        return metadata if isinstance(metadata, dict) else {}
    return {}


@contextlib.contextmanager
def readable_cache_errors(folder: Path) -> Any:
    """Turn an OSError inside the block into a UserError about the cache."""
    try:
        yield
    except OSError as error:
        raise UserError(
            f"{folder}: cannot write the cache of large data: {error.strerror or error}",
            help="set REGARD_CACHE=FOLDER to use another folder",
        ) from error


def _remove_stale(folder: Path) -> None:
    """Remove unfinished folders of runs that were killed some days ago."""
    for path in folder.glob(".*-*"):
        with contextlib.suppress(OSError):
            if time.time() - path.stat().st_mtime > STALE_SECONDS:
                shutil.rmtree(path, ignore_errors=True)


def _find(folder: Path) -> Metadata | None:
    """Return the metadata of an intact folder, otherwise None; remove a corrupted folder."""
    if not folder.exists():
        return None
    try:
        header = json.loads((folder / HEADER).read_bytes())
        metadata, files = header["metadata"], header["files"]
        assert header["sum"] == _sum_header(metadata, files)
        corrupted = [name for name, known in files.items() if _stat(folder / name) != known]
    except (OSError, ValueError, KeyError, TypeError, AssertionError):
        corrupted = [HEADER]
    if not corrupted:
        return dict(metadata)
    warn(f"{folder}: corrupted cache entry ({', '.join(corrupted)}); rebuilding")
    with readable_cache_errors(folder):
        trash = Path(tempfile.mkdtemp(prefix=".old-", dir=folder.parent))
        with contextlib.suppress(FileNotFoundError):  # another run has removed it
            os.replace(folder, trash)
        shutil.rmtree(trash, ignore_errors=True)
    return None


def _close(folder: Path, metadata: Metadata) -> None:
    """Write `header.json`, which marks a folder as complete."""
    names = [path for path in folder.rglob("*") if path.is_file()]
    files = {str(path.relative_to(folder)): _stat(path) for path in names}
    write_json(
        folder / HEADER, {"metadata": metadata, "files": files, "sum": _sum_header(metadata, files)}
    )


def _rename(new: Path, folder: Path) -> None:
    """Rename a complete folder to its final name, unless another run was faster."""
    try:
        os.rename(new, folder)
    except OSError:
        if not (folder / HEADER).exists():
            raise


def _stat(path: Path) -> list[Any]:
    """Return the size of a file and a checksum; the checksum ignores the content of large files."""
    count = path.stat().st_size
    content = path.read_bytes() if count <= MAX_HASHED else b""
    return [count, hashlib.blake2b(content, digest_size=8).hexdigest()]


def _sum_header(metadata: Metadata, files: Metadata) -> str:
    return make_key(metadata, files)
