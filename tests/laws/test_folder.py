"""Laws of the run folder: a configuration comes back as it was, and so does a model."""

from itertools import product
from pathlib import Path

import torch
import yaml

import regard
from regard.config.configs import TransduceConfig
from regard.config.defaults import fill_defaults
from regard.config.load import check_config
from regard.core.data_stats import DataStats
from regard.data.reading.read import Pair
from regard.models.encoder_decoder import EncoderDecoderOptions
from regard.storage.weights import save_weights
from regard.training.describe import describe
from regard.training.start import start_run

from .conftest import each_part
from .toys import predictor
from .unions import with_objective

PAIRS = [Pair(text, text[::-1], n) for n, text in enumerate(["abc", "ba", "cab", "b", "ccab"], 1)]
TOKENS = {"source": {"tokenizer": "char"}, "target": {"tokenizer": "char"}}


def test_a_model_s_settings_come_back(options: EncoderDecoderOptions) -> None:
    config = TransduceConfig(model=options, objective={"ctc_weight": 0.3 * options.ctc})
    again = check_config(yaml.safe_load(config.dump()), "laws")
    assert again == config and again.dump() == config.dump()


def test_only_one_side_is_sized_by_the_user() -> None:
    """The other side follows, so that any encoder fits any decoder."""
    for side, kind in product(("encoder", "decoder"), ("transformer", "recurrent")):
        tree = {"model": {side: {"kind": kind, "width": 24}, "decoder": {"kind": "recurrent"}}}
        tree["model"]["decoder"] |= {"cross": "dot", **({"width": 24} if side == "decoder" else {})}
        full, _ = fill_defaults(check_config(tree, "laws"), DataStats(5, 60, 9, False))
        assert (full.model.encoder.width, full.model.decoder.width) == (24, 24)


@each_part
@torch.no_grad()
def test_saved_and_loaded_it_predicts_alike(options: EncoderDecoderOptions, tmp_path: Path) -> None:
    """From the folder alone, moved elsewhere, at any batch size."""
    tree = with_objective(options.model_dump(mode="json"))
    tree |= {"task": TOKENS, "search": {"beam": 2}}
    run = start_run(tmp_path / "run", check_config(tree, "laws"), PAIRS, PAIRS)
    for parameter in run.model.parameters():
        parameter += 0.1 * torch.randn(parameter.shape)
    describe(run, {})
    save_weights(run.model, run.folder / "model.safetensors")
    sources = ["abc", "", "d"]
    before = predictor(run).predict(sources, nbest=2)

    moved = (tmp_path / "run").rename(tmp_path / "elsewhere")
    torch.manual_seed(99)
    loaded = regard.load(moved)
    assert loaded.config_ == run.config
    for here, there in zip(loaded.model_.parameters(), run.model.parameters(), strict=True):
        assert torch.equal(here, there)
    assert loaded.predict_detailed(sources, nbest=2) == before
    assert loaded.predict(sources, batch_size=2) == [p.text for p in before]
