"""Every recipe that is built in: short, explained, valid, and it trains."""

import json
import math
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import corpora
import pytest

import regard
from regard.config.load import Config, flatten, load_config, read_recipe
from regard.config.recipe_files import RECIPES, recipe_names

Command = Callable[..., Any]
NAMES = recipe_names()


def words(count: int) -> list[str]:
    generator = random.Random(3)
    return sorted({"".join(generator.choices("aeilnorst", k=5)) for _ in range(count)})


def pronounced() -> list[str]:
    """Letters and spaced tokens."""
    return [f"{word}\t{' '.join(word.upper())}" for word in words(80)]


def inflected() -> list[str]:
    """Lemma, form and features, as SIGMORPHON writes them."""
    endings = {"V;PST": "ed", "V;PRS;3;SG": "s", "N;PL": "s"}
    return [f"{w}\t{w}{end}\t{tag}" for w in words(40) for tag, end in endings.items()]


def translated() -> list[str]:
    """Sentences of several words on both sides."""
    generator = random.Random(4)
    rows = [generator.choices(words(60), k=generator.randint(4, 9)) for _ in range(150)]
    return [f"{' '.join(row).capitalize()}.\t{' '.join(reversed(row))}!" for row in rows]


DATA = {"g2p": pronounced, "inflect": inflected, "translate": translated}
LENGTH = {"language-model": ("--max-length", "5")}
COLUMNS = {"inflect": ("--source-column", "1,3", "--target-column", "2")}


def test_there_are_recipes() -> None:
    assert NAMES


@pytest.mark.parametrize("name", NAMES)
def test_a_recipe_is_short_and_says_what_it_is_for(name: str) -> None:
    text = (RECIPES / f"{name}.yaml").read_text("utf-8")
    first, *rest = text.splitlines()
    assert first.startswith("# ") and len(first) <= 100
    assert 1 <= len(rest) < 40


def settings(config: Config) -> dict[str, Any]:
    """All settings by their path; the kind in a slot under the name of the slot as well."""
    flat = flatten(config.model_dump(mode="json"))
    return flat | {key.removesuffix(".kind"): value for key, value in flat.items()}


@pytest.mark.parametrize("name", NAMES)
def test_a_recipe_says_only_what_it_changes(name: str) -> None:
    """All it names is known, and comes out as it was written."""
    filled = settings(load_config(name))
    assert flatten(read_recipe(name)).keys() <= filled.keys()


SOUND = "file"  # in the words of `train`: a column of files
IMAGES = [name for name in NAMES if corpora.reads(load_config(name), "grid")]
# Built and counted, but not trained (tests/golden/test_image_models.py).
PUBLISHED = [name for name in IMAGES if getattr(load_config(name).task.source, "size", None)]


@pytest.mark.parametrize("name", [name for name in NAMES if name not in PUBLISHED])
def test_a_recipe_trains(
    command: Command, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    data = corpora.write_for(load_config(name), Path())
    if name in DATA:
        rows = DATA[name]()
        data = "train.tsv", "--dev", "dev.tsv"
        Path("train.tsv").write_text("".join(f"{row}\n" for row in rows[5:]))
        Path("dev.tsv").write_text("".join(f"{row}\n" for row in rows[:5]))
    said = command(
        *("train", *data, *COLUMNS.get(name, ()), "--recipe", name),
        *("--steps", "2", "--set", "training.validate_every=9", "--out", "run"),
    )
    assert said.code == 0, said.err

    records = [json.loads(line) for line in Path("run/metrics.jsonl").read_text().splitlines()]
    losses = [record["loss"] for record in records if "loss" in record]
    assert losses and all(math.isfinite(loss) for loss in losses)
    model = regard.load("run")
    filled, asked = settings(model.config_), settings(load_config(name))
    kept = flatten(read_recipe(name)).keys() - {"training.validate_every"}
    assert {key: filled[key] for key in kept} == {key: asked[key] for key in kept}
    if name in IMAGES:
        return
    if model.config_.model_dump()["model"].get("kind") != "masked":
        text = "n0 n1" if "communities" in data else "0.wav" if SOUND in data else "anna"
        answered = command("predict", "run", text, *LENGTH.get(model.task, ()))
        assert answered.code == 0 and answered.out.count("\n") >= 1
