"""Sounds that a model made: features, and the samples that are estimated from them.

T samples, S windows, F bands.
"""

import base64
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from regard.core.files import write_bytes
from regard.data.reading.sounds import Sound, quantize
from regard.data.reading.wav import wav_bytes
from regard.inputs.griffin_lim import to_samples
from regard.inputs.log_mel import Analysis


class MadeSound:
    """A sound as log-mel features (S, F). The samples are computed when they are first needed."""

    def __init__(self, features: np.ndarray, analysis: Analysis) -> None:
        self.features, self.analysis = features, analysis

    @property
    def rate(self) -> int:
        """Return the sampling rate in Hz."""
        return self.analysis.rate

    @property
    def seconds(self) -> float:
        """Return the duration."""
        return ((len(self.features) - 1) * self.analysis.hop + self.analysis.length) / self.rate

    @cached_property
    def samples(self) -> np.ndarray:
        """Return the samples (T,), int16."""
        return quantize(to_samples(self.features, self.analysis).astype(np.float32))

    @property
    def sound(self) -> Sound:
        """Return the sound as a source of other models."""
        return Sound(self.samples, self.rate, "synthesized sound")

    def wav(self) -> bytes:
        """Return the sound as a WAV file."""
        return wav_bytes(self.samples, self.rate)

    def save(self, path: str | Path) -> None:
        """Write a WAV file atomically."""
        write_bytes(Path(path), self.wav())

    def as_dict(self) -> dict[str, Any]:
        """Return the sound for JSON: the bytes of a WAV file in base64, and their MIME type."""
        return {"data": base64.b64encode(self.wav()).decode("ascii"), "type": "audio/wav"}

    def __len__(self) -> int:
        return len(self.samples)

    def __repr__(self) -> str:
        return f"MadeSound({self.seconds:.2f} s, {self.rate} Hz)"
