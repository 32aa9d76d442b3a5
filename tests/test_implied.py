"""Settings that follow from each other are filled in and printed; contradictions are named."""

import pytest

from regard.config.defaults import fill_defaults
from regard.config.implied import implied_lines
from regard.config.load import load_config, user_settings
from regard.core.data_stats import DataStats
from regard.core.errors import UserError

PARALLEL = {"model.decoder.kind": "parallel"}
FILL = {"objective.kind": "cmlm", "search.kind": "refine"}
FRAMES = {"objective.kind": "ctc", "search.kind": "ctc"}


@pytest.mark.parametrize(
    ("settings", "implied"),
    [
        ([], {}),
        (["search.kind=sample"], {}),
        (["model.decoder.kind=transformer"], {}),
        (["model.decoder.kind=parallel"], FILL),
        (["objective.kind=cmlm"], PARALLEL | FILL),
        (["search.passes=2"], PARALLEL | FILL),
        (["model.decoder.length=eos"], PARALLEL | FILL),
        (["model.decoder.kind=parallel", "objective.label_smoothing=0.2"], FILL),
        (["objective.kind=ctc"], PARALLEL | {"model.decoder.length": "ctc"} | FRAMES),
        (["search.kind=ctc"], PARALLEL | {"model.decoder.length": "ctc"} | FRAMES),
        (["model.decoder.upsample=3"], PARALLEL | {"model.decoder.length": "ctc"} | FRAMES),
        (["model.decoder.length=ctc"], PARALLEL | FRAMES),
        (["model.decoder.kind=none"], FRAMES),
        (["objective.kind=ctc", "model.decoder.kind=none"], {"search.kind": "ctc"}),
        (["task.kind=language-model", "model.kind=masked"], {"objective.kind": "masked"}),
        (["task.kind=language-model", "objective.kind=masked"], {"model.kind": "masked"}),
    ],
    ids=str,
)
def test_what_fits_is_filled_in(settings: list[str], implied: dict[str, str]) -> None:
    config = load_config(None, settings)
    given = {setting.partition("=")[0] for setting in settings}
    lines = {one.key: one.value for one in implied_lines(config)}
    lines.pop("model.decoder.length", None)
    expected = {key: value for key, value in implied.items() if key not in given}
    expected.pop("model.decoder.length", None)
    assert lines == expected
    assert config.model.gives in config.objective.takes & config.search.takes
    assert not user_settings(config) & set(expected)  # the user did not set them
    if "language" not in str(settings):
        full, printed = fill_defaults(config, DataStats(5, 60, 9, False))
        assert expected.items() <= {one.key: one.value for one in printed}.items()
        assert all(one.reason for one in printed)
        assert fill_defaults(full, DataStats(5, 60, 9, False)) == (full, [])


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (
            ["model.decoder.kind=transformer", "objective.kind=ctc"],
            "objective ctc: requires a model that outputs frames, this one outputs steps",
        ),
        (
            ["model.decoder.kind=parallel", "search.kind=beam"],
            "search beam: requires a model that outputs steps, this one outputs fill; "
            "use search.kind=refine",
        ),
        (
            ["model.decoder.kind=none", "objective.kind=cmlm"],
            "objective cmlm: requires a model that outputs fill, this one outputs frames; "
            "use objective.kind=ctc",
        ),
        (
            ["model.decoder.length=eos", "objective.kind=ctc"],
            "objective ctc: requires a model that outputs frames, this one outputs fill",
        ),
        (
            ["objective.kind=cmlm", "search.kind=ctc"],
            "requires a model that outputs",
        ),
        (
            ["model.decoder.kind=parallel", "model.decoder.attention.kind=convolution", "model=3"],
            "model",
        ),
    ],
    ids=str,
)
def test_contradictions_are_named(settings: list[str], message: str) -> None:
    with pytest.raises(UserError, match=message.replace(".", r"\.")):
        load_config(None, settings)
