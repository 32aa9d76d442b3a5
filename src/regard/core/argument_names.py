"""Errors for callers in Python: they name arguments (`init_from`), not options (`--init-from`)."""

import functools
import re
from collections.abc import Callable
from typing import ParamSpec, TypeVar

from regard.core.errors import UserError

Params = ParamSpec("Params")
Result = TypeVar("Result")

# Options with an argument of the same name, in `fit`, `predict`, `load`, `inspect` or `figure`.
SAME_NAME = (
    *("beam", "edges", "engine", "epochs", "head", "init-from", "layer", "max-tokens", "quantize"),
    *("shortlist", "steps", "unlabeled", "view"),
)
PHRASES = {  # texts about files or commands, and the same advice for a caller in Python
    "--dev FILE to train": "dev=pairs to fit",
    "--dev FILE": "dev=texts",
    "--sample, or search.kind=sample": "kind='sample'",
    "--to onnx": "engine='onnx'",
    "--task language-model": "a LanguageModel with",
    "choose the column with --target-column": "pass the labels as y",
    "check --target-column and the dev file": "check y and dev",
    "pass --speaker-column COLUMN, or use": "use",
    "train with --speaker-column": "pass speakers to fit",
    "a table of nodes with --edges FILE": "features of nodes with edges",
    "new nodes as a table with --edges": "features of new nodes with edges",
    "regard train DATA --task tag|classify|transduce --init-from MODEL": "pass it as init_from to "
    "fit of a Tagger, Classifier or Transducer",
}
SETTINGS = re.compile(r"--set [\w.]+=[\w.,+-]*\w(?: --set [\w.]+=[\w.,+-]*\w)*")
OPTION = re.compile(rf"(?<![\w-])--({'|'.join(SAME_NAME)})\b(?: (?:(\d+)|(torch)\b))?")


def to_arguments(text: str) -> str:
    """Return a message with arguments of Python functions in place of command-line options."""
    for phrase, replacement in PHRASES.items():
        text = text.replace(phrase, replacement)
    text = SETTINGS.sub(_settings, text).replace("--set ", "settings: ")
    return OPTION.sub(_argument, text)


def _settings(found: re.Match[str]) -> str:
    """Return `--set a.b=1 --set c=d` as `settings={'a.b': 1, 'c': 'd'}`."""
    pairs = [part.split("=", 1) for part in found[0].removeprefix("--set ").split(" --set ")]
    values = [f"{key!r}: {value if _is_number(value) else repr(value)}" for key, value in pairs]
    return f"settings={{{', '.join(values)}}}"


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _argument(found: re.Match[str]) -> str:
    name, number, word = found[1].replace("-", "_"), found[2], found[3]
    return f"{name}={number or repr(word)}" if number or word else name


def names_arguments(function: Callable[Params, Result]) -> Callable[Params, Result]:
    """Decorate a function for callers in Python, so that its UserErrors name arguments."""

    @functools.wraps(function)
    def call(*args: Params.args, **kwargs: Params.kwargs) -> Result:
        try:
            return function(*args, **kwargs)
        except UserError as error:
            error.message, error.note, error.help = map(
                to_arguments, (error.message, error.note, error.help)
            )
            raise

    return call
