"""The speakers of a table of sounds that are predicted."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from regard.core.errors import UserError
from regard.core.formatting import count_noun
from regard.data.reading.sound_files import read_sound
from regard.data.reading.sounds import Sound, Speaker
from regard.data.reading.speakers import OPTION
from regard.data.reading.splits import read_cells
from regard.inputs.input import NamedSources

UNKNOWN = (
    "unknown speakers: features are normalized by an estimate of the mean of each speaker from "
    "one recording"
)


@dataclass(eq=False)
class FileSpeaker(Speaker):
    """A speaker whose recordings are read from files when they are needed."""

    files: list[str] = field(default_factory=list)
    read: Callable[[str], Any] = read_sound

    def recordings(self) -> Iterable[Sound]:
        return map(self.read, self.files)


def with_table_speakers(found: NamedSources, path: str, column: str | None) -> NamedSources:
    """Return the sources of a table with their speakers, or a note that they are unknown.

    column: of the speakers in the training data.
    """
    if column is None or not found.lines:
        return found._replace(notes=[*found.notes, UNKNOWN])
    try:
        cells = read_cells(path, column, OPTION, "speaker")
    except UserError as error:  # no such column, or a row without a speaker
        reason = str(error).splitlines()[0]
        return found._replace(notes=[*found.notes, f"{UNKNOWN} ({reason})"])
    speakers: dict[str, FileSpeaker] = {}
    by_name = {}
    for name, line in found.lines.items():
        who = cells[line]
        by_name[name] = speakers.setdefault(who, FileSpeaker(who, read=found.read))
        by_name[name].files.append(name)

    def read(name: str) -> Sound:
        sound = found.read(name)
        return Sound(sound.samples, sound.rate, sound.name, by_name[name])

    note = f"{count_noun(len(speakers), 'speaker')} ({OPTION} {column} of the training data)"
    return found._replace(read=read, notes=[*found.notes, note])
