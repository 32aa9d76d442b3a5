"""Partial output files, from which an interrupted `regard predict --output FILE` resumes.

Until all predictions are written, they are in FILE.part. FILE.part.json records the number of
finished sources, the size of their predictions in bytes, and the options that determine them.
"""

import hashlib
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

from regard.core.errors import UserError, info
from regard.core.files import write_json
from regard.core.options import flatten
from regard.inference.engine import Engine
from regard.inference.prediction.prediction_warnings import PredictionWarnings
from regard.tasks.values import InputItem

FORMAT_VERSION = 3
START_OVER = "start over with --force"


class PartialOutput:
    """An open FILE.part with its record FILE.part.json.

    options: all options that determine the predictions. force: discard an existing partial output.
    engine: if a benchmark selected the engine, the record has the choice.
    done: number of sources whose predictions are complete and on disk. digest: hash of these
    sources, so that a command never resumes with another input.
    """

    def __init__(
        self,
        path: Path,
        options: dict[str, Any],
        warnings: PredictionWarnings,
        force: bool,
        engine: Engine | None = None,
    ) -> None:
        self.path = path.with_name(path.name + ".part")
        self.record_path = record_path(path)
        self.options, self.warnings, self.engine = options, warnings, engine
        self.done, self.size, self.digest = 0, 0, hashlib.blake2b(digest_size=16)
        self.file: BinaryIO = open(self.path, "ab")  # noqa: SIM115 -- `open_output` closes it
        try:
            self._lock()
            self.expected_digest = self._resume(force)
            self.file.truncate(self.size)
            self._record()
        except BaseException:
            self.file.close()
            raise

    def _lock(self) -> None:
        """Lock the file; the operating system releases the lock when this process ends.

        The lock belongs to the process (`lockf`), so forked children that outlive it do not hold
        the lock.
        """
        locked = True
        try:
            import fcntl

            fcntl.lockf(self.file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except (BlockingIOError, PermissionError):
            locked = False
        except (ImportError, OSError):  # Windows, or a file system without locks
            pass
        same = self.path.exists() and os.path.samestat(
            os.stat(self.path), os.fstat(self.file.fileno())
        )  # otherwise another process has just finished and renamed the file
        if not locked or not same:
            raise UserError(
                f"{self.path}: locked by another process",
                help="wait until it ends, or choose another --output",
            )

    def _resume(self, force: bool) -> str | None:
        """Restore the record of an interrupted command; return the digest of its sources.

        Return None if there is no record. Raise UserError if options or file differ.
        """
        size = os.fstat(self.file.fileno()).st_size
        if force or not self.record_path.exists():
            if size and not force:
                raise UserError(
                    f"{self.path}: exists without a progress record",
                    help="delete it, or overwrite it with --force",
                )
            return None
        record = self._read_record()
        before, now = flatten(record["options"]), flatten(self.options)
        differing = [key for key in {**before, **now} if before.get(key) != now.get(key)]
        if differing:
            lines = [
                f"  {key}: {_short(before.get(key))} before, {_short(now.get(key))} now"
                for key in differing
            ]
            raise UserError(
                "\n".join([f"{self.path}: partial output of a different command:", *lines]),
                help="rerun the original command, or discard it with --force",
            )
        if size < record["bytes"]:
            raise UserError(
                f"{self.path}: file changed: expected {record['bytes']:,} bytes, found {size:,}",
                help=START_OVER,
            )
        self.done, self.size = record["done"], record["bytes"]
        self.warnings.restore(record["warnings"])
        if self.engine is not None:
            self.engine.restore_choice(record["engine"])
        if self.done:
            info(f"resuming: {self.done:,} sources already done ({self.path})")
        return str(record["digest"])

    def _read_record(self) -> dict[str, Any]:
        keys = {"format", "options", "engine", "done", "bytes", "digest", "warnings"}
        try:
            record = json.loads(self.record_path.read_bytes())
        except ValueError:
            record = None
        known = isinstance(record, dict) and record.keys() == keys
        if not known or record["format"] != FORMAT_VERSION:
            raise UserError(
                f"{self.record_path}: corrupted, or written by another version of regard",
                help=START_OVER,
            )
        return dict(record)

    def skip(self, items: Iterator[InputItem], input: str) -> None:
        """Skip the items that are done. Raise UserError if they differ from the recorded input."""
        for index in range(self.done):
            item = next(items, None)
            if item is None:
                raise UserError(
                    f"{self.path}: {self.done:,} sources done, but {input} has only {index:,}: "
                    "the input changed",
                    help=START_OVER,
                )
            self._add_to_digest(item)
        if self.expected_digest not in (None, self.digest.hexdigest()):
            raise UserError(
                f"{self.path}: partial output of a different input: the first {self.done:,} "
                f"sources of {input} changed",
                help="use the original input, or start over with --force",
            )

    def _add_to_digest(self, item: InputItem) -> None:
        self.digest.update(item.text.encode() + b"\0")  # texts have no NUL

    def write(self, window: list[InputItem], lines: list[str]) -> None:
        """Append the predictions of these items and sync them to disk.

        window: items that were predicted together. lines: their formatted predictions.
        """
        for item in window:
            self._add_to_digest(item)
        content = "".join(lines).encode()
        self.file.write(content)
        self.file.flush()
        os.fsync(self.file.fileno())
        self.done += len(window)
        self.size += len(content)
        self._record()

    def _record(self) -> None:
        record = {"format": FORMAT_VERSION, "options": self.options, "done": self.done}
        record["engine"] = None if self.engine is None else self.engine.save_choice()
        record |= {"bytes": self.size, "digest": self.digest.hexdigest()}
        record["warnings"] = self.warnings.record()
        write_json(self.record_path, record)

    def remove(self) -> None:
        """Delete the partial output and its record."""
        self.path.unlink(missing_ok=True)
        self.record_path.unlink(missing_ok=True)


def record_path(path: Path) -> Path:
    """Return the path of the record of a partial output file."""
    return path.with_name(path.name + ".part.json")


def _short(value: Any) -> str:
    return "none" if value is None else repr(value)[:60]
