"""The Synthesizer estimator: sounds from texts."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from regard.config.load import Config
from regard.core.argument_names import names_arguments
from regard.core.errors import UserError, info
from regard.data.reading.read import Pair
from regard.data.reading.sounds import Sound
from regard.data.reading.spoken import SpokenText
from regard.estimators.estimator import Estimator
from regard.estimators.media_rows import media_rows
from regard.estimators.rows import check_present, to_columns, to_rows
from regard.inputs.made_sound import MadeSound

if TYPE_CHECKING:
    from typing_extensions import Self


class Synthesizer(Estimator):
    """Synthesis (text to speech).

    `fit` takes texts X and sounds y: names of files, or arrays of samples with `rate`.
    """

    task = "synthesize"

    @names_arguments
    def fit(  # type: ignore[override]
        self, X: Any, y: Any = None, speakers: Any = None, dev: Any = None
    ) -> "Self":
        """Train on texts X and sounds y, or on pairs X = [(text, sound), ...].

        X, y: lists. Sounds are names of files, or arrays of samples with `rate`. speakers: the
        name of the speaker of each sound. dev: the dev set, as pairs or as a tuple (X, y) or
        (X, y, speakers). Default: hold out some of the sounds.
        """
        pairs, config = self._to_pairs(X, y, speakers), self._config()
        held_out = self._dev(dev)
        if held_out is None:
            pairs, held_out = self._hold_out(config, pairs)
        pairs, sampled = config.task.sample(pairs, config.training.seed)
        for note in sampled if self.verbose else ():
            info(note)
        return self._train(config, pairs, held_out, None)

    def _dev(self, dev: Any) -> list[Pair] | None:
        """Convert `dev` to examples."""
        if dev is None:
            return None
        both = isinstance(dev, tuple) and len(dev) in (2, 3) and not isinstance(dev[0], str)
        return self._to_pairs(*dev) if both else self._to_pairs(dev, None)

    def _hold_out(self, config: Config, pairs: list[Pair]) -> tuple[list[Pair], list[Pair]]:
        train, dev = config.task.hold_out(pairs)
        return list(train), list(dev)

    def _to_pairs(self, X: Any, y: Any, speakers: Any = None) -> list[Pair]:
        """Convert texts, sounds and speakers to examples."""
        texts, rows = to_columns(X, y)
        sounds = self._sounds(rows)
        names = [None] * len(texts) if speakers is None else to_rows(speakers, "speakers")
        if len(names) != len(texts):
            raise UserError(f"X has {len(texts)} examples, but speakers has {len(names)}")
        found = []
        for number, (text, sound, name) in enumerate(zip(texts, sounds, names, strict=True), 1):
            if speakers is not None:
                check_present(name, number, "a speaker")
            source = SpokenText(_text(text, number), None if name is None else str(name))
            found.append(Pair(source, sound, number))
        return found

    def _sounds(self, rows: list[Any]) -> list[Sound]:
        """Return rows as sounds."""
        notes: list[str] = []
        prepare = self._config().task.target.prepare
        rate = self.rate or (self._target_rate() if hasattr(self, "predictor_") else None)
        found = media_rows(rows, prepare, notes, rate)
        if found is None or not all(isinstance(one, Sound) for one in found):
            raise UserError(
                "y: expected names of sound files, or arrays of samples",
                help=f"pass rate=16000 to {type(self).__name__} for arrays",
            )
        for note in notes if self.verbose else ():
            info(note)
        return found

    def _target_rate(self) -> int:
        """Return the sampling rate of the fitted model."""
        task: Any = self.predictor_.task
        rate: int = task.target.analysis.rate
        return rate

    def _to_sources(self, X: Any) -> list[Any]:
        texts = [_text(row, number) for number, row in enumerate(to_rows(X), 1)]
        return [self.predictor_.task.parse(text) for text in texts]

    @names_arguments
    def predict(
        self, X: Sequence[str], speaker: str | None = None, batch_size: int = 64, **search: Any
    ) -> list[MadeSound]:
        """Return the sound of each text, with the attributes `samples` and `rate`.

        The method `save(path)` of a sound writes a WAV file. X: texts. speaker: name of the
        speaker; None: the most common one. batch_size: texts per batch; it does not change
        predictions. search: search options, such as `speed=1.2` for models with durations.
        """
        found = self.predict_detailed(X, 1, batch_size, speaker=speaker, **search)
        return [prediction.value for prediction in found]

    @property
    def speakers_(self) -> list[str]:
        """The names of the speakers, the most common one first."""
        task: Any = self.task_
        names: list[str] = task.speakers
        return names


def _text(value: Any, number: int) -> str:
    """Return a text of an example. Raise UserError if it is empty or no text."""
    check_present(value, number, "a text")
    if not isinstance(value, str):
        raise UserError(f"example {number}: expected a text, found {type(value).__name__}")
    if not value.strip():
        raise UserError(f"example {number}: expected a text, found nothing")
    return value
