"""Laws of the run folder: a configuration comes back as it was, and so does a model."""

from itertools import product
from pathlib import Path
from typing import Any

import pytest
import torch
import yaml

import regard
from regard.config import check_config, flatten
from regard.tasks.configs import TransduceConfig
from regard.data.read import Pair
from regard.models.generator import GeneratorOptions
from regard.presets import fill
from regard.tasks.base import Facts
from regard.training.checkpoint import save_weights
from regard.training.run import describe, start_run

PAIRS = [Pair(text, text[::-1], n) for n, text in enumerate(["abc", "ba", "cab", "b", "ccab"], 1)]
SYMBOLS = {"source": {"symbols": "char"}, "target": {"symbols": "char"}}


def back(config: TransduceConfig) -> TransduceConfig:
    """Written and read again."""
    return check_config(yaml.safe_load(config.dump()), "laws")


def test_a_model_s_settings_come_back(options: GeneratorOptions) -> None:
    config = TransduceConfig(model=options)
    assert back(config) == config and back(config).dump() == config.dump()


def test_other_settings_come_back(section: tuple[str, dict[str, Any]]) -> None:
    name, tree = section
    config = check_config({name: tree}, "laws")
    assert back(config) == config
    assert flatten(tree).items() <= flatten(config.model_dump(mode="json")[name]).items()


@pytest.mark.parametrize(
    "facts", [Facts(5, 60, 9, False), Facts(10**5, 10**7, 8000, True)], ids=str
)
def test_every_kind_builds_from_its_defaults(kinds: tuple[str, str], facts: Facts) -> None:
    """With nothing said but the kinds, every open setting is filled, and said."""
    encoder, decoder = kinds
    tree = {"model": {"encoder": {"kind": encoder}, "decoder": {"kind": decoder}}}
    config = check_config(tree, "laws")
    full, chosen = fill(config, facts)
    before, after = (flatten(c.model_dump(mode="json")) for c in (config, full))
    assert None not in flatten(full.model.model_dump(mode="json")).values()
    filled = {k: v for k, v in after.items() if k in before and before[k] != v}
    assert filled.items() <= {c.key: c.value for c in chosen}.items()
    assert all(after[c.key] == c.value and c.why for c in chosen)
    assert fill(full, facts) == (full, [])
    assert back(full) == full
    full.model.build(9, 8, shared=False)


def test_only_one_side_is_sized_by_the_user() -> None:
    """The other side follows, so that any encoder fits any decoder."""
    for side, kind in product(("encoder", "decoder"), ("transformer", "recurrent")):
        tree = {"model": {side: {"kind": kind, "width": 24}, "decoder": {"kind": "recurrent"}}}
        tree["model"]["decoder"] |= {"score": "dot", **({"width": 24} if side == "decoder" else {})}
        full, _ = fill(check_config(tree, "laws"), Facts(5, 60, 9, False))
        assert (full.model.encoder.width, full.model.decoder.width) == (24, 24)


@torch.no_grad()
def test_saved_and_loaded_it_answers_alike(options: GeneratorOptions, tmp_path: Path) -> None:
    """From the folder alone, moved elsewhere, at any batch size."""
    tree = {"model": options.model_dump(mode="json"), "task": SYMBOLS, "search": {"beam": 2}}
    run = start_run(tmp_path / "run", check_config(tree, "laws"), PAIRS, PAIRS)
    for parameter in run.model.parameters():
        parameter += 0.1 * torch.randn(parameter.shape)
    describe(run, {})
    save_weights(run.model, run.folder / "model.safetensors")
    sources = ["abc", "", "d"]
    before = run.task.predict(run.model, sources, run.config.search, nbest=2)

    moved = (tmp_path / "run").rename(tmp_path / "elsewhere")
    torch.manual_seed(99)
    loaded = regard.load(moved)
    assert loaded.config_ == run.config
    for here, there in zip(loaded.model_.parameters(), run.model.parameters(), strict=True):
        assert torch.equal(here, there)
    assert loaded.predictions(sources, nbest=2) == before
    assert loaded.predict(sources, batch_size=2) == [p.text for p in before]
