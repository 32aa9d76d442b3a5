"""Options of synthesis: how texts are tokenized, and sounds become frames."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from pydantic import Field

from regard.core.errors import UserError
from regard.core.files import read_fields
from regard.core.options import AutoSetting
from regard.data.reading.read import Pair, Pairs, split_dev
from regard.data.reading.spoken import speaker_of
from regard.data.sources.open import DataSpec
from regard.data.sources.spoken import read_spoken
from regard.data.tokenizers.build import build_tokenizer
from regard.inputs.sound_options import Sounds
from regard.inputs.sounds import SoundInput
from regard.inputs.text import Text, TextInput
from regard.inputs.tokenizers import choose_form, choose_size
from regard.tasks.synthesize import SynthesizeTask
from regard.tasks.task_options import TaskOptions

MAX_RATIO = 100_000.0  # frames per token
Ratio = Annotated[float, Field(gt=0, le=MAX_RATIO)]
Metric = Literal["mcd", "duration_error"]


class Frames(Sounds):
    """Options of sounds as targets: log-mel features, standardized over the training set."""

    normalize: Literal["global"] = Field(
        "global", description="standardize each band over the training set"
    )


class SynthesizeOptions(TaskOptions):
    """Options of synthesis (text to speech)."""

    writes_sounds: ClassVar[bool] = True
    kind: Literal["synthesize"] = "synthesize"
    source: Text = Field(Text(), description="tokenizer of the texts; auto: characters")
    target: Frames = Field(Frames(), description="how sounds become frames")
    metric: Metric = Field("mcd", description="metric that selects the best checkpoint")

    def read(self, spec: DataSpec) -> Pairs:
        """Return the texts of a table with the sounds in the files that it names."""
        return read_spoken(spec, self.target.prepare)

    def hold_out(self, pairs: list[Pair]) -> tuple[Sequence[Pair], list[Pair]]:
        """Split the examples by their sounds: several sounds may have the same text."""
        turned = [Pair(pair.target, pair.source, pair.line) for pair in pairs]
        train, dev = split_dev(turned)
        back = [[Pair(one.target, one.source, one.line) for one in part] for part in (train, dev)]
        return back[0], back[1]

    def fit(
        self, pairs: Sequence[Pair], model: Any = None, like: Any = None
    ) -> tuple[SynthesizeTask, "SynthesizeOptions", list[AutoSetting]]:
        """Fit the task to examples. Return the task, complete options and automatic settings."""
        if like is not None:
            raise UserError("--init-from: not supported for task synthesize")
        auto_settings: list[AutoSetting] = []
        source, text = self._fit_source([str(pair.source) for pair in pairs], auto_settings)
        sounds = [pair.target for pair in pairs]
        target, frames = self.target.fit(sounds, "task.target", auto_settings)
        assert isinstance(target, SoundInput)
        counts = Counter(filter(None, (speaker_of(pair.source) for pair in pairs)))
        speakers = [name for name, _ in counts.most_common()]
        task = SynthesizeTask(source, target, speakers, self.metric, 1.0)
        lengths = task.corpus(pairs).lengths.astype(np.float64)  # (N, 2)
        task.ratio = round(1.3 * float(np.quantile(lengths[:, 1] / lengths[:, 0], 0.999)), 3)
        options = self.model_copy(update={"source": text, "target": frames})
        return task, options, auto_settings

    def _fit_source(
        self, texts: list[str], auto_settings: list[AutoSetting]
    ) -> tuple[TextInput, Text]:
        """Return the input of the texts, by default of characters, and its complete options."""
        tree, path = self.source.model_dump(), "task.source"
        tree["tokenizer"] = "char" if tree["tokenizer"] == "auto" else tree["tokenizer"]
        tree["lowercase"] = bool(tree["lowercase"])
        texts = [text.lower() for text in texts] if tree["lowercase"] else texts
        choose_form(tree, path, texts, auto_settings)
        choose_size(tree, path, texts, auto_settings)
        built = build_tokenizer(tree["tokenizer"], texts, tree["vocab_size"], tree["normalization"])
        return TextInput(built, tree["lowercase"], add_bos=False), Text(**tree)

    def load(self, folder: Path) -> SynthesizeTask:
        """Return the task that `SynthesizeTask.save` wrote to a run folder."""
        path = folder / "vocabulary"
        speakers, metric, ratio = read_fields(
            path / "task.json", speakers=list[str], metric=Metric, ratio=Ratio
        )
        target = self.target.load(path / "target")
        return SynthesizeTask(self.source.load(path), target, speakers, metric, ratio)
