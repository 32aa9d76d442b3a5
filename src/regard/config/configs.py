"""What each task is made of: its data, its models, its objectives, its search."""

from typing import Annotated, Any

import yaml
from pydantic import Field, model_validator

from regard.core.options import Options
from regard.models.causal import CausalOptions
from regard.models.generator import GeneratorOptions
from regard.models.labeller import PooledOptions, TaggerOptions
from regard.models.masked import MaskedOptions
from regard.models.ngram import NGramOptions
from regard.objectives import (
    Absolute,
    CrossEntropy,
    Huber,
    Labels,
    Masked,
    NextSymbol,
    Squared,
    Tags,
)
from regard.optim.training_options import Training
from regard.search import Beam, Decide, Sample, Search
from regard.tasks.classify_options import ClassifyOptions
from regard.tasks.language_options import LanguageModelOptions
from regard.tasks.regress import RegressOptions
from regard.tasks.tag import TagOptions
from regard.tasks.transduce_options import TransduceOptions


class Config(Options):
    """Task, model, objective, training, search: all choices; facts of the data are none."""

    task: Any
    model: Any
    objective: Any
    training: Training = Training()
    search: Any

    def dump(self) -> str:
        """The configuration as YAML, every default written out."""
        return yaml.safe_dump(self.model_dump(mode="json"), sort_keys=False, allow_unicode=True)


class TransduceConfig(Config):
    """A sequence in, a sequence of its own length out."""

    task: TransduceOptions = TransduceOptions()
    model: GeneratorOptions = GeneratorOptions()
    objective: CrossEntropy = CrossEntropy()
    search: Search = Beam()


class TagConfig(Config):
    """A label for each word."""

    task: TagOptions = TagOptions()
    model: TaggerOptions = TaggerOptions()
    objective: Tags = Tags()
    search: Decide = Decide()

    @model_validator(mode="after")
    def _smoothing_counts(self) -> "TagConfig":
        if self.objective.smoothing and self.model.head == "crf":
            raise ValueError("objective.smoothing has no effect with model.head=crf; leave it out")
        return self


class ClassifyConfig(Config):
    """One label for a text or a vector, or several."""

    task: ClassifyOptions = ClassifyOptions()
    model: PooledOptions = PooledOptions()
    objective: Labels = Labels()
    search: Decide = Decide()


Number = Annotated[Squared | Absolute | Huber, Field(discriminator="kind")]


class RegressConfig(Config):
    """One number for a text or a vector, or several."""

    task: RegressOptions = RegressOptions()
    model: PooledOptions = PooledOptions()
    objective: Number = Squared()
    search: Decide = Decide()


Language = Annotated[CausalOptions | NGramOptions | MaskedOptions, Field(discriminator="kind")]
Gaps = Annotated[NextSymbol | Masked, Field(discriminator="kind")]


class LanguageModelConfig(Config):
    """Running text: the next symbol, or symbols that are masked."""

    task: LanguageModelOptions = LanguageModelOptions()
    model: Language = CausalOptions()
    objective: Gaps = NextSymbol()
    search: Sample = Sample()

    @model_validator(mode="before")
    @classmethod
    def _one_says_masked(cls, tree: Any) -> Any:
        """Where model or objective is masked and nothing is said of the other, it is as well."""
        parts = ("model", "objective")
        if not isinstance(tree, dict) or not all(isinstance(tree.get(p, {}), dict) for p in parts):
            return tree
        if "masked" not in [tree.get(part, {}).get("kind") for part in parts]:
            return tree
        return tree | {part: {"kind": "masked", **tree.get(part, {})} for part in parts}

    @model_validator(mode="after")
    def _parts_fit(self) -> "LanguageModelConfig":
        if (self.model.kind == "masked") != (self.objective.kind == "masked"):
            raise ValueError("model.kind=masked and objective.kind=masked go together")
        decoder = getattr(self.model, "decoder", None)
        if self.task.order == "sequential" and getattr(decoder, "kind", "") == "transformer":
            raise ValueError(
                "task.order=sequential carries memory on, which a Transformer lacks; choose random"
            )
        return self


CONFIGS: dict[str, type[Config]] = {
    config.model_fields["task"].default.kind: config
    for config in (TransduceConfig, TagConfig, ClassifyConfig, RegressConfig, LanguageModelConfig)
}
