"""Options of the input `sound`."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from pydantic import Field

from regard.core.errors import UserError
from regard.core.field_types import Finite, Positive
from regard.core.files import corrupted, read_fields
from regard.core.options import AutoSetting
from regard.data.reading.resample import resample
from regard.data.reading.sounds import MAX_RATE, MIN_RATE, Sound
from regard.inputs.input import Input, InputOptions
from regard.inputs.log_mel import Analysis
from regard.inputs.sounds import SoundInput, statistics, too_short
from regard.inputs.voices import UnknownVoice

SPEECH_RATE = 16_000  # Hz; speech needs no more
WIDE_RATE, BANDS, WIDE_BANDS = 11_025, 40, 80  # default number of bands, up to a rate and above
Rate = Annotated[int, Field(ge=MIN_RATE, le=MAX_RATE)]
Bands = Annotated[int, Field(gt=1, le=256)]
Milliseconds = Annotated[float, Field(ge=1, le=1000)]
Normalize = Literal["mean", "speaker", "recording", "global"]
FIELDS = {  # fields of input.json and their types
    "rate": Rate,
    "bands": Bands,
    "window": Milliseconds,
    "step": Milliseconds,
    "normalize": Normalize,
    "mean": list[Finite],
    "std": list[Positive],
}
VOICE = {"voice_bias": list[Finite], "voice_slope": list[Finite]}  # if normalized by speaker


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
    normalize: Normalize | None = Field(
        None,
        description="subtract the mean of each band over the recording, in which loud windows "
        "count more (mean), or over all recordings of the speaker (--speaker-column), or "
        "standardize over the recording or the training set; None: speaker if the speakers are "
        "known, otherwise mean",
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
        known = any(source.speaker for source in sources)
        if self.normalize == "speaker" and not known:
            raise UserError(
                f"{path}.normalize=speaker: the data has no speakers",
                help="pass --speaker-column COLUMN, or use normalize=mean",
            )
        rate = self.rate or self._common_rate(sources, path, auto_settings)
        bands = self.bands or (BANDS if rate <= WIDE_RATE else WIDE_BANDS)
        normalize = self.normalize or ("speaker" if known else "mean")
        made = SoundInput(Analysis(rate, bands, self.window, self.step), normalize)
        if normalize == "speaker":
            made.voice = made.fit_voice(sources)
        if normalize != "recording":
            made.mean, made.std = statistics(map(made.features, sources))
        filled = {"rate": rate, "bands": bands, "normalize": normalize}
        return made, self.model_copy(update=filled)

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
        voice = None
        if normalize == "speaker":
            pair = [np.asarray(values, np.float32) for values in read_fields(path, **VOICE)]
            if any(len(values) != bands for values in pair):
                raise corrupted(path, "voice_bias and voice_slope: expected one number per band")
            voice = UnknownVoice(*pair)
        return SoundInput(Analysis(rate, bands, window, step), normalize, mean, std, voice)
