"""A sound in an inspection: its samples, its features, and the times of positions.

T samples, S windows, F bands.
"""

import base64
from dataclasses import dataclass
from typing import Any

import numpy as np

from regard.data.reading.wav import wav_bytes
from regard.inputs.log_mel import band_edges
from regard.tasks.inspection.forced_pass import InspectionRequest
from regard.views.figures.sound_panels import envelope

CLIP = 3.0  # standard deviations from the mean at which colors of features are clipped


@dataclass(frozen=True, kw_only=True)
class SoundView:
    """A sound as the model reads it.

    samples: (T,), int16. features: (S, F), standardized per band. hertz: lowest and highest
    frequency of the bands. window, step: in seconds. stride: windows per position of the model.
    """

    rate: int
    samples: np.ndarray
    features: np.ndarray
    hertz: tuple[float, float]
    window: float
    step: float
    stride: int

    @property
    def seconds(self) -> float:
        """Return the duration."""
        return len(self.samples) / self.rate

    def as_dict(self) -> dict[str, Any]:
        """Return the sound for JSON: a WAV file, the waveform as minima and maxima, features."""
        scaled = np.clip((self.features + CLIP) / (2 * CLIP), 0, 1) * 255
        pixels = np.ascontiguousarray(np.rint(scaled).astype(np.uint8))
        return {
            "wav": base64.b64encode(wav_bytes(self.samples, self.rate)).decode("ascii"),
            "rate": self.rate,
            "seconds": round(self.seconds, 4),
            "waveform": envelope(self.samples).tolist(),
            "features": {
                "shape": list(pixels.shape),
                "u8": base64.b64encode(pixels.tobytes()).decode("ascii"),
            },
            "hertz": [round(one) for one in self.hertz],
            "window": self.window,
            "step": self.step,
            "stride": self.stride,
        }


def sound_view(request: InspectionRequest) -> SoundView:
    """Return the sound of an inspection."""
    source: Any = request.task.source
    sound, analysis = source.fitted(request.source), source.analysis
    features = source.analyze(request.source)
    deviation = np.maximum(features.std(0), 1e-2)
    edges = band_edges(analysis.rate, analysis.bands)
    return SoundView(
        rate=sound.rate,
        samples=sound.samples,
        features=(features - features.mean(0)) / deviation,
        hertz=(float(edges[0]), float(edges[-1])),
        window=analysis.length / analysis.rate,
        step=analysis.hop / analysis.rate,
        stride=request.stride,
    )


def times(sound: dict[str, Any], positions: int, per: int = 1) -> np.ndarray:
    """Return the time in seconds at the middle of each position, or of `per` frames of each."""
    step = sound["step"] * sound["stride"] / per
    found: np.ndarray = sound["window"] / 2 + (np.arange(positions * per) + (1 - per) / 2) * step
    return found
