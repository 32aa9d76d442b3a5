"""Answers on their way into a file, written so that a killed command can go on.

Beside FILE lie, until all is answered, FILE.part with the answers so far and FILE.part.json, which
says how many sources they answer, how many bytes they are, and of what they are the answers.
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
from regard.inference.prediction.prediction_warnings import Oddities
from regard.tasks.values import InputItem

FORMAT = 2


class PartFile:
    """An open FILE.part. answered: the sources whose answers are in it, whole and for certain.

    asked: all that the answers depend on but the sources. Of these a digest is kept, so that
    answers are never continued for another input. engine: what answers; where it chose one by
    measuring, the choice is kept.
    """

    def __init__(
        self,
        path: Path,
        asked: dict[str, Any],
        odd: Oddities,
        force: bool,
        engine: Engine | None = None,
    ) -> None:
        self.path = path.with_name(path.name + ".part")
        self.record_path = path.with_name(path.name + ".part.json")
        self.asked, self.odd, self.engine = asked, odd, engine
        self.answered, self.size, self.seen = 0, 0, hashlib.blake2b(digest_size=16)
        self.file: BinaryIO = open(self.path, "ab")  # noqa: SIM115 -- `opened` closes it
        try:
            self._hold()
            self.expected = self._go_on(force)
            self.file.truncate(self.size)
            self._record()
        except BaseException:
            self.file.close()
            raise

    def _hold(self) -> None:
        """Keeps other processes away; the system lets go of it however this one ends.

        A lock of the process, not of the file: copies of the process that outlive it have none.
        """
        held = True
        try:
            import fcntl

            fcntl.lockf(self.file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except (BlockingIOError, PermissionError):
            held = False
        except (ImportError, OSError):  # Windows, or a file system without locks
            pass
        same = self.path.exists() and os.path.samestat(
            os.stat(self.path), os.fstat(self.file.fileno())
        )  # else the other one has just finished and given the file its name
        if not held or not same:
            raise UserError(
                f"{self.path}: another process writes into it; wait for its end, or choose "
                "another --output"
            )

    def _go_on(self, force: bool) -> str | None:
        """Takes over what an earlier process recorded; the digest of the sources it answered."""
        there = os.fstat(self.file.fileno()).st_size
        if force or not self.record_path.exists():
            if there and not force:
                raise UserError(
                    f"{self.path}: a file that nothing says what it is of is in the way; remove "
                    "it, or overwrite it with --force"
                )
            return None
        found = self._read_record()
        anew = "go on with the command of then, or begin anew with --force"
        then, now = flatten(found["asked"]), flatten(self.asked)
        differ = [key for key in {**then, **now} if then.get(key) != now.get(key)]
        if differ:
            lines = [f"  {k}: {_short(then.get(k))} then, {_short(now.get(k))} now" for k in differ]
            raise UserError("\n".join([f"{self.path}: answers of another command; {anew}", *lines]))
        if there < found["bytes"]:
            raise UserError(
                f"{self.path}: {there:,} bytes, {found['bytes']:,} expected: it was changed; begin "
                "anew with --force"
            )
        self.answered, self.size = found["answered"], found["bytes"]
        self.odd.go_on(found["odd"])
        if self.engine is not None:
            self.engine.take(found["engine"])
        if self.answered:
            info(f"{self.path}: {self.answered:,} sources are answered already; going on")
        return str(found["digest"])

    def _read_record(self) -> dict[str, Any]:
        keys = {"format", "asked", "engine", "answered", "bytes", "digest", "odd"}
        try:
            found = json.loads(self.record_path.read_bytes())
        except ValueError:
            found = None
        if not isinstance(found, dict) or found.keys() != keys or found["format"] != FORMAT:
            raise UserError(
                f"{self.record_path}: not as this version writes it; begin anew with --force"
            )
        return found

    def skip(self, items: Iterator[InputItem], input: str) -> None:
        """Read past the items that are answered, which must be the same as then."""
        for number in range(self.answered):
            item = next(items, None)
            if item is None:
                raise UserError(
                    f"{self.path}: {self.answered:,} sources answered, but {input} has only "
                    f"{number:,}: it was changed; begin anew with --force"
                )
            self._see(item)
        if self.expected not in (None, self.seen.hexdigest()):
            raise UserError(
                f"{self.path}: answers of another input: the first {self.answered:,} sources of "
                f"{input} are not those that were answered; give that input, or begin anew with "
                "--force"
            )

    def _see(self, item: InputItem) -> None:
        self.seen.update(item.text.encode() + b"\0")  # no text holds a NUL

    def write(self, window: list[InputItem], lines: list[str]) -> None:
        """Adds the answers of a window; they stay whatever happens after this."""
        for item in window:
            self._see(item)
        content = "".join(lines).encode()
        self.file.write(content)
        self.file.flush()
        os.fsync(self.file.fileno())
        self.answered += len(window)
        self.size += len(content)
        self._record()

    def _record(self) -> None:
        record = {"format": FORMAT, "asked": self.asked, "answered": self.answered}
        record["engine"] = None if self.engine is None else self.engine.taken()
        record |= {"bytes": self.size, "digest": self.seen.hexdigest(), "odd": self.odd.record()}
        write_json(self.record_path, record)

    def remove(self) -> None:
        """Deletes what is not needed any more."""
        self.path.unlink(missing_ok=True)
        self.record_path.unlink(missing_ok=True)


def _short(value: Any) -> str:
    return "nothing" if value is None else repr(value)[:60]
