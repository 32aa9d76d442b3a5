"""Folders that are there already: what is replaced, and what is never deleted."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from folders import FILES, files, progress, records

Command = Callable[..., Any]


def test_an_existing_run_is_kept_unless_forced(train: Command) -> None:
    assert train("--steps", "2", "--out", "run").code == 0
    before = files("run")
    said = train("--steps", "3", "--out", "run")
    assert said.code == 2 and files("run") == before
    assert said.err.startswith("error: run: already contains a run")

    assert train("--steps", "3", "--out", "run", "--force").code == 0
    assert progress("run")["step"] == 3 and files("run").keys() == FILES
    assert records("run", "train")[-1]["step"] == 3


def test_force_deletes_nothing_before_the_new_run_can_begin(
    command: Command, train: Command
) -> None:
    assert train("--steps", "2", "--out", "run").code == 0
    before = files("run")
    assert command("train", "nowhere.tsv", "--out", "run", "--force").code == 2
    assert train("--set", "training.lr=fast", "--out", "run", "--force").code == 2
    assert files("run") == before


@pytest.mark.parametrize("names", [["thesis.tex"], ["config.yaml"], ["config.yaml", "run.py"]])
def test_force_deletes_no_folder_that_is_not_a_run(train: Command, names: list[str]) -> None:
    Path("mine").mkdir()
    for name in names:
        Path("mine", name).write_text("precious")
    said = train("--steps", "1", "--out", "mine", "--force")
    assert said.code == 2 and "not empty and not a run folder" in said.err
    assert files("mine").keys() == set(names)


def test_force_deletes_nothing_that_training_did_not_write(train: Command) -> None:
    assert train("--steps", "2", "--out", "run").code == 0
    Path("run/notes.txt").write_text("precious")
    before = files("run")
    said = train("--steps", "3", "--out", "run", "--force")
    assert (
        said.code == 2 and "--force would delete files regard did not create: notes.txt" in said.err
    )
    assert files("run") == before


def test_an_empty_folder_can_be_used(train: Command) -> None:
    Path("run").mkdir()
    assert train("--steps", "1", "--out", "run").code == 0
