"""Speakers of sounds, which a column of a table names."""

from regard.core.errors import UserError
from regard.core.formatting import count_noun
from regard.data.reading.read import Pair, Pairs
from regard.data.reading.sounds import Sound, Speaker
from regard.data.reading.splits import read_cells

OPTION = "--speaker-column"


def with_speakers(pairs: Pairs, column: str) -> Pairs:
    """Return pairs whose sounds know their speaker. column: index, header name or JSON key."""
    names = read_cells(pairs.path, column, OPTION, "speaker")
    speakers: dict[str, Speaker] = {}
    found = []
    for pair in pairs.pairs:
        if not isinstance(pair.source, Sound):
            raise UserError(f"{OPTION}: only supported for sounds")
        name, old = names[pair.line], pair.source
        speaker = speakers.setdefault(name, Speaker(name))
        sound = Sound(old.samples, old.rate, old.name, speaker)
        speaker.sounds.append(sound)
        found.append(Pair(sound, pair.target, pair.line))
    notes = [*pairs.notes, f"{count_noun(len(speakers), 'speaker')} ({OPTION} {column})"]
    return Pairs(pairs.name, pairs.path, found, notes)
