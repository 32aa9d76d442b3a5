"""Every command and every setting that the documentation shows exists."""

import re
import shlex
from pathlib import Path

import pytest
import typer

from regard.cli import app
from regard.config import flatten, load_config, recipe_names
from regard.tasks.configs import TransduceConfig
from regard.errors import UserError

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
COMMANDS = [
    (page.name, line)
    for page in PAGES
    for line in re.findall(r"^\$ (regard .*)$", page.read_text("utf-8"), re.M)
]


@pytest.mark.parametrize(("page", "line"), COMMANDS)
def test_a_documented_command_is_understood(page: str, line: str) -> None:
    _, name, *words = shlex.split(line, comments=True)
    command = typer.main.get_command(app).commands[name]  # type: ignore[attr-defined]
    context = command.make_context(name, words)
    settings = context.params.get("settings") or []
    if "widht" in line or "score=dot" in line:  # shown as mistakes
        with pytest.raises(UserError):
            load_config(context.params["recipe"], settings)
    elif name == "train":
        load_config(context.params["recipe"], settings)


def test_the_documentation_shows_every_command() -> None:
    shown = {line.split()[1] for _, line in COMMANDS}
    assert shown == set(typer.main.get_command(app).commands)  # type: ignore[attr-defined]


def test_links_lead_to_files() -> None:
    for page in PAGES:
        for target in re.findall(r"\]\(([^)#:]+)\)", page.read_text("utf-8")):
            assert (page.parent / target).exists(), f"{page.name}: {target}"


def test_settings_named_in_the_documentation_exist() -> None:
    known = set(flatten(TransduceConfig().model_dump()))
    for recipe in recipe_names():
        known |= set(flatten(load_config(recipe).model_dump()))
    sections = {key.rsplit(".", 1)[0] for key in known}
    page = (ROOT / "docs" / "settings.md").read_text("utf-8")
    for key in re.findall(r"`((?:task|model|objective|training|search)\.[a-z_.]+)`", page):
        assert key in known or key in sections, key
