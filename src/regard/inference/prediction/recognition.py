"""Which sounds that a model made another model recognizes."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from regard.core.errors import UserError, note
from regard.core.formatting import count_noun
from regard.data.reading.media import show_names
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
    texts = [str(example.source).strip() for example in examples]
    _check_labels(recognizer, texts)
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
    hits = sum(one.text.strip() == text for one, text in zip(found, texts, strict=True))
    return replace(result, scores=result.scores | {METRIC: 100 * hits / len(examples)})


def _check_labels(recognizer: Predictor, texts: Sequence[str]) -> None:
    """Raise UserError if a recognizer of labels knows none of the texts; note how many it lacks."""
    labels = getattr(recognizer.task, "labels", None)
    if labels is None:
        return
    unknown = sorted({text for text in texts if text not in labels})
    where = f"--recognizer {recognizer.folder}"
    if len(unknown) == len(set(texts)):
        raise UserError(
            f"{where}: its labels are {show_names(labels)}: expected the texts of the data, "
            f"{show_names(unknown)}",
            help="train it on the same texts: --task classify --target-column TEXT",
        )
    if unknown:
        names = show_names(unknown)
        note(f"{where}: {count_noun(len(unknown), 'text')} not among its labels: {names}")


def check_recognizer(predictor: Predictor, recognizer: Path | str | None) -> None:
    """Raise UserError if a recognizer is passed for a model that makes no sounds."""
    if recognizer and not predictor.config.task.writes_sounds:
        raise UserError(
            f"--recognizer: only supported for models that make sounds, found {predictor.task.kind}"
        )
