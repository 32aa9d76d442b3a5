"""Which sounds that a model made another model recognizes."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from regard.core.errors import UserError
from regard.data.reading.read import Example
from regard.data.reading.sounds import Sound, Speaker
from regard.data.reading.spoken import speaker_of
from regard.inference.predictor import Predictor
from regard.tasks.values import Evaluation

METRIC = "recognized"


def with_recognition(
    result: Evaluation, examples: Sequence[Example], recognizer: Predictor
) -> Evaluation:
    """Return the evaluation with the percentage of sounds that a recognizer reads as their texts.

    recognizer: a model that maps sounds to labels or texts.
    """
    if recognizer.task.source.kind != "sound":
        raise UserError(
            f"--recognizer {recognizer.folder}: expected a model that reads sounds, this one reads "
            f"{recognizer.task.source.plural}"
        )
    speakers: dict[str | None, Speaker] = {}
    sounds = []
    for prediction, example in zip(result.predictions, examples, strict=True):
        made, name = prediction.value.sound, speaker_of(example.source)
        speaker = speakers.setdefault(name, Speaker(name or "unknown")) if name else None
        sound = Sound(made.samples, made.rate, made.name, speaker)
        if speaker is not None:
            speaker.sounds.append(sound)
        sounds.append(recognizer.task.source.from_value(sound))
    found = recognizer.predict(sounds)
    texts = [str(example.source).strip() for example in examples]
    hits = sum(one.text.strip() == text for one, text in zip(found, texts, strict=True))
    return replace(result, scores=result.scores | {METRIC: 100 * hits / len(examples)})


def check_recognizer(predictor: Predictor, recognizer: Path | str | None) -> None:
    """Raise UserError if a recognizer is passed for a model that makes no sounds."""
    if recognizer and not predictor.config.task.writes_sounds:
        raise UserError(
            f"--recognizer: only supported for models that make sounds, found {predictor.task.kind}"
        )
