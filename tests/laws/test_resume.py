"""Laws of resuming: a run that was interrupted ends with the very weights of one that was not."""

from itertools import islice
from pathlib import Path

import pytest
import torch

from regard.config.configs import TransduceConfig
from regard.config.load import check_config
from regard.core.errors import UserError
from regard.data.reading.read import Pair
from regard.models.encoder_decoder import EncoderDecoderOptions
from regard.training.checkpoint import save_checkpoint
from regard.training.loop import train
from regard.training.session import records
from regard.training.statistics import recomputed_statistics

from .toys import TOYS, begin, cases, check_same, in_a_new_process, in_parts
from .unions import with_objective

WORDS = ["abc", "ba", "cab", "b", "ccab", "acbca", "bb", "cacb", "a", "bcbc", "cc"]
PAIRS = [Pair(word, word[::-1], line) for line, word in enumerate(WORDS, 1)]
LIMITS: list[tuple[dict, int]] = [({"steps": 9}, 5), ({"epochs": 3, "accumulation_steps": 2}, 3)]
TOKENS = {"source": {"tokenizer": "char"}, "target": {"tokenizer": "char"}}


def config_of(options: EncoderDecoderOptions, training: dict) -> TransduceConfig:
    tree = with_objective(options.model_dump(mode="json")) | {"task": TOKENS}
    return check_config(tree | {"training": {"batch_tokens": 12, "lr": 0.01, **training}}, "laws")


def test_resume_is_exact(pair: EncoderDecoderOptions, tmp_path: Path) -> None:
    """A run of a number of steps with one decoder, of a number of epochs with the other."""
    limits, stop = LIMITS[pair.decoder.kind == "recurrent"]
    config = config_of(pair, limits)
    whole = begin(tmp_path / "whole", config, PAIRS)
    records = list(train(whole))
    random = torch.rand(3)

    first = begin(tmp_path / "parts", config, PAIRS)
    head = list(islice(train(first), stop))
    save_checkpoint(first)
    second = in_a_new_process(tmp_path / "parts", PAIRS)
    assert second.state.step == stop < len(records)
    tail = list(train(second))

    check_same(whole, second)
    assert torch.equal(torch.rand(3), random)
    fields = ("step", "epoch", "progress", "loss", "parts", "norm", "lr", "tokens", "padding")
    for one, other in zip(records, head + tail, strict=True):
        assert all(getattr(one, name) == getattr(other, name) for name in fields)


def test_resume_is_exact_for_every_optimiser_and_schedule(training: dict, tmp_path: Path) -> None:
    sizes = {"width": 8, "layers": 2}
    options = EncoderDecoderOptions.model_validate(
        {"encoder": {"kind": "transformer", **sizes}, "decoder": {"kind": "recurrent", **sizes}}
    )
    config = config_of(options, {"steps": 6} | training)
    if training["optimizer"]["kind"] == "closed_form":  # not for transducers
        with pytest.raises(UserError, match=r"training\.optimizer\.kind=closed_form"):
            list(records(begin(tmp_path, config, PAIRS)))
        return
    whole, _, again = in_parts(tmp_path, config, PAIRS, stop=3)
    check_same(whole, again)


@pytest.mark.parametrize("norm", ["batch", "power"])
def test_running_statistics_are_resumed(norm: str, tmp_path: Path) -> None:
    """They are saved with the weights. An average of weights has statistics of its own."""
    side = {"kind": "transformer", "width": 8, "heads": 2, "layers": 1, "norm": norm}
    options = EncoderDecoderOptions.model_validate({"encoder": side, "decoder": side})
    config = config_of(options, {"steps": 5, "average": {"kind": "ema"}})
    whole, first, again = in_parts(tmp_path, config, PAIRS, stop=3)
    check_same(whole, again)
    moved = [name for name, _ in again.model.named_buffers()]
    assert len(moved) >= 2 * 7  # of seven norms in two layers and after them
    start, end = first.model.state_dict(), again.model.state_dict()
    assert not any(torch.equal(start[name], end[name]) for name in moved)


def test_statistics_of_averaged_weights_are_means_over_batches(tmp_path: Path) -> None:
    """Of the first layer by hand; afterwards those of training are back."""
    case = next(c for c in cases("classify-images") if "cnn-grid" in c.name)
    training = {"steps": 3, "batch_tokens": 2, "average": {"kind": "ema"}}
    run = begin(tmp_path, case.config(training=training), TOYS[case.toy].pairs)
    list(train(run))
    before = {name: value.clone() for name, value in run.model.named_buffers()}
    first = run.model.encoder.stack.blocks[0]  # type: ignore[union-attr, index]
    means = []
    for rows in run.corpus.order(2, run.config.training.seed, 0):
        images = run.corpus.batch(rows).source.data.permute(0, 3, 1, 2)  # type: ignore[union-attr]
        means.append(first.conv(images).mean((0, 2, 3)))  # type: ignore[operator]
    with recomputed_statistics(run):
        torch.testing.assert_close(first.norm.running_mean, torch.stack(means).mean(0))
    assert all(torch.equal(before[name], value) for name, value in run.model.named_buffers())


def test_a_finished_run_stays_as_it_is(pair: EncoderDecoderOptions, tmp_path: Path) -> None:
    run = begin(tmp_path, config_of(pair, {"epochs": 1}), PAIRS)
    list(train(run))
    save_checkpoint(run)
    again = in_a_new_process(tmp_path, PAIRS)
    assert list(train(again)) == []
    check_same(run, again)


def test_resuming_twice_from_one_checkpoint(pair: EncoderDecoderOptions, tmp_path: Path) -> None:
    """As after a crash: what came after the checkpoint is simply done again."""
    run = begin(tmp_path, config_of(pair, {"steps": 5}), PAIRS)
    steps = train(run)
    list(islice(steps, 2))
    save_checkpoint(run)
    list(steps)
    again = in_a_new_process(tmp_path, PAIRS)
    list(train(again))
    check_same(run, again)
