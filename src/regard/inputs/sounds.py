"""Sounds as sequences of windows: the input `sound`. Its frontends are in `sound_frontends.py`.

N sounds, T samples, S windows, F bands.
"""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from pydantic import Field

from regard.core.errors import UserError
from regard.core.field_types import Finite, Positive
from regard.core.files import corrupted, read_fields, write_json
from regard.core.options import AutoSetting
from regard.data.corpus.ragged import Ragged
from regard.data.reading.resample import resample
from regard.data.reading.sound_files import declared_samples, decode_sound, read_sound
from regard.data.reading.sound_media import MEDIA
from regard.data.reading.sounds import FULL_SCALE, MAX_RATE, MIN_RATE, Sound, Speaker
from regard.inputs.input import Input, InputOptions, InputShape
from regard.inputs.log_mel import Analysis

SPEECH_RATE = 16_000  # Hz; speech needs no more
WIDE_RATE, BANDS, WIDE_BANDS = 11_025, 40, 80  # default number of bands, up to a rate and above
Rate = Annotated[int, Field(ge=MIN_RATE, le=MAX_RATE)]
Bands = Annotated[int, Field(gt=1, le=256)]
Milliseconds = Annotated[float, Field(ge=1, le=1000)]
Normalize = Literal["recording", "speaker", "global"]
FIELDS = {  # fields of input.json and their types
    "rate": Rate,
    "bands": Bands,
    "window": Milliseconds,
    "step": Milliseconds,
    "normalize": Normalize,
    "mean": list[Finite],
    "std": list[Positive],
}


class SoundInput(Input):
    """Sounds as log-mel features of windows.

    normalize: whose statistics standardize the features. mean, std: (F,), of the training set;
    empty if each recording is standardized by its own, which the frontend does.
    """

    kind = "sound"
    written = False
    media = frozenset(MEDIA)

    def __init__(
        self,
        analysis: Analysis,
        normalize: str,
        mean: Sequence[float] = (),
        std: Sequence[float] = (),
    ) -> None:
        self.analysis, self.normalize = analysis, normalize
        self.mean, self.std = np.asarray(mean, np.float32), np.asarray(std, np.float32)
        self.speakers: dict[int, tuple[Speaker, np.ndarray, np.ndarray]] = {}

    @property
    def shape(self) -> InputShape:
        scale = (tuple(self.mean.tolist()), tuple(self.std.tolist())) if len(self.mean) else ()
        return InputShape("sound", self.analysis.bands, scale=scale, rate=self.analysis.rate)

    def encode(self, sources: Sequence[Any]) -> Ragged:
        """Return the features of N sounds, one row (S, F) each, as float16.

        Half precision has 3 digits: its rounding changes the power by at most 0.8 %.
        """
        rows = [self.features(source) for source in sources]
        lengths = np.fromiter(map(len, rows), np.int64, len(rows))
        flat = np.concatenate(rows) if rows else np.zeros((0, self.analysis.bands))
        return Ragged.from_flat(flat.astype(np.float16, copy=False), lengths)

    def features(self, source: Any) -> np.ndarray:
        """Return the features (S, F) of a sound, scaled to the statistics of the training set.

        Unless `normalize` is speaker, they are not scaled.
        """
        found = self.analyze(source)
        if self.normalize != "speaker":
            return found.astype(np.float16)
        if source.speaker is None:
            mean, std = statistics([found])
        else:
            mean, std = self._speaker_statistics(source.speaker)
        return ((found - mean) / std * self.std + self.mean).astype(np.float16)

    def analyze(self, source: Any) -> np.ndarray:
        """Return the log-mel features (S, F) of a sound."""
        sound = self.fitted(source)
        if not self.analysis.windows(len(sound)):
            raise too_short(sound, self.analysis.window)
        return self.analysis.log_mel(sound.samples.astype(np.float32) / FULL_SCALE)

    def fitted(self, source: Any) -> Sound:
        """Return a sound at the rate of this input."""
        if not isinstance(source, Sound):
            raise UserError(f"expected a sound, found {source!r:.80}")
        return resample(source, self.analysis.rate)

    def _speaker_statistics(self, speaker: Speaker) -> tuple[np.ndarray, np.ndarray]:
        """Return mean and deviation (F,) over all recordings of a speaker."""
        if id(speaker) not in self.speakers:
            self.speakers[id(speaker)] = (speaker, *statistics(map(self.analyze, speaker.sounds)))
        return self.speakers[id(speaker)][1:]

    def names(self, source: Any) -> list[str]:
        """Return the time in seconds at which each window starts."""
        analysis = self.analysis
        count = analysis.windows(len(self.fitted(source)))
        return [f"{index * analysis.hop / analysis.rate:.2f}" for index in range(count)]

    def parse(self, text: str) -> Sound:
        """Return the sound in the file with this path."""
        return read_sound(text)

    def decode(self, data: bytes, media: str, name: str) -> Sound:
        """Return the sound in the bytes of a file, at the rate of this input."""
        sound = self.fitted(decode_sound(data, name, media=media))
        if not self.analysis.windows(len(sound)):
            raise too_short(sound, self.analysis.window)
        return sound

    def declared_size(self, data: bytes, media: str, name: str) -> int:
        """Return the number of samples in the header of a sound file."""
        return declared_samples(data, name, media)

    def reads(self) -> dict[str, Any]:
        return super().reads() | {"rate": self.analysis.rate, "bands": self.analysis.bands}

    def blank(self) -> Sound:
        return Sound(np.zeros(self.analysis.rate, np.int16), self.analysis.rate, "blank")

    def length(self, source: Any) -> int:
        """Return about how many windows a sound has."""
        return max(1, int(source.seconds * 1000 / self.analysis.step))

    def content(self) -> bytes:
        return repr((self.analysis, self.normalize)).encode() + (
            self.mean.tobytes() + self.std.tobytes()
        )

    def save(self, folder: Path) -> None:
        analysis = {
            name: getattr(self.analysis, name) for name in ("rate", "bands", "window", "step")
        }
        scale = {"mean": self.mean.tolist(), "std": self.std.tolist()}
        write_json(folder / "input.json", analysis | {"normalize": self.normalize} | scale)


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


def _example(seconds: float, hertz: float) -> Sound:
    """Return a tone that rises, for tests and messages."""
    time = np.arange(round(seconds * 8000)) / 8000
    wave = np.sin(2 * np.pi * hertz * time * (1 + time)) * 8000
    return Sound(wave.astype(np.int16), 8000, "e")


class Sounds(InputOptions):
    """Options of the input `sound`."""

    examples: ClassVar[tuple[Any, ...]] = (
        _example(0.06, 300),
        _example(0.1, 500),
        _example(0.125, 200),
    )
    kind: Literal["sound"] = "sound"
    rate: Rate | None = Field(
        None,
        description="sampling rate in Hz to which sounds are converted; None: the most common one "
        f"of the training set, at most {SPEECH_RATE:,}",
    )
    bands: Bands | None = Field(
        None,
        description=f"mel bands; None: {BANDS} up to {WIDE_RATE:,} Hz, otherwise {WIDE_BANDS}",
    )
    window: Milliseconds = Field(25.0, description="length of a window in milliseconds")
    step: Milliseconds = Field(10.0, description="time between windows in milliseconds")
    normalize: Normalize = Field(
        "recording",
        description="standardize each band over the recording, over all recordings of the speaker "
        "(--speaker-column), or over the training set",
    )

    @classmethod
    def accepts(cls, source: Any) -> bool:
        return isinstance(source, Sound)

    def prepare(self, source: Any, changes: Counter[str]) -> Any:
        if source.seconds < self.window / 1000:
            raise too_short(source, self.window)
        if self.rate in (None, source.rate):
            return source
        changes[f"sounds of {source.rate:,} Hz converted to {self.rate:,} Hz"] += 1
        return resample(source, self.rate)

    def fit(
        self,
        sources: Sequence[Any],
        path: str,
        auto_settings: list[AutoSetting],
        like: Input | None = None,
    ) -> tuple[Input, "Sounds"]:
        """Return `like`, the input of a pretrained model, or an input fitted on these sounds."""
        if like is not None:
            return SoundInput.like(like), self
        for source in sources:
            if not isinstance(source, Sound):
                raise UserError(f"{path}: expected sounds, found {source!r:.80}")
        rate = self.rate or self._common_rate(sources, path, auto_settings)
        bands = self.bands or (BANDS if rate <= WIDE_RATE else WIDE_BANDS)
        made = SoundInput(Analysis(rate, bands, self.window, self.step), self.normalize)
        if self.normalize != "recording":
            made.mean, made.std = statistics(map(made.analyze, sources))
        return made, self.model_copy(update={"rate": rate, "bands": bands})

    def _common_rate(
        self, sources: Sequence[Any], path: str, auto_settings: list[AutoSetting]
    ) -> int:
        """Return the most common rate, at most SPEECH_RATE, and why."""
        rates = Counter(source.rate for source in sources)
        common = rates.most_common(1)[0][0]
        rate = min(common, SPEECH_RATE)
        others = {found: count for found, count in sorted(rates.items()) if found != rate}
        if others:
            shown = ", ".join(f"{count:,} of {found:,} Hz" for found, count in others.items())
            reason = "most common" if rate == common else "enough for speech"
            auto_settings.append(AutoSetting(f"{path}.rate", rate, f"{reason}; converts {shown}"))
        return rate

    def load(self, folder: Path) -> SoundInput:
        path = folder / "input.json"
        rate, bands, window, step, normalize, mean, std = read_fields(path, **FIELDS)
        expected = 0 if normalize == "recording" else bands
        if not len(mean) == len(std) == expected:
            raise corrupted(path, "mean and std: expected one number per band")
        return SoundInput(Analysis(rate, bands, window, step), normalize, mean, std)
