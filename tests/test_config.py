"""The configuration: all errors are reported at once, each with its path."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from regard.config.configs import TransduceConfig
from regard.config.defaults import fill_defaults
from regard.config.load import changed, check_config, load_config, put, read_recipe
from regard.core.data_stats import DataStats
from regard.core.errors import UserError
from regard.core.options import kinds_of
from regard.models.transformer_options import TransformerEncoderOptions
from regard.nn.norms import Norms
from regard.nn.residual import NormPosition
from regard.optim.training_options import seconds


def error_of(*settings: str) -> list[str]:
    """The lines that these settings are errors with, without the heading."""
    with pytest.raises(UserError) as error:
        load_config(None, list(settings))
    heading, *lines = str(error.value).split("\n")
    assert heading == "settings: invalid configuration"
    return [line.removeprefix("  ") for line in lines]


@pytest.mark.parametrize(
    ("setting", "path", "hint"),
    [
        ("training.warmpu=3", "training.warmpu", "available"),
        ("training.step=3", "training.step", "did you mean steps?"),
        ("training.schedule.warmpu=3", "training.schedule.warmpu", "did you mean warmup?"),
        ("model.encoder.hedas=2", "model.encoder.hedas", "did you mean heads?"),
        ("model.encodr.width=2", "model.encodr", "did you mean encoder?"),
        ("model.encoder.layer=2", "model.encoder.layer", "did you mean layers?"),
        ("modle.tie_embeddings=false", "modle", "did you mean model?"),
        ("objective.label_smoothin=0", "objective.label_smoothin", "did you mean label_smoothing?"),
        ("search.bean=3", "search.bean", "did you mean beam?"),
        ("task.source.token=char", "task.source.token", "did you mean tokenizer?"),
        ("xyz=1", "xyz", "available: task, model, objective, training, search"),
    ],
)
def test_an_unknown_key_names_the_nearest(setting: str, path: str, hint: str) -> None:
    (line,) = error_of(setting)
    assert line.startswith(f"{path}: unknown setting; ") and hint in line


def test_an_unknown_key_deep_inside() -> None:
    (line,) = error_of("model.decoder.kind=transformer", "model.decoder.positions.knd=none")
    assert line == "model.decoder.positions.knd: unknown setting; did you mean kind?"


@pytest.mark.parametrize(
    ("setting", "path", "kinds", "hint"),
    [
        ("model.encoder.kind=transfomer", "model.encoder.kind", "'recurrent'", "transformer?"),
        ("model.decoder.kind=gru", "model.decoder.kind", "'transformer', 'recurrent'", ""),
        ("training.optimizer.kind=adan", "training.optimizer.kind", "'adamw'", "adam?"),
        ("training.schedule.kind=cosin", "training.schedule.kind", "'inverse_root'", "cosine?"),
    ],
)
def test_a_wrong_kind_names_the_right_ones(setting: str, path: str, kinds: str, hint: str) -> None:
    (line,) = error_of(setting)
    word = setting.split("=")[1]
    assert path in line and f"found {word!r}" in line and kinds in line
    assert line.endswith(f"did you mean {hint}" if hint else f"found {word!r}")


def test_a_wrong_kind_deep_inside() -> None:
    (line,) = error_of("model.encoder.kind=transformer", "model.encoder.positions.kind=sinusoid")
    assert line.startswith("model.encoder.positions.kind: expected one of")
    assert line.endswith("did you mean sinusoidal?")


@pytest.mark.parametrize("kind", ["3", "null", "[a, b]"])
def test_a_kind_that_is_no_word(kind: str) -> None:
    (line,) = error_of(f"model.encoder.kind={kind}")
    assert line.startswith("model.encoder")


@pytest.mark.parametrize(
    ("settings", "path", "kind"),
    [
        (["model.encoder.kind=transformer", "model.encoder.cell=gru"], "encoder.cell", "recurrent"),
        (
            ["model.decoder.kind=transformer", "model.decoder.input_feeding=1"],
            "input_feeding",
            "recurrent",
        ),
        (
            ["model.decoder.kind=recurrent", "model.decoder.heads=2"],
            "decoder.heads",
            "transformer and kind=parallel",
        ),
        (
            ["model.encoder.kind=recurrent", "model.encoder.positions.kind=none"],
            "model.encoder.positions",
            "transformer and kind=cnn",
        ),
        (
            ["training.optimizer.kind=adam", "training.optimizer.centered=true"],
            "training.optimizer.centered",
            "rmsprop",
        ),
    ],
)
def test_a_setting_of_another_kind_is_named(settings: list[str], path: str, kind: str) -> None:
    (line,) = error_of(*settings)
    assert path in line
    assert line.endswith(f"not available for this kind; only for kind={kind}")


@pytest.mark.parametrize(
    ("settings", "line"),
    [
        (
            ["model.encoder.kind=transformer", "model.encoder.width=512", "model.encoder.heads=7"],
            "model.encoder: width 512 is not a multiple of heads 7; use 8",
        ),
        (
            ["model.decoder.kind=transformer", "model.decoder.width=10", "model.decoder.heads=4"],
            "model.decoder: width 10 is not a multiple of heads 4; use 5",
        ),
        (
            ["model.encoder.kind=recurrent", "model.encoder.width=9"],
            "model.encoder: width 9 is odd, but two directions divide it; use 10",
        ),
        (
            [
                "model.encoder.width=8",
                "model.decoder.kind=recurrent",
                "model.decoder.width=12",
                "model.decoder.cross=dot",
            ],
            "model: cross dot needs equal widths of encoder and decoder, found 8 and 12; "
            "make them equal or use cross bilinear",
        ),
    ],
)
def test_sizes_that_do_not_fit(settings: list[str], line: str) -> None:
    assert error_of(*settings) == [line]


def test_one_direction_may_be_odd() -> None:
    sizes = ["model.encoder.kind=recurrent", "model.encoder.width=9"]
    config = load_config(None, [*sizes, "model.encoder.bidirectional=false"])
    assert config.model.encoder.width == 9


@pytest.mark.parametrize(
    ("setting", "given"),
    [
        ("training.steps=many", "'many'"),
        ("training.steps=1.5", "1.5"),
        ("training.steps=0", "0"),
        ("training.lr=fast", "'fast'"),
        ("training.lr=-1", "-1"),
        ("training.accumulation_steps=0", "0"),
        ("model.encoder.width=wide", "'wide'"),
        ("model.encoder.dropout=1", "1"),
        ("model.tie_embeddings=perhaps", "'perhaps'"),
        ("objective.label_smoothing=2", "2"),
        ("search.beam=0", "0"),
        ("task.source.tokenizer=letters", "'letters'"),
        ("training.optimizer.betas=0.9", "0.9"),
        ("model=3", "3"),
        ("training.schedule=3", "3"),
    ],
)
def test_a_wrong_value_is_shown_with_its_path(setting: str, given: str) -> None:
    (line,) = error_of(setting)
    assert line.startswith(setting.split("=")[0] + ": ") and line.endswith(f", found {given}")


@pytest.mark.parametrize(
    ("kind", "setting"),
    [
        ("transformer", "activation=sine"),
        ("recurrent", "cell=sru"),
    ],
)
def test_a_word_that_is_none_of_the_words(kind: str, setting: str) -> None:
    name, word = setting.split("=")
    (line,) = error_of(f"model.encoder.kind={kind}", f"model.encoder.{setting}")
    assert line.startswith(f"model.encoder.{name}: Input should be ")
    assert line.endswith(f", found {word!r}")


def test_a_kind_may_be_given_as_a_word() -> None:
    """Also in Python, and with settings of that kind after it."""
    words = ("model.encoder.kind=transformer", "model.encoder.norm=rms", "training.schedule=linear")
    config = load_config(None, [*words, "training.schedule.warmup=0.5"])
    assert config.model.encoder.norm.kind == "rms"
    assert (config.training.schedule.kind, config.training.schedule.warmup) == ("linear", 0.5)
    assert TransformerEncoderOptions(norm="rms", positions="learned").positions.length == 512


@pytest.mark.parametrize(
    ("setting", "union"), [("norm=group", Norms), ("norm_position=middle", NormPosition)]
)
def test_a_word_that_is_none_of_the_kinds(setting: str, union: Any) -> None:
    name, word = setting.split("=")
    kinds = ", ".join(map(repr, kinds_of(union)))
    (line,) = error_of("model.encoder.kind=transformer", f"model.encoder.{setting}")
    assert line == f"model.encoder.{name}.kind: expected one of {kinds}, found {word!r}"


@pytest.mark.parametrize(
    ("setting", "now"),
    [
        ("model.encoder.norm_place=pre", "norm_position"),
        ("model.decoder.score=dot", "cross"),
        ("model.words.letters=none", "frontend"),
        ("model.hidden=0.1", "frontend.token_dropout"),
        ("task.lower=true", "source.lowercase"),
    ],
)
def test_a_setting_that_has_another_name_now(setting: str, now: str) -> None:
    (line,) = error_of(setting)
    name = setting.partition("=")[0].removesuffix(".letters")
    assert line == f"{name}: was renamed to {now}"


def test_everything_that_is_wrong_is_reported_at_once() -> None:
    lines = error_of(
        "training.lr=fast",
        "model.encoder.kind=convolution",
        "model.decoder.kind=transformer",
        "model.decoder.cell=gru",
        "search.bean=3",
        "objective.label_smoothing=2",
    )
    starts = (
        "model.encoder.kind",
        "model.decoder.cell",
        "objective.label_smoothing",
        "training.lr",
    )
    assert len(lines) == 5
    for start in (*starts, "search.bean"):
        assert any(line.startswith(start + ":") for line in lines)


@pytest.mark.parametrize("setting", ["model.encoder.width=9", "model.decoder.width=9"])
def test_what_does_not_fit_the_kind_that_is_chosen_from_the_data(setting: str) -> None:
    """Known only once the data are read; still said as plainly."""
    config = load_config(None, [setting])
    with pytest.raises(UserError, match=r"model\.encoder: width 9 is odd.*use 10"):
        fill_defaults(config, DataStats(examples=5, tokens=60, outputs=9, subwords=False))


def test_settings_are_read_as_yaml() -> None:
    config = load_config(
        None,
        [
            "training.lr=3e-4",  # a string for YAML
            "training.steps=50",
            "training.optimizer.betas=[0.8, 0.9]",
            "model.tie_embeddings=no",
            "training.patience=null",
            "model.decoder.kind=recurrent",
            "model.decoder.cross=scaled_dot",
        ],
    )
    assert config.training.lr == 3e-4 and config.training.steps == 50
    assert config.training.optimizer.betas == (0.8, 0.9)
    assert config.model.tie_embeddings is False and config.training.patience is None
    assert config.model.decoder.cross.kind == "scaled_dot"


def test_the_kind_may_be_omitted() -> None:
    """A section without a kind keeps the default one."""
    config = load_config(None, ["training.schedule.warmup=7", "model.encoder.layers=4"])
    assert config.training.schedule.kind == "cosine" and config.training.schedule.warmup == 7
    assert config.model.encoder.kind == "auto" and config.model.encoder.layers == 4


@pytest.mark.parametrize("setting", ["training.lr", "=3", " =3", ""])
def test_a_setting_without_key_or_value(setting: str) -> None:
    with pytest.raises(UserError, match="expected KEY=VALUE"):
        load_config(None, [setting])


def test_a_value_is_not_a_section() -> None:
    with pytest.raises(UserError, match="lr is a value, not a section"):
        load_config(None, ["training.lr=3", "training.lr.high=4"])


def test_a_value_that_cannot_be_read() -> None:
    with pytest.raises(UserError, match=r"--set training.lr=\[1 line 1: invalid YAML"):
        load_config(None, ["training.lr=[1"])


def test_put_reaches_deep_and_later_wins() -> None:
    tree: dict = {"a": {"b": 1}}
    put(tree, "a.c.d=x")
    put(tree, "a.b=2")
    put(tree, "a.c.d= [1, 2] ")
    assert tree == {"a": {"b": 2, "c": {"d": [1, 2]}}}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("90s", 90),
        ("10m", 600),
        ("2h", 7200),
        ("1h30m", 5400),
        ("1h 30m", 5400),
        ("1d", 86400),
        ("1.5h", 5400),
        ("10 m", 600),
        ("10M", 600),
        ("45", 45),
        (45, 45),
        (0.5, 0.5),
    ],
)
def test_times(text: object, expected: float) -> None:
    assert seconds(text) == expected
    assert load_config(None, [f"training.budget={text}"]).training.budget == expected


@pytest.mark.parametrize(
    "text",
    [
        "ten",
        "10x",
        "m",
        "10min",
        "1h30x",
        "1h30",
        "1 0m",
        "-5m",
        "5 minutes",
        "1:30h",
        "inf",
        "1e3s",
    ],
)
def test_what_is_no_time(text: str) -> None:
    (line,) = error_of(f"training.budget='{text}'")
    assert line.startswith("training.budget: expected a duration such as 90s, 10m, 2h or 1h30m")


@pytest.mark.parametrize("text", ["0", "0s", "-3"])
def test_no_time_at_all(text: str) -> None:
    (line,) = error_of(f"training.budget={text}")
    assert line.startswith("training.budget: Input should be greater than 0")


def test_settings_cannot_be_changed_afterwards() -> None:
    config = TransduceConfig()
    with pytest.raises(ValueError, match="frozen"):
        config.training.lr = 1.0


def test_the_default_comes_back() -> None:
    assert check_config(yaml.safe_load(TransduceConfig().dump()), "test") == TransduceConfig()
    assert changed(TransduceConfig()) == {}


def test_what_is_changed() -> None:
    config = load_config(None, ["training.budget=3m", "model.decoder.kind=recurrent"])
    found = changed(config)
    assert found["training.budget"] == [None, 180.0]
    assert found["model.decoder.kind"] == ["auto", "recurrent"]
    assert found["model.decoder.cell"] == [None, "lstm"]
    assert not any(key.startswith(("task", "model.encoder", "search")) for key in found)


def test_a_recipe_with_settings_on_top(tmp_path: Path) -> None:
    recipe = tmp_path / "mine.yaml"
    recipe.write_text("training: {lr: 3e-4, steps: 5}\nsearch: {beam: 2}\n", "utf-8")
    config = load_config(str(recipe), ["training.steps=9"])
    assert (config.training.lr, config.training.steps, config.search.beam) == (3e-4, 9, 2)


def test_an_empty_recipe_is_the_default(tmp_path: Path) -> None:
    recipe = tmp_path / "empty.yaml"
    recipe.write_text("# nothing yet\n", "utf-8")
    assert load_config(str(recipe)) == TransduceConfig()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("training: {lr: [", "invalid YAML"),
        ("- a\n- b\n", "expected sections"),
        ("just words\n", "expected sections"),
        ("trainig: {lr: 1}\n", "did you mean training"),
    ],
)
def test_a_broken_recipe(tmp_path: Path, text: str, message: str) -> None:
    recipe = tmp_path / "broken.yaml"
    recipe.write_text(text, "utf-8")
    with pytest.raises(UserError, match=message) as error:
        load_config(str(recipe))
    assert "broken.yaml" in str(error.value)


def test_a_recipe_that_is_not_there() -> None:
    with pytest.raises(UserError, match="nowhere: neither a file nor a recipe"):
        read_recipe("nowhere")


@pytest.mark.parametrize(
    ("setting", "kind"),
    [
        ("model.encoder.cell=gru", "recurrent"),
        ("model.encoder.heads=2", "transformer"),  # a graph attention network has heads as well
        ("model.encoder.output_heads=2", "gat"),
        ("model.encoder.width=8", "auto"),
    ],
)
def test_a_setting_that_only_one_kind_has_chooses_that_kind(setting: str, kind: str) -> None:
    assert load_config(settings=[setting]).model.encoder.kind == kind


@pytest.mark.parametrize(
    ("setting", "kind"),
    [
        ("model.frontend.augment.flip=true", "grid"),
        ("model.frontend.augment.noise=0.1", "convolution"),
        ("model.frontend.deltas=1", "convolution"),
    ],
)
def test_of_frontends_that_read_the_same_the_first_is_used(setting: str, kind: str) -> None:
    config = load_config(None, ["task.kind=classify", setting])
    assert config.model.frontend.kind == kind


def test_a_section_that_fits_several_inputs_needs_a_kind() -> None:
    (line,) = error_of("task.kind=classify", "model.frontend.augment={}")
    assert line.startswith("model.frontend: expected a kind; set model.frontend.kind to one of ")
