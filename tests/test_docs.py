"""Every command and every setting that the documentation shows exists."""

import importlib
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import pytest
import typer
from pydantic import BaseModel

from regard.cli.main_app import app
from regard.config.configs import CONFIGS
from regard.config.load import load_config
from regard.core.errors import UserError

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
COMMANDS = [
    (page.name, line)
    for page in PAGES
    for line in re.findall(r"^\$ (regard .*)$", page.read_text("utf-8"), re.M)
]


@pytest.mark.parametrize(("page", "line"), COMMANDS)
def test_a_documented_command_is_understood(
    page: str, line: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, name, *words = shlex.split(line, comments=True)
    command = typer.main.get_command(app).completed(name)  # type: ignore[attr-defined]
    for parameter in command.params:  # callbacks look for files, which the documentation only names
        monkeypatch.setattr(parameter, "callback", None)
    context = command.make_context(name, words)
    task = context.params.get("task")
    settings = [*([f"task.kind={task}"] if task else []), *(context.params.get("settings") or [])]
    mistakes = ("widht", "input_feeding=true", "decoder.attention.kind=nystrom")
    if any(mistake in line for mistake in mistakes):  # shown with their errors
        with pytest.raises(UserError):
            load_config(context.params["recipe"], settings)
    elif name == "train":
        load_config(context.params["recipe"], settings)


def test_the_documentation_shows_every_command() -> None:
    shown = {line.split()[1] for _, line in COMMANDS}
    assert shown == set(typer.main.get_command(app).commands)  # type: ignore[attr-defined]


def test_every_option_is_explained() -> None:
    """By `--help`, and somewhere in the documentation."""
    text = "\n".join(page.read_text("utf-8") for page in PAGES)
    commands: Any = typer.main.get_command(app)
    for name in commands.commands:
        for one in commands.completed(name).params:
            assert one.help, f"{name} {one.name}: no help"
            for word in one.opts:
                if word.startswith("--"):
                    assert re.search(rf"{word}(?![\w-])", text), f"{name} {word}: on no page"


PATHS = [ROOT / "CONTRIBUTING.md", *PAGES]


def test_names_in_python_exist() -> None:
    """Of modules and of what is in them: as they are imported, and as texts call them."""
    found = 0
    for page in PATHS:
        text = page.read_text("utf-8")
        for module, names in re.findall(r"^(?:>>> )?from (regard[\w.]*) import (.+)$", text, re.M):
            for name in names.split(","):
                assert hasattr(importlib.import_module(module), name.strip()), (
                    f"{page.name}: {name}"
                )
                found += 1
        for module, name in re.findall(r"`(regard(?:\.[a-z_]+)+)\.(\w+)\(", text):
            assert hasattr(importlib.import_module(module), name), f"{page.name}: {module}.{name}"
            found += 1
    assert found > 5


def test_files_that_contributors_are_led_to_exist() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
    named = re.findall(r"`((?:\w+/)+\w+\.py)`", text)
    assert len(named) > 5
    for name in named:
        assert (ROOT / name).exists() or (ROOT / "src" / "regard" / name).exists(), name


def test_links_lead_to_files() -> None:
    for page in PAGES:
        for target in re.findall(r"\]\(([^)#:]+)\)", page.read_text("utf-8")):
            assert (page.parent / target).exists(), f"{page.name}: {target}"


def keys(part: Any, path: str = "") -> Iterator[str]:
    """The dotted names of all settings below a part, of every kind it can have."""
    members = [part, *get_args(part)]
    for member in members[1:]:
        yield from keys(member, path)
    if isinstance(part, type) and issubclass(part, BaseModel):
        for name, field in part.model_fields.items():
            yield path + name
            yield from keys(field.annotation, f"{path}{name}.")


def test_settings_named_in_the_documentation_exist() -> None:
    known = {key for config in CONFIGS.values() for key in keys(config)}
    assert {
        "model.decoder.cross",
        "training.optimizer.betas",
        "task.pseudo_label_threshold",
    } <= known
    for page in PAGES:
        named = r"`((?:task|model|objective|training|search)\.[a-z_.]+)[`=]"
        for key in re.findall(named, page.read_text("utf-8")):
            assert key in known or key == "model.safetensors", f"{page.name}: {key}"
