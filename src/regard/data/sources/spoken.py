"""Read tables of texts with the sound files that speak them, for synthesis."""

from regard.core.errors import UserError
from regard.data.reading.media import Prepare
from regard.data.reading.media_table import file_medium, read_table
from regard.data.reading.read import Pair, Pairs
from regard.data.reading.sound_files import SOUNDS
from regard.data.reading.speakers import with_speakers
from regard.data.reading.spoken import SpokenText
from regard.data.sources.media import MEDIA
from regard.data.sources.open import DataSpec

COLUMNS = "--source-column TEXT --target-column FILE"


def read_spoken(spec: DataSpec, prepare: Prepare) -> Pairs:
    """Return the texts of a table with the sounds in the files that its target column names.

    prepare: reduces a sound to what the model writes.
    """
    path = spec.file()
    columns = spec.source_column, spec.target_column
    if path != "-" and (medium := file_medium(path, columns, MEDIA)):
        raise UserError(
            f"{path}: the sources are {medium.name} files: --task synthesize reads texts and "
            "writes sounds",
            help=f"pass {COLUMNS}",
        )
    pairs = spec.read()
    for pair in pairs.pairs:
        if not pair.source.strip():
            raise UserError(
                f"{pairs.path} line {pair.line}: expected a text, found nothing",
                help="remove the line, or add the text",
            )
    files = [Pair(pair.target, pair.source, pair.line) for pair in pairs.pairs]
    try:
        read = read_table(Pairs(pairs.name, pairs.path, files, pairs.notes), SOUNDS, prepare)
    except UserError as error:
        if "no such file" in error.message and not error.help.endswith(COLUMNS):
            help = f"{error.help}; the target column names sound files: {COLUMNS}"
            raise UserError(error.message, note=error.note, help=help) from None
        raise
    if spec.speaker_column:
        read = with_speakers(read, spec.speaker_column)
    found = [_turned(pair) for pair in read.pairs]
    return Pairs(read.name, read.path, found, read.notes)


def _turned(pair: Pair) -> Pair:
    """Return a pair of a sound and its text as one of the text, with its speaker, and the sound."""
    sound, text = pair.source, pair.target
    name = sound.speaker.name if sound.speaker else None
    return Pair(SpokenText(text, name) if name else text, sound, pair.line)
