"""What parallel decoders do not support is an error that names it, before anything is computed."""

from pathlib import Path
from typing import Any

import pytest

from regard.config.load import check_config
from regard.core.errors import UserError
from regard.data.reading.read import Pair
from regard.exchange.export import export_model
from regard.inference.prediction.ensembles import build_ensemble
from regard.inference.prediction.output_lines import OutputFormat
from regard.inference.prediction.predict_options import PredictOptions
from regard.inference.predictor import Predictor
from regard.inference.shortlisted import with_shortlist
from regard.tasks.values import Constraints
from regard.training.start import start_run

PAIRS = [Pair(word, word[::-1], n) for n, word in enumerate(["abc", "ba", "cab", "b", "acc"], 1)]
SIZES = {"width": 8, "layers": 1}
DECODERS = [{"kind": "parallel"}, {"kind": "parallel", "length": "ctc"}, {"kind": "none"}]
GIVES = ["fill", "frames", "frames"]


@pytest.fixture(params=range(3), ids=["fill", "ctc", "none"])
def model(request: Any) -> Predictor:
    decoder = {"width": 8, **DECODERS[request.param]}
    tree = {"model": {"encoder": {"kind": "recurrent", **SIZES}, "decoder": decoder}}
    run = start_run(Path("nowhere"), check_config(tree, "test"), PAIRS, PAIRS)
    found = Predictor.of(run.task, run.config, run.model.eval(), Path("run"))
    assert found.config.model.gives == GIVES[request.param]
    return found


@pytest.mark.parametrize("engine", ["onnx", "ctranslate2"])
def test_other_engines(model: Predictor, engine: str, tmp_path: Path) -> None:
    kind = model.config.model.decoder.kind
    with pytest.raises(UserError, match=rf"model\.decoder\.kind={kind}"):
        export_model(model, engine, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_what_needs_steps(model: Predictor) -> None:
    gives = model.config.model.gives
    with pytest.raises(UserError, match=f"--ensemble run: expected .* outputs {gives}"):
        build_ensemble(model, {"other": model})
    with pytest.raises(UserError, match=f"shortlist: expected .* outputs {gives}"):
        with_shortlist(model, True)
    for one in (
        PredictOptions("run", constraints=Constraints(prefix="a")),
        PredictOptions("run", format=OutputFormat(1, True, False, True)),
    ):
        with pytest.raises(UserError, match=f"token by token, found transduce with output {gives}"):
            one.check_model(model)
    assert model.abilities == {"predict", "nbest"}


@pytest.mark.parametrize("kind", ["beam", "sample"])
def test_other_searches(model: Predictor, kind: str) -> None:
    own = model.config.search.kind
    with pytest.raises(UserError, match=rf"search\.kind={kind}: not supported .*available: {own}$"):
        model.search_options(kind=kind)
    with pytest.raises(UserError, match="length_penalty: unknown search setting"):
        model.search_options(length_penalty=1.0)
