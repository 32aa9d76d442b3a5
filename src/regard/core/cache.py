"""The cache of large data: whole folders under a key, safe when several runs write at once.

A folder is made under another name and renamed when it is whole; of two runs that make the same
one, the first to rename decides. `header.json` holds facts, and sizes and sums to know damage by.
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

from regard.core.errors import UserError, info
from regard.core.files import write_json
from regard.core.formatting import size

FORMAT = 2  # part of every key: another layout of the files is another cache
HEADER = "header.json"
ABANDONED = 3 * 86_400.0  # seconds
SMALL = 1 << 22  # files up to this many bytes are checked by their content, larger by their size

Facts = dict[str, Any]
Build = Callable[[Path], Facts]


def cache_root() -> Path:
    """Where the cache lies: $REGARD_CACHE, or regard/ in the user's folder for caches."""
    given = os.environ.get("REGARD_CACHE")
    if given:
        return Path(given)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "regard"


def make_key(*parts: object) -> str:
    """A name for what these parts decide."""
    mark = hashlib.blake2b(digest_size=16)
    for part in (FORMAT, *parts):
        data = part if isinstance(part, bytes) else json.dumps(part, sort_keys=True).encode()
        mark.update(len(data).to_bytes(8, "little") + data)
    return mark.hexdigest()


def cached(kind: str, key: str, build: Build) -> tuple[Path, Facts]:
    """The folder of this key and its facts: found, or made by `build(folder)`, which gives them.

    A damaged folder is made anew, and that is said.
    """
    folder = cache_root() / kind / key
    facts = _find(folder)
    if facts is not None:
        return folder, facts
    with readable_cache_errors(folder):
        folder.parent.mkdir(parents=True, exist_ok=True)
        _remove_stale(folder.parent)
        new = Path(tempfile.mkdtemp(prefix=".new-", dir=folder.parent))
        try:
            _close(new, json.loads(json.dumps(build(new))))
            _rename(new, folder)
        finally:
            shutil.rmtree(new, ignore_errors=True)
    facts = _find(folder)
    assert facts is not None, f"{folder} vanished"
    taken = sum(entry.stat().st_size for entry in folder.rglob("*"))
    if taken > SMALL:
        info(f"cache: {folder} ({size(taken)})")
    return folder, facts


def save_facts(name: str, facts: Facts) -> None:
    """Keeps a few facts under a name; `load_facts` gives them back."""
    folder = cache_root() / "files"
    with readable_cache_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)
        write_json(folder / f"{make_key(name)}.json", facts)


def load_facts(name: str) -> Facts:
    """The facts kept under a name; none where there are none."""
    with contextlib.suppress(OSError, ValueError):
        facts = json.loads((cache_root() / "files" / f"{make_key(name)}.json").read_bytes())
        return facts if isinstance(facts, dict) else {}
    return {}


@contextlib.contextmanager
def readable_cache_errors(folder: Path) -> Any:
    """Turns what the system says about a folder that cannot be written into words."""
    try:
        yield
    except OSError as error:
        raise UserError(
            f"{folder}: the cache of large data cannot be written: {error.strerror or error}; "
            "REGARD_CACHE=FOLDER puts it elsewhere"
        ) from error


def _remove_stale(folder: Path) -> None:
    """Removes what killed runs left half-made, some days ago."""
    for path in folder.glob(".*-*"):
        with contextlib.suppress(OSError):
            if time.time() - path.stat().st_mtime > ABANDONED:
                shutil.rmtree(path, ignore_errors=True)


def _find(folder: Path) -> Facts | None:
    """The facts of a whole folder; None where there is none, or a damaged one, which goes away."""
    if not folder.exists():
        return None
    try:
        header = json.loads((folder / HEADER).read_bytes())
        facts, files = header["facts"], header["files"]
        assert header["sum"] == _sum_header(facts, files)
        damaged = [name for name, known in files.items() if _stat(folder / name) != known]
    except (OSError, ValueError, KeyError, TypeError, AssertionError):
        damaged = [HEADER]
    if not damaged:
        return dict(facts)
    info(f"{folder}: damaged ({', '.join(damaged)}); it is made anew")
    with readable_cache_errors(folder):
        aside = Path(tempfile.mkdtemp(prefix=".old-", dir=folder.parent))
        with contextlib.suppress(FileNotFoundError):  # another run was faster
            os.replace(folder, aside)
        shutil.rmtree(aside, ignore_errors=True)
    return None


def _close(folder: Path, facts: Facts) -> None:
    """Writes the header, which makes a folder whole."""
    names = [path for path in folder.rglob("*") if path.is_file()]
    files = {str(path.relative_to(folder)): _stat(path) for path in names}
    write_json(folder / HEADER, {"facts": facts, "files": files, "sum": _sum_header(facts, files)})


def _rename(new: Path, folder: Path) -> None:
    """Gives a whole folder its name, unless another run has done so."""
    try:
        os.rename(new, folder)
    except OSError:
        if not (folder / HEADER).exists():
            raise


def _stat(path: Path) -> list[Any]:
    """The size of a file and, where it is small, a sum of its content."""
    count = path.stat().st_size
    content = path.read_bytes() if count <= SMALL else b""
    return [count, hashlib.blake2b(content, digest_size=8).hexdigest()]


def _sum_header(facts: Facts, files: Facts) -> str:
    return make_key(facts, files)
