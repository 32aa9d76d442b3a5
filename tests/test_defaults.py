"""Automatic settings that follow the data, the budget and the speed of the machine."""

from dataclasses import replace
from typing import Any

import pytest
import torch

from regard.config.defaults import fill_defaults
from regard.config.load import load_config
from regard.core.data_stats import DataStats
from regard.core.machine import Machine, measure_machine, product_speed
from regard.inputs.input import InputShape
from regard.optim import training_options

SLOW, FAST = Machine(1e11), Machine(1e11, 2e11)
SMALL = DataStats(3600, 70_000, 60, False, inputs=40, target_tokens=35_000, machine=SLOW)
LARGE = DataStats(100_000, 1_700_000, 44, False, inputs=32, target_tokens=800_000, machine=SLOW)
SENTENCES = DataStats(29_000, 850_000, 4000, True, inputs=4000, target_tokens=430_000, machine=SLOW)


def filled(stats: DataStats, *settings: str) -> Any:
    return fill_defaults(load_config(settings=list(settings)), stats)[0]


@pytest.mark.parametrize("kind", ["recurrent", "transformer"])
@pytest.mark.parametrize("cell", ["lstm", "gru", "rnn"])
@pytest.mark.parametrize("bidirectional", ["true", "false"])
def test_the_number_of_weights_is_right(kind: str, cell: str, bidirectional: str) -> None:
    """The estimate is near the weights that a model has besides its embeddings."""
    settings = [f"model.{side}.kind={kind}" for side in ("encoder", "decoder")]
    if kind == "recurrent":
        settings += [f"model.{side}.cell={cell}" for side in ("encoder", "decoder")]
        settings += [f"model.encoder.bidirectional={bidirectional}"]
    model = filled(SMALL, "training.steps=100", *settings).model
    built = model.build(InputShape("text", 40), 60, False)
    embeddings = built.frontend.table.weight.numel() + built.target.weight.numel()
    real = sum(weight.numel() for weight in built.parameters()) - embeddings
    assert real == pytest.approx(model.weights(SMALL) - 60 * model.decoder.width, rel=0.2)


def test_the_width_grows_with_the_budget_and_the_data() -> None:
    widths = [filled(LARGE, f"training.budget={b}").model.encoder.width for b in ("20s", "1h")]
    assert widths[0] < widths[1]
    assert filled(SMALL, "training.budget=1h").model.encoder.width < widths[1]
    slow = replace(LARGE, machine=Machine(1e10))
    assert filled(slow, "training.budget=1h").model.encoder.width < widths[1]


def test_sentences_need_many_updates_for_a_transformer() -> None:
    """A Transformer starts slowly: with few updates, an LSTM learns more."""
    kinds = [filled(SENTENCES, f"training.budget={b}").model.encoder.kind for b in ("20s", "1h")]
    assert kinds == ["recurrent", "transformer"]
    slow = replace(SENTENCES, machine=Machine(1e9))
    assert filled(slow, "training.budget=1h").model.decoder.kind == "recurrent"
    chosen = filled(SENTENCES, "training.budget=20s", "model.decoder.kind=transformer").model
    assert chosen.encoder.kind == "transformer"
    assert filled(SENTENCES, "training.steps=100").model.encoder.kind == "transformer"


def test_recurrent_rates_fall_with_the_width() -> None:
    def rate(width: int) -> float:
        sides = [f"model.{side}.width={width}" for side in ("encoder", "decoder")]
        recurrent = ["model.encoder.kind=recurrent", "training.budget=1h"]
        return float(filled(SENTENCES, *recurrent, *sides).training.lr)

    assert rate(128) > rate(512) >= 2e-3


def test_tiny_data_has_wide_models() -> None:
    """There is time for many epochs. Larger data has wide models only for long budgets."""
    tiny = replace(SMALL, examples=100, tokens=3000, target_tokens=1500)
    large = replace(SMALL, examples=10_000, tokens=430_000, target_tokens=150_000)
    widths = [filled(x, "training.budget=1m").model.encoder.width for x in (tiny, large)]
    assert widths[0] > widths[1]
    assert filled(large, "training.budget=30m").model.encoder.width >= widths[0]
    slow = replace(tiny, machine=Machine(1e9))
    assert filled(slow, "training.budget=20s").model.encoder.width == widths[1]


def test_taggers_are_narrow_if_there_are_few_updates() -> None:
    words = DataStats(12_000, 200_000, 17, True, labels=True, source="words", machine=SLOW)
    for budget, width in {"10s": 128, "10m": 256}.items():
        config = filled(words, "task.kind=tag", f"training.budget={budget}")
        assert config.model.encoder.width == width


def test_without_a_budget_the_machine_does_not_matter() -> None:
    slow, fast = (replace(LARGE, machine=machine) for machine in (Machine(1e9), Machine(1e13)))
    assert filled(slow, "training.epochs=3") == filled(fast, "training.epochs=3")


@pytest.mark.parametrize(
    ("machine", "limit", "precision"),
    [
        (FAST, "budget=10m", "bfloat16"),
        (SLOW, "budget=10m", "float32"),  # bfloat16 is not faster
        (FAST, "steps=1000", "float32"),  # the same result on every machine
    ],
)
def test_bfloat16_where_it_is_faster(
    machine: Machine, limit: str, precision: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)  # the rule is for CPUs
    monkeypatch.setattr(training_options, "has_fused_recurrence", lambda kind: True)
    config = filled(replace(LARGE, machine=machine), f"training.{limit}")
    assert config.training.precision == precision


def test_models_without_sides_stay_in_float32() -> None:
    stats = replace(LARGE, machine=FAST)
    config = filled(stats, "task.kind=language-model", "model.kind=ngram", "training.budget=1m")
    assert config.training.precision == "float32"


def test_small_models_stay_in_float32() -> None:
    stats = replace(SMALL, machine=FAST)
    assert filled(stats, "training.budget=20s").training.precision == "float32"
    assert filled(stats, "training.precision=bfloat16").training.precision == "bfloat16"


def test_warmup_counts_updates_and_leaves_most_of_a_short_run() -> None:
    long, short = (filled(SENTENCES, f"training.{x}") for x in ("steps=5000", "steps=500"))
    assert long.model.encoder.kind == "transformer"
    assert long.training.schedule.warmup == 400
    assert short.training.schedule.warmup == pytest.approx(0.3)
    assert filled(SMALL, "training.steps=500").training.schedule.warmup == pytest.approx(0.05)
    assert (
        filled(SENTENCES, "training.budget=1h", "training.lr=1e-3").training.schedule.warmup == 400
    )
    given = filled(SENTENCES, "training.steps=500", "training.schedule.warmup=7")
    assert given.training.schedule.warmup == 7


def test_batches_have_enough_rows() -> None:
    """Long texts get larger batches, since threads divide the rows of a batch."""
    long = replace(SMALL, examples=700, target_tokens=50_000)
    rows = filled(long, "training.budget=20s").training.batch_tokens / (50_000 / 700)
    assert rows == pytest.approx(20, rel=0.01)
    budgets = [filled(SMALL, f"training.budget={b}").training.batch_tokens for b in ("20s", "1h")]
    assert budgets[0] < budgets[1]


def test_the_duration_of_an_update() -> None:
    """The products that fit into a duration take that long."""
    for is_half in (False, True):
        assert FAST.seconds(FAST.products(0.1, is_half), is_half) == pytest.approx(0.1)
    assert FAST.seconds(1e9, True) < FAST.seconds(1e9, False)
    assert FAST.products(0.0, False) == 0


def test_the_machine_is_measured() -> None:
    threads = torch.get_num_threads()
    machine = measure_machine()
    assert machine.speed > 0 and machine.half_speed > 0
    assert torch.get_num_threads() == threads
    assert product_speed("float32") == product_speed("float32")  # once per process
