"""The configuration of each task: its data, model, objective, training and search."""

from typing import Annotated, Any

import yaml
from pydantic import Field, model_validator

from regard.config.implied import implied_settings, with_implied
from regard.core.options import Options, kinds_of
from regard.models.causal import CausalOptions
from regard.models.encoder_decoder import EncoderDecoderOptions
from regard.models.encoder_model import PooledOptions, TaggerOptions
from regard.models.masked import MaskedOptions
from regard.models.ngram import NGramOptions
from regard.models.speech_options import SpeechModelOptions
from regard.objectives import (
    ClassifyObjective,
    CrossEntropy,
    FrameLoss,
    Labels,
    LanguageObjective,
    NextToken,
    RegressObjective,
    Squared,
    SynthesizeObjective,
    TagObjective,
    Tags,
    TransduceObjective,
)
from regard.optim.training_options import Training
from regard.search import (
    Argmax,
    Beam,
    LabelSearch,
    Sample,
    SequenceSearch,
    SoundSearch,
    TextSearch,
    Unroll,
)
from regard.tasks.classify_options import ClassifyOptions
from regard.tasks.language_options import LanguageModelOptions
from regard.tasks.regress import RegressOptions
from regard.tasks.synthesize_options import SynthesizeOptions
from regard.tasks.tag import TagOptions
from regard.tasks.transduce_options import TransduceOptions


class Config(Options):
    """All settings: task, model, objective, training and search."""

    task: Any
    model: Any
    objective: Any
    training: Training = Training()
    search: Any

    @model_validator(mode="before")
    @classmethod
    def _add_implied(cls, tree: Any) -> Any:
        """Choose kinds of model, objective and search that fit those that are set."""
        return with_implied(tree, implied_settings(cls, tree))

    @model_validator(mode="after")
    def _check_kinds(self) -> "Config":
        gives = self.model.gives
        for name, part in (("objective", self.objective), ("search", self.search)):
            if gives not in part.takes:
                takes = " or ".join(sorted(part.takes))
                kinds = kinds_of(type(self).model_fields[name].annotation)
                fitting = [kind for kind, one in kinds.items() if gives in one.takes]  # type: ignore[attr-defined]
                other = f"; use {name}.kind={' or '.join(fitting)}" if fitting else ""
                raise ValueError(
                    f"{name} {part.kind}: requires a model that outputs {takes}, this one outputs "
                    f"{gives}{other}"
                )
        if self.objective.searches and self.training.parallel == "fsdp":
            raise ValueError(
                f"training.parallel=fsdp: not supported with objective {self.objective.kind}, "
                "which searches with the full weights in training; use ddp"
            )
        return self

    def dump(self) -> str:
        """Return the configuration as YAML, including defaults."""
        return yaml.safe_dump(self.model_dump(mode="json"), sort_keys=False, allow_unicode=True)


class TransduceConfig(Config):
    """Settings for sequence-to-sequence models."""

    task: TransduceOptions = TransduceOptions()
    model: EncoderDecoderOptions = EncoderDecoderOptions()
    objective: TransduceObjective = CrossEntropy()
    search: SequenceSearch = Beam()

    @model_validator(mode="after")
    def _has_ctc_layer(self) -> "TransduceConfig":
        reads, decoder = self.objective.reads, self.model.decoder
        if "frames" in reads and not self.model.ctc:
            raise ValueError("objective.ctc_weight: requires model.ctc=true; omit model.ctc")
        if self.model.ctc and "frames" not in reads:
            raise ValueError(
                f"model.ctc=true: objective {self.objective.kind} does not train this layer; "
                "use objective cross_entropy with a ctc_weight, or omit model.ctc"
            )
        if "alignment" in reads and not decoder.aligns:
            kinds = kinds_of(type(decoder).model_fields["cross"].annotation)
            fitting = [kind for kind, one in kinds.items() if one.aligns]  # type: ignore[attr-defined]
            raise ValueError(
                f"objective.guided_attention: cross {decoder.cross.kind} has no attention weights "  # type: ignore[union-attr]
                f"that training can read; use model.decoder.cross={' or '.join(fitting)}"
            )
        return self


class TagConfig(Config):
    """Settings for taggers, which predict one label per word."""

    task: TagOptions = TagOptions()
    model: TaggerOptions = TaggerOptions()
    objective: TagObjective = Tags()
    search: LabelSearch = Argmax()

    @model_validator(mode="after")
    def _smoothing_counts(self) -> "TagConfig":
        if self.objective.label_smoothing and self.model.head == "crf":
            raise ValueError("objective.label_smoothing: not supported with model.head=crf")
        return self


class ClassifyConfig(Config):
    """Settings for classifiers, which predict one or more labels per text or vector."""

    task: ClassifyOptions = ClassifyOptions()
    model: PooledOptions = PooledOptions()
    objective: ClassifyObjective = Labels()
    search: LabelSearch = Argmax()


class RegressConfig(Config):
    """Settings for regression models, which predict one or more numbers per text or vector."""

    task: RegressOptions = RegressOptions()
    model: PooledOptions = PooledOptions()
    objective: RegressObjective = Squared()
    search: LabelSearch = Argmax()


Language = Annotated[CausalOptions | NGramOptions | MaskedOptions, Field(discriminator="kind")]


class LanguageModelConfig(Config):
    """Settings for language models, which predict next or masked tokens of plain text."""

    task: LanguageModelOptions = LanguageModelOptions()
    model: Language = CausalOptions()
    objective: LanguageObjective = NextToken()
    search: TextSearch = Sample()

    @model_validator(mode="after")
    def _memory_is_carried(self) -> "LanguageModelConfig":
        decoder = getattr(self.model, "decoder", None)
        if self.task.window_order == "sequential" and not getattr(decoder, "carries", True):
            raise ValueError(
                "task.window_order=sequential: a Transformer has no state; use shuffled"
            )
        return self


class SynthesizeConfig(Config):
    """Settings for synthesis, which makes sounds from texts."""

    task: SynthesizeOptions = SynthesizeOptions()
    model: SpeechModelOptions = SpeechModelOptions()
    objective: SynthesizeObjective = FrameLoss()
    search: SoundSearch = Unroll()


CONFIGS: dict[str, type[Config]] = {
    config.model_fields["task"].default.kind: config
    for config in (
        TransduceConfig,
        TagConfig,
        ClassifyConfig,
        RegressConfig,
        LanguageModelConfig,
        SynthesizeConfig,
    )
}
