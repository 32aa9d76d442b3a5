"""Synthesis: sounds from texts or phonemes."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from regard.baselines import Baseline, BaselineFit, MeanFrame
from regard.core.data_stats import DataStats
from regard.core.errors import UserError
from regard.core.files import write_json
from regard.core.suggest import did_you_mean
from regard.data.checks.check_spoken import SpokenCheck, check_spoken
from regard.data.corpus.corpora import Corpus, PairCorpus
from regard.data.corpus.ragged import Ragged
from regard.data.reading.read import Example, Pair
from regard.data.reading.sounds import Sound
from regard.data.reading.spoken import speaker_of
from regard.data.tokenizers.tokenizer import Tokenizer
from regard.inputs.made_sound import MadeSound
from regard.inputs.sounds import SoundInput
from regard.inputs.text import TextInput
from regard.metrics.numbers import WeightedScores
from regard.metrics.spectra import measure_sounds
from regard.models.speech_options import SpeechModelOptions
from regard.objectives import Objective
from regard.search.frame_search import FrameSearch
from regard.search.search import SearchRequest
from regard.search.spectrogram import Spectrogram
from regard.tasks.inspection.forced_pass import ForcedPass, InspectionRequest
from regard.tasks.rows import EncodedRows
from regard.tasks.task import Evaluation, Prediction, Task

MAX_SECONDS = 60.0  # of a sound, unless the user sets another maximum
EXTRA = 10  # frames beyond `ratio` that any sound may have


@dataclass(frozen=True)
class SoundPrediction(Prediction):
    """A prediction whose value is a sound. Its text is the duration."""

    def json_value(self) -> Any:
        """Return the sound as a WAV file in base64."""
        return self.value.as_dict()


class SynthesizeTask(Task):
    """The synthesis task.

    target: how sounds become frames. speakers: names, the most common first; empty without
    speakers. ratio: maximum number of frames per source token.
    """

    source: TextInput
    kind = "synthesize"
    unit = "sounds"
    uses_threads = True
    usage_hint = "regard predict {run} {source} --output FOLDER"

    def __init__(
        self,
        source: TextInput,
        target: SoundInput,
        speakers: Sequence[str],
        metric: str,
        ratio: float,
    ) -> None:
        self.source = source
        self.target = target
        self.speakers = list(speakers)
        self.metric = metric
        self.ratio = ratio
        self._frames: dict[int, tuple[Sound, np.ndarray]] = {}

    @property
    def tokenizer(self) -> Tokenizer:
        """The tokenizer of the sources."""
        return self.source.tokenizer

    def build(self, options: SpeechModelOptions) -> nn.Module:
        """Return a model with the sizes of vocabulary and frames, and the number of speakers."""
        return options.build(self.source.shape, self.target.analysis.bands, len(self.speakers))

    def parse(self, text: str) -> Any:
        """Return the source of an input line; raise UserError if no model can say it."""
        source = self.source.parse(text)
        if not str(source).strip():
            raise UserError("expected a text, found nothing", help="pass a text to say")
        if unknown := self.source.unknown(source):
            known = " ".join(self.source.alphabet()[5:])
            raise UserError(
                f"{text!r}: unknown tokens {' '.join(dict.fromkeys(unknown))}: the model can say "
                f"{known}",
                help="change the text, or train with texts that have these tokens",
            )
        return source

    def frames(self, sound: Sound) -> np.ndarray:
        """Return the log-mel features (S, F) of a sound."""
        if id(sound) not in self._frames:
            self._frames[id(sound)] = sound, self.target.analyze(sound).astype(np.float16)
        return self._frames[id(sound)][1]

    def corpus(self, pairs: Sequence[Pair]) -> Corpus:
        """Return the texts as token ids, and the sounds as standardized features."""
        mean, deviation = self.target.mean, self.target.std
        rows = [((self.frames(pair.target) - mean) / deviation) for pair in pairs]
        target = Ragged.from_arrays([row.astype(np.float32) for row in rows])
        return PairCorpus(self._encoded([pair.source for pair in pairs]), target)

    def _encoded(self, sources: Sequence[str]) -> Ragged:
        """Return the sources as token ids; the index of the speaker, if any, comes first."""
        encoded: Ragged = self.source.encode(sources)
        if not self.speakers:
            return encoded
        speakers = [[self.speaker(speaker_of(source))] for source in sources]
        rows = (encoded.row(index) for index in range(len(encoded)))
        return Ragged.of([[*one, *row.tolist()] for one, row in zip(speakers, rows, strict=True)])

    def speaker(self, name: str | None) -> int:
        """Return the index of a speaker, by default of the most common one."""
        if name is None:
            return 0
        if name not in self.speakers:
            known = ", ".join(self.speakers) or "none: train with --speaker-column"
            raise UserError(
                f"speaker {name}: unknown; the model knows {known}"
                f"{did_you_mean(name, self.speakers)}"
            )
        return self.speakers.index(name)

    def stats(self, corpus: Corpus) -> DataStats:
        """Return the data statistics from which default settings are chosen."""
        lengths, shape = corpus.lengths, self.source.shape
        return DataStats(
            len(corpus),
            int(lengths.sum()),
            self.target.analysis.bands,
            self.tokenizer.subwords,
            inputs=shape.size,
            source=shape.kind,
            target_tokens=int(lengths[:, 1].sum()),
            longest_target=int(lengths[:, 1].max(initial=0)),
        )

    def rows(self, sources: Sequence[Any]) -> EncodedRows:
        """Return the sources as token ids."""
        return EncodedRows(self._encoded(sources))

    def search_request(
        self, rows: EncodedRows, part: Sequence[int], search: FrameSearch
    ) -> SearchRequest:
        """Return the search request for one batch. part: indices of the sources in the batch."""
        indices = np.asarray(part)
        limits = [
            self.max_output_length(length, search) for length in rows.lengths[indices].tolist()
        ]
        source = rows.pad(indices)
        if search.speaker is not None:
            source.data[:, 0] = self.speaker(search.speaker)
        return SearchRequest(source, torch.tensor(limits))

    def max_output_length(self, length: int, search: FrameSearch) -> int:
        """Return the maximum number of frames for a source of this length."""
        analysis = self.target.analysis
        limit = analysis.windows(round((search.max_seconds or MAX_SECONDS) * analysis.rate))
        if search.max_seconds is None:
            longer = max(1.0, search.stretch)
            limit = min(limit, math.ceil(self.ratio * length * longer) + EXTRA)
        return max(1, limit)

    def make_prediction(
        self, source: Any, row: np.ndarray | None, found: Spectrogram, search: Any, nbest: int
    ) -> Prediction:
        """Return the sound of standardized features."""
        features = found.frames * self.target.std + self.target.mean
        made = MadeSound(features, self.target.analysis)
        return SoundPrediction(
            f"{made.seconds:.2f} s",
            None,
            unknown_tokens=self.source.unknown(source),
            folded=self.source.folded(source),
            truncated=found.truncated,
            value=made,
        )

    def compute_metrics(
        self, predictions: Sequence[Prediction], examples: Sequence[Example]
    ) -> WeightedScores:
        """Return mcd, duration_error and stop_errors."""
        expected = [self.frames(example.references[0]) for example in examples]
        made = [prediction.value.features for prediction in predictions]
        return measure_sounds(made, expected, [one.truncated for one in predictions])

    def baseline_fits(self) -> list[BaselineFit]:
        """Return the mean frame."""
        fit = partial(_fit_mean_frame, self)
        return [BaselineFit(MeanFrame.name, fit)]

    def score_baseline(
        self, baseline: Baseline, examples: Sequence[Example], objective: Objective
    ) -> dict[str, float]:
        """Return the metrics of a baseline."""
        analysis = self.target.analysis
        made = [MadeSound(one, analysis) for one in baseline.predict([e.source for e in examples])]
        return self.compute_metrics(
            [Prediction("", None, value=one) for one in made], examples
        ).scores()

    def forced_pass(self, request: InspectionRequest) -> ForcedPass:
        raise UserError(
            f"inspection is not supported for task {self.kind}",
            help="use regard plot synthesis RUN",
        )

    def samples(self, evaluation: Evaluation, examples: Sequence[Example]) -> list[dict[str, Any]]:
        """Return a fixed random sample of examples with the durations of their sounds."""
        named = [Example(e.source, (f"{e.references[0].seconds:.2f} s",)) for e in examples]
        return [{"kind": "number", **row} for row in super().samples(evaluation, named)]

    def check(self, train: Sequence[Pair], dev: Sequence[Pair]) -> SpokenCheck:
        """Return statistics of the texts and the sounds, and warnings about the data."""
        return check_spoken(train, dev)

    def save(self, folder: Path) -> None:
        """Write both sides to `vocabulary/` in the run folder."""
        path = folder / "vocabulary"
        (path / "target").mkdir(parents=True, exist_ok=True)
        self.source.save(path)
        self.target.save(path / "target")
        names = ("speakers", "metric", "ratio")
        write_json(path / "task.json", {name: getattr(self, name) for name in names})


def _fit_mean_frame(
    task: SynthesizeTask, sources: Sequence[Any], targets: Sequence[Sound]
) -> MeanFrame | None:
    """Return the baseline for these sounds."""
    return MeanFrame.fit(sources, [task.frames(sound) for sound in targets])
