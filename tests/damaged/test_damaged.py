"""Damaged model folders and data files end in an error message: no traceback, hang or flood.

`bench/damaged.py` runs a thousand of these cases.
"""

import random
import shutil
from pathlib import Path
from typing import Any

import pytest

from . import cases, folder_damage, forked, input_damage

TASKS = ("transduce", "tag", "classify", "regress", "language-model")


def healthy(models: Any, task: str) -> cases.Healthy:
    name = "language" if task == "language-model" else task
    return cases.Healthy(name, task, models(task).run, models(task).dev)


@pytest.mark.parametrize("task", TASKS)
def test_damaged_folders(tmp_path: Path, models: Any, task: str) -> None:
    run, others = healthy(models, task), [models(one).run for one in TASKS]
    for number in range(3):
        chance = random.Random(f"{task} {number}")
        folder = tmp_path / f"model-{number}"
        shutil.copytree(run.folder, folder)
        done = folder_damage.damage_folder(folder, others, chance)
        words = chance.choice(cases.folder_commands(run, folder))
        end = forked.run(words, tmp_path)
        assert end.problem() is None, (done, words[0], end.said)


@pytest.mark.parametrize("task", TASKS)
def test_damaged_inputs(tmp_path: Path, models: Any, task: str) -> None:
    run = healthy(models, task)
    for number in range(3):
        chance = random.Random(f"{task} input {number}")
        text, suffix = cases.data_texts(run, chance)
        path, done = input_damage.write_damaged(text, suffix, tmp_path, chance)
        words = chance.choice(cases.input_commands(run, path))
        end = forked.run(words, tmp_path)
        assert end.problem() is None, (done, words[0], end.said)
