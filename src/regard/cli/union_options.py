"""Command-line options generated from the settings classes of the searches and the server.

The options are generated when a command is called, because importing the classes imports torch.
"""

import functools
import inspect
from collections.abc import Callable, Iterable
from inspect import Parameter
from types import NoneType
from typing import Annotated, Any, get_args

import typer
from typer.core import TyperGroup

SEARCH = "Beam search"
SAMPLING = "Sampling (default for language models; otherwise with --sample)"
SYNTHESIS = "Synthesis"
PANELS = {
    "beam": SEARCH,
    "sample": SAMPLING,
    "unroll": SYNTHESIS,
    "expand": SYNTHESIS,
}  # by kind of search; default: name of the kind
# Help texts in the order of the options; default: the description of the field.
# nbest, settings and sample are options of the commands themselves.
HELP = {
    "beam": "Beam size (1 = greedy search).",
    "nbest": "",
    "length_penalty": "Length penalty exponent; larger values favor longer outputs.",
    "length_norm": "Length normalization: average (L^p), gnmt (((5+L)/6)^p) or none.",
    "coverage_penalty": "Coverage penalty weight for source tokens without attention (GNMT).",
    "stopping": "When to stop the beam search: first, no_gain, beam_full or optimal.",
    "beam_groups": "Number of groups for diverse beam search (divides the beam).",
    "diversity_penalty": "Diversity penalty between beam groups.",
    "min_length": "Minimum output length in tokens.",
    "max_length": "Maximum output length in tokens (default: derived from the source length).",
    "no_repeat_ngram": "Forbid repeated n-grams of this size.",
    "settings": "",
    "sample": "",
    "temperature": "Softmax temperature (0 = greedy).",
    "top_k": "Sample from the k most probable tokens.",
    "top_p": "Nucleus sampling: smallest token set with total probability >= p.",
    "min_p": "Drop tokens less probable than min_p times the most probable one.",
    "seed": "Random seed for sampling.",
    "speaker": "Speaker of the sound (default: the most common one of the training data).",
    "max_seconds": "Maximum length of a sound in seconds (default: derived from the text).",
    "stop_threshold": "Probability of the end at which a sound ends (decoders with steps).",
    "speed": "Speed of speech, which divides the durations (decoder parallel).",
}
MORE: dict[str, dict[str, Any]] = {"beam": {"min": 1}, "no_repeat_ngram": {"metavar": "N"}}

SampleFlag = Annotated[
    bool, typer.Option("--sample", help="Sample instead of beam search.", rich_help_panel=SAMPLING)
]
SearchSettings = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="search.KEY=VALUE",
        help="Override any search.* setting (repeatable).",
        rich_help_panel=SEARCH,
    ),
]
Command = Callable[..., None]
Make = Callable[[list[Parameter]], Iterable[Parameter]]


def option(
    name: str, field: Any, panel: str, words: str = "", default: Any = None, **more: Any
) -> Parameter:
    """Return the option for a settings field. words: help text (default: the description)."""
    kinds = [kind for kind in get_args(field.annotation) or (field.annotation,) if kind != NoneType]
    kind: Any = kinds[0] if kinds[0] in (int, float) else str
    words = words or f"{field.description[:1].upper()}{field.description[1:]}."
    about = typer.Option(help=words, rich_help_panel=panel, **more)
    made: Any = Annotated[kind | None if default is None else kind, about]
    return Parameter(name, Parameter.KEYWORD_ONLY, default=default, annotation=made)


def with_search(own: list[Parameter]) -> list[Parameter]:
    """Return the parameters of a command plus one per setting of each kind of search.

    The new parameters start at the command's first parameter that is named in `HELP`, and have the
    order of `HELP`. A parameter without a value keeps the model's setting.
    """
    from regard.core.options import kinds_of
    from regard.search import SequenceSearch, SoundSearch, TextSearch

    made = {one.name: one for one in own if one.name in HELP}
    every = kinds_of(SequenceSearch) | kinds_of(TextSearch) | kinds_of(SoundSearch)
    for kind, settings in every.items():
        for name, field in settings.model_fields.items():
            if name != "kind" and name not in made:
                about = PANELS.get(kind, kind), HELP.get(name, "")
                made[name] = option(name, field, *about, **MORE.get(name, {}))
    ordered = [made.pop(name) for name in HELP if name in made]
    index = min(index for index, one in enumerate(own) if one.name in HELP)
    rest = [one for one in own[index:] if one.name not in HELP]
    return [*own[:index], *ordered, *made.values(), *rest]


def with_parameters(make: Make) -> Callable[[Command], Command]:
    """Return a decorator for a command that gets additional parameters as keyword arguments.

    make: takes the command's own parameters and returns the full list of parameters.
    """

    def decorate(command: Command) -> Command:
        parameters = inspect.signature(command).parameters.values()
        own = [one for one in parameters if one.kind is not Parameter.VAR_KEYWORD]
        listed = _with_parameters(command, own)
        vars(listed)["complete"] = lambda: _with_parameters(command, make(own))
        return listed

    return decorate


def _with_parameters(command: Command, parameters: Iterable[Parameter]) -> Command:
    """Return the command with these keyword parameters."""

    @functools.wraps(command)
    def called(**given: Any) -> None:
        command(**given)

    named = [one.replace(kind=Parameter.KEYWORD_ONLY) for one in parameters]
    vars(called)["__signature__"] = inspect.Signature(named)
    called.__annotations__ = {one.name: one.annotation for one in named}
    return called


class CommandGroup(TyperGroup):
    """A command group that adds generated options when a command is called."""

    def resolve_command(self, ctx: Any, args: list[str]) -> tuple[str | None, Any, list[str]]:
        """Return the called command with all its options."""
        name, command, rest = super().resolve_command(ctx, args)
        return name, command and self.completed(name or ""), rest

    def completed(self, name: str) -> Any:
        """Return the command of this name with all its options, including generated ones."""
        complete = getattr(self.commands[name].callback, "complete", None)
        if complete is None:
            return self.commands[name]
        alone = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
        alone.command(name)(complete())
        return typer.main.get_command(alone)
