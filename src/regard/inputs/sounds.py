"""Sounds as sequences of windows: the input `sound`. Its frontends are in `sound_frontends.py`.

N sounds, T samples, S windows, F bands.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from regard.core.errors import UserError
from regard.core.files import write_json
from regard.data.checks.check_sounds import SoundStats, sound_stats
from regard.data.corpus.ragged import Ragged
from regard.data.reading.media_table import locate
from regard.data.reading.resample import resample
from regard.data.reading.sound_files import SOUNDS, declared_size, decode_sound, read_sound
from regard.data.reading.sound_media import MEDIA
from regard.data.reading.sounds import FULL_SCALE, Sound, Speaker, from_array
from regard.inputs.file_size import FileSize
from regard.inputs.input import FileColumns, Input, InputShape, NamedSources
from regard.inputs.log_mel import Analysis
from regard.inputs.media_files import media_sources
from regard.inputs.table_speakers import with_table_speakers
from regard.inputs.voices import UnknownVoice, voice_mean


class SoundInput(Input):
    """Sounds as log-mel features of windows.

    normalize: whose statistics standardize the features. mean, std: (F,), of the training set;
    empty if each recording is standardized by its own, which the frontend does. voice: estimates
    the mean of an unknown speaker; None unless features are normalized by speaker.
    """

    kind = "sound"
    written = False
    inspects = frozenset({"attention", "gates", "saliency", "sound"})
    placeholder = "FILE"
    plural = "sounds"
    media = frozenset(MEDIA)

    def __init__(
        self,
        analysis: Analysis,
        normalize: str,
        mean: Sequence[float] = (),
        std: Sequence[float] = (),
        voice: UnknownVoice | None = None,
    ) -> None:
        self.analysis, self.normalize, self.voice = analysis, normalize, voice
        self.mean, self.std = np.asarray(mean, np.float32), np.asarray(std, np.float32)
        self.speakers: dict[int, tuple[Speaker, np.ndarray]] = {}

    @property
    def shape(self) -> InputShape:
        scale = (tuple(self.mean.tolist()), tuple(self.std.tolist())) if len(self.mean) else ()
        return InputShape("sound", self.analysis.bands, scale=scale, rate=self.analysis.rate)

    def encode(self, sources: Sequence[Any]) -> Ragged:
        """Return the features of N sounds, one row (S, F) each, as float16.

        Half precision has 3 digits: its rounding changes the power by at most 0.8 %.
        """
        rows = [self.features(source).astype(np.float16) for source in sources]
        lengths = np.fromiter(map(len, rows), np.int64, len(rows))
        flat = np.concatenate(rows) if rows else np.zeros((0, self.analysis.bands))
        return Ragged.from_flat(flat.astype(np.float16, copy=False), lengths)

    def features(self, source: Any) -> np.ndarray:
        """Return the features (S, F) of a sound, without the mean of the recording or the speaker.

        It is subtracted before augmentation, since at other frequencies it would be another one.
        """
        found = self.analyze(source)
        if self.normalize == "mean":
            return found - voice_mean(found)
        if self.normalize == "speaker" and source.speaker is not None:
            return found - self.speaker_mean(source.speaker)
        return found if self.voice is None else found - self.voice.estimate(found)

    def fit_voice(self, sources: Sequence[Any]) -> UnknownVoice:
        """Return the estimate of unknown speakers from the sounds of known ones."""
        known = [source for source in sources if source.speaker is not None]
        own = [voice_mean(self.analyze(source)) for source in known]
        goal = [self.speaker_mean(source.speaker) for source in known]
        return UnknownVoice.fit(np.stack(own), np.stack(goal))

    def analyze(self, source: Any) -> np.ndarray:
        """Return the log-mel features (S, F) of a sound."""
        sound = self._checked(source)
        return self.analysis.log_mel(sound.samples.astype(np.float32) / FULL_SCALE)

    def fitted(self, source: Any) -> Sound:
        """Return a sound at the rate of this input."""
        if not isinstance(source, Sound):
            raise UserError(f"expected a sound, found {source!r:.80}")
        return resample(source, self.analysis.rate)

    def speaker_mean(self, speaker: Speaker) -> np.ndarray:
        """Return the mean (F,) over all recordings of a speaker."""
        if id(speaker) not in self.speakers:
            mean, _ = statistics(map(self.analyze, speaker.recordings()))
            self.speakers[id(speaker)] = (speaker, mean)
        return self.speakers[id(speaker)][1]

    def names(self, source: Any) -> list[str]:
        """Return the time in seconds at which each window starts."""
        analysis = self.analysis
        count = analysis.windows(len(self.fitted(source)))
        return [f"{index * analysis.hop / analysis.rate:.2f}" for index in range(count)]

    def parse(self, text: str) -> Sound:
        """Return the sound in the file with this path, at the rate of this input."""
        return self._checked(read_sound(text))

    def locate(self, text: str, input: str) -> str:
        return str(locate(text, input))

    def read_file(self, path: str, columns: FileColumns) -> NamedSources | None:
        """Return the sounds of a folder, a table, or a sound file."""
        found = media_sources(path, columns.sources, SOUNDS, self.parse)
        if found is None or self.normalize != "speaker":
            return found
        return with_table_speakers(found, path, columns.speakers)

    def media_stats(self, train: Sequence[Any], dev: Sequence[Any]) -> SoundStats:
        return sound_stats(train, dev)

    def decode(self, data: bytes, media: str, name: str) -> Sound:
        """Return the sound in the bytes of a file, at the rate of this input."""
        return self._checked(decode_sound(data, name, media=media))

    def from_value(self, value: Any) -> Sound:
        """Return a `Sound` at the rate of this input; an array of samples must have this rate."""
        if not isinstance(value, Sound):
            value = from_array(value, self.analysis.rate, "sound")
        return self._checked(value)

    def _checked(self, source: Sound) -> Sound:
        """Return a sound at the rate of this input. Raise UserError if it has no window."""
        sound = self.fitted(source)
        if not self.analysis.windows(len(sound)):
            raise too_short(sound, self.analysis.window)
        return sound

    def declared_size(self, data: bytes, media: str, name: str) -> FileSize:
        """Return the size of a sound: its samples before or after resampling, and its windows."""
        found, analysis = declared_size(data, name, media), self.analysis
        count = -(-found.samples * analysis.rate // found.rate)
        windows = analysis.windows(count)
        values = max(found.samples * found.channels, count)
        return FileSize(values, windows * analysis.bands, windows)

    def reads(self) -> dict[str, Any]:
        return super().reads() | {"rate": self.analysis.rate, "bands": self.analysis.bands}

    def blank(self) -> Sound:
        return Sound(np.zeros(self.analysis.rate, np.int16), self.analysis.rate, "blank")

    def length(self, source: Any) -> int:
        """Return about how many windows a sound has."""
        return max(1, int(source.seconds * 1000 / self.analysis.step))

    def content(self) -> bytes:
        arrays = (self.mean, self.std, *(self.voice or ()))
        text = repr((self.analysis, self.normalize)).encode()
        return text + b"".join(array.tobytes() for array in arrays)

    def save(self, folder: Path) -> None:
        analysis = {
            name: getattr(self.analysis, name) for name in ("rate", "bands", "window", "step")
        }
        scale = {"mean": self.mean.tolist(), "std": self.std.tolist()}
        voice = {} if self.voice is None else self.voice._asdict()
        found = {f"voice_{name}": values.tolist() for name, values in voice.items()}
        write_json(folder / "input.json", analysis | {"normalize": self.normalize} | scale | found)


def too_short(sound: Sound, window: float) -> UserError:
    """Return the error for a sound that is shorter than a window."""
    return UserError(
        f"{sound.name}: recording of {1000 * sound.seconds:.0f} ms: expected at least one window "
        f"of {window:g} ms",
        help="record it again, or remove it",
    )


def statistics(rows: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return mean and deviation (F,) over arrays (S, F); deviation 1 for a constant band."""
    count, total, squares = 0, np.zeros(1), np.zeros(1)
    for row in rows:
        wide = row.astype(np.float64)
        count, total, squares = (
            count + len(wide),
            total + wide.sum(0),
            squares + np.square(wide).sum(0),
        )
    mean = total / count
    std = np.sqrt(np.maximum(0.0, squares / count - mean**2))
    return mean.astype(np.float32), np.where(std > 1e-3, std, 1.0).astype(np.float32)
