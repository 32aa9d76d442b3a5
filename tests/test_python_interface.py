"""Python at the prompt: names, types, docstrings, and errors that name arguments."""

import ast
import inspect
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import regard
from regard import (
    Classifier,
    LanguageModel,
    Regressor,
    Synthesizer,
    Tagger,
    Transducer,
    UserError,
)
from regard.core.argument_names import SAME_NAME, to_arguments

SOURCES = Path(regard.__file__).parent
ESTIMATORS = (Transducer, Tagger, Classifier, Regressor, LanguageModel, Synthesizer)


def test_dir_shows_the_interface_without_importing_torch() -> None:
    program = "import sys, regard; print(*dir(regard)); print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    names, has_torch = done.stdout.splitlines()
    assert set(regard.__all__) <= set(names.split()), done.stderr
    assert not {"os", "Any", "import_module"} & set(names.split()) and has_torch == "False"
    with pytest.raises(AttributeError, match="has no attribute 'Transduser'"):
        _ = regard.Transduser


def test_type_checkers_read_the_annotations() -> None:
    """`make lint` runs mypy on tests/typed_calls.py, which relies on this file."""
    assert (SOURCES / "py.typed").exists()


def public_functions() -> Iterator[Any]:
    functions = (regard.load, regard.inspect, regard.capture, regard.ablate)
    for function in (*functions, regard.attention_modules):
        yield pytest.param(function, id=function.__name__)
    for kind in (*ESTIMATORS, regard.Inspection):
        for name, member in inspect.getmembers(kind, inspect.isfunction):
            if not name.startswith("_") or (name == "__init__" and kind in ESTIMATORS):
                yield pytest.param(member, id=f"{kind.__name__}.{name}")


@pytest.mark.parametrize("function", list(public_functions()))
def test_docstrings_have_the_parameters(function: Callable[..., Any]) -> None:
    text = inspect.getdoc(function) or ""
    names = [name for name in inspect.signature(function).parameters if name != "self"]
    missing = [name for name in names if not re.search(rf"\b{name}\b", text)]
    assert text and not missing


def test_load_with_a_kind(models: Callable[[str], Any]) -> None:
    run = models("classify").run
    assert type(regard.load(run, kind=Classifier)) is type(regard.load(run)) is Classifier
    message = r"expected a Tagger, found a Classifier\nhelp: use kind=regard.Classifier"
    with pytest.raises(UserError, match=message):
        regard.load(run, kind=Tagger)


# errors


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("--init-from runs/x: no weight matches", "init_from runs/x: no weight matches"),
        ("raise the limit: --max-tokens 300", "raise the limit: max_tokens=300"),
        ("use --engine torch", "use engine='torch'"),
        ("try --set training.lr=3e-4 (now 1)", "try settings={'training.lr': 3e-4} (now 1)"),
        ("--set a.b=1 --set c=word.", "settings={'a.b': 1, 'c': 'word'}."),
        ("--set a.size=12,8 to", "settings={'a.size': '12,8'} to"),
        ("pass more data, or --dev FILE to train", "pass more data, or dev=pairs to fit"),
        ("found '--beams' in a--beam", "found '--beams' in a--beam"),  # a text of the user
    ],
)
def test_options_become_arguments(text: str, expected: str) -> None:
    assert to_arguments(text) == expected


def test_every_argument_exists() -> None:
    functions = [kind.fit for kind in ESTIMATORS] + [Transducer.predict, Transducer]
    functions += [regard.load, regard.inspect, regard.Inspection.figure]
    known = {name for function in functions for name in inspect.signature(function).parameters}
    assert {name.replace("-", "_") for name in SAME_NAME} <= known


# Modules that only commands use: they read files, write folders, or print.
COMMANDS_ONLY = re.compile(
    r"cli|serve|experiments|inference/prediction|exchange/(importing|export/(int8|__init))|"
    r"views/(description|plots|figures|report)|storage/export_folder|"
    r"inference/rescoring|tasks/labeled_data|"
    r"training/(resume|train_folder|display|session|checkpoint|start)|"
    r"data/(sources|reading/(?!read\.py))|core/(parallel|argument_names)"
)


def texts(tree: ast.AST) -> Iterator[str]:
    """Yield the strings of a module, without docstrings and descriptions of settings."""
    inside: set[ast.AST] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) or (
            isinstance(node, ast.keyword) and node.arg == "description"
        ):
            inside.update(ast.walk(node) if not isinstance(node, ast.Expr) else [node.value])
        elif isinstance(node, ast.JoinedStr) and node not in inside:
            inside.update(ast.walk(node))
            yield "".join(p.value if isinstance(p, ast.Constant) else "1" for p in node.values)
        elif isinstance(node, ast.Constant) and node not in inside and isinstance(node.value, str):
            yield node.value


def test_no_option_reaches_a_caller_in_python() -> None:
    """A message with an option that `to_arguments` does not know is found here."""
    found, seen = {}, 0
    for path in SOURCES.rglob("*.py"):
        name = path.relative_to(SOURCES).as_posix()
        if COMMANDS_ONLY.match(name):
            continue
        for text in texts(ast.parse(path.read_text(encoding="utf-8"))):
            if text.startswith(("regard ", "--input ")):  # commands shown by `regard train`
                continue
            seen += "--init-from" in text
            if re.search(r"--[a-z]", to_arguments(text)):
                found[name] = text
    assert found == {} and seen > 5


def test_errors_name_arguments(models: Callable[[str], Any]) -> None:
    words = ["ab", "ba", "bb", "aa"]
    for call, message in (
        (lambda: Transducer().fit(["a"], ["b"]), "or dev=pairs to fit"),
        (lambda: LanguageModel().fit("a"), "help: use dev=texts"),
        (lambda: Transducer().fit(words, words, unlabeled=words), "^unlabeled: only supported"),
        (
            lambda: Classifier().fit(words, words, dev=(["a"], ["z"])),
            "help: check y and dev",
        ),
        (
            lambda: Regressor().fit([[1], [2]], [1, 2], init_from=models("classify").run),
            "^init_from: the pretrained model does not read vectors",
        ),
    ):
        with pytest.raises(UserError, match=message) as error:
            call()
        assert "--" not in str(error.value)
