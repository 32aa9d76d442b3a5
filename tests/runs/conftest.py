"""Whole runs begin in a folder of their own, with a small file of words."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Command = Callable[..., Any]


@pytest.fixture(autouse=True)
def in_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: list[str]) -> None:
    monkeypatch.chdir(tmp_path)
    Path("words.tsv").write_text("".join(f"{word}\t{word[::-1]}\n" for word in words[:120]))


@pytest.fixture
def train(command: Command, tiny: list[str]) -> Command:
    """`train words.tsv` with a tiny model."""
    return lambda *words, **more: command("train", "words.tsv", *tiny, *words, **more)
