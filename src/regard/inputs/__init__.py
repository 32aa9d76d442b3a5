"""The registries of inputs and frontends: unions of their options.

An input encodes sources as numbers. A frontend is the module that turns these into vectors.
"""

from collections.abc import Sequence
from typing import Annotated, Any

from pydantic import Field

from regard.core.errors import UserError
from regard.core.options import AutoSetting, kinds_of
from regard.data.tokenizers.tokenizer import TableTokenizer, Tokenizer
from regard.inputs.frontend import FrontendOptions
from regard.inputs.graph_frontends import GraphFrontendOptions, NodeFrontendOptions
from regard.inputs.graph_options import GraphOptions
from regard.inputs.image_cnn import CnnFrontendOptions
from regard.inputs.image_frontends import (
    FlatFrontendOptions,
    GridFrontendOptions,
    PatchFrontendOptions,
)
from regard.inputs.images import Images
from regard.inputs.input import Input, InputOptions
from regard.inputs.sound_frontends import ConvolvedFrontendOptions, FramesFrontendOptions
from regard.inputs.sound_options import Sounds
from regard.inputs.text import Text, TextInput, TokenEmbedderOptions
from regard.inputs.vectors import VectorFrontendOptions, Vectors
from regard.inputs.words import WordFrontendOptions, WordInput, Words

Inputs = Annotated[
    Text | Words | Vectors | Images | Sounds | GraphOptions, Field(discriminator="kind")
]
Frontends = Annotated[
    TokenEmbedderOptions
    | WordFrontendOptions
    | VectorFrontendOptions
    | GridFrontendOptions
    | FlatFrontendOptions
    | PatchFrontendOptions
    | ConvolvedFrontendOptions
    | FramesFrontendOptions
    | CnnFrontendOptions
    | GraphFrontendOptions
    | NodeFrontendOptions,
    Field(discriminator="kind"),
]


def fit_input(
    options: InputOptions,
    sources: Sequence[Any],
    path: str,
    auto_settings: list[AutoSetting],
    like: Input | None = None,
) -> tuple[Input, InputOptions]:
    """Return the input fitted on these sources, and its options with all values set.

    If the kind of `options` does not accept the sources, another kind is chosen.
    path: config path of the options, for messages. like: input of a pretrained model to keep.
    """
    if not options.accepts(sources[0]):
        kinds: Any = kinds_of(Inputs)
        fitting = [kind for kind, one in kinds.items() if one.accepts(sources[0])]
        if not fitting:
            known = ", ".join(f"{kind} as {one.examples[0]!r}" for kind, one in kinds.items())
            raise UserError(
                f"{path}: no input kind supports {sources[0]!r:.80}; available: {known}"
            )
        options = kinds[fitting[0]]()
        auto_settings.append(AutoSetting(f"{path}.kind", options.kind, "the kind of the sources"))
    return options.fit(sources, path, auto_settings, like)


def token_input(tokenizer: Tokenizer, chars: TableTokenizer | None) -> Input:
    """Return the input of a language model.

    chars: character vocabulary, if the model also reads the characters of words. Taggers can then
    be initialized from the model.
    """
    if chars is None:
        return TextInput(tokenizer, lowercase=False, add_bos=False, folds=False)
    assert isinstance(tokenizer, TableTokenizer)
    return WordInput(tokenizer, chars)


def default_frontend(kind: str, encoder: Any = None) -> FrontendOptions:
    """Return the default frontend for an input of this kind and the options of an encoder.

    encoder: its `uses` and `direct` decide between several frontends.
    """
    kinds: Any = kinds_of(Frontends).values()
    uses, direct = (encoder.uses, encoder.direct) if encoder else (frozenset(), False)
    return next(one() for one in kinds if one.reads == kind and one.suits(uses, direct))


def check_frontend(frontend: FrontendOptions, kind: str, encoder: Any = None) -> None:
    """Raise UserError if the frontend does not read inputs of this kind."""
    if frontend.reads != kind:
        raise UserError(
            f"model.frontend.kind={frontend.kind}: reads {frontend.reads}, found {kind}",
            help=f"use {default_frontend(kind, encoder).kind}",
        )
