"""Guided attention and joint CTC training: by hand, by their parts, and what does not fit."""

import math

import numpy as np
import pytest
import torch

from regard.config.configs import TransduceConfig
from regard.config.load import check_config
from regard.core.errors import UserError
from regard.data.corpus.corpora import PairCorpus
from regard.data.corpus.ragged import Ragged
from regard.data.reading.read import Pair
from regard.data.tensors.padded import Batch, Outputs, pad
from regard.data.tensors.special import EOS
from regard.inputs.input import InputShape
from regard.models.encoder_decoder import EncoderDecoderOptions
from regard.nn.capture_hooks import recording
from regard.objectives import CrossEntropy, ScheduledSampling
from regard.objectives.ctc import ctc_nll
from regard.objectives.guided_attention import guided_loss, off_diagonal
from regard.objectives.objective import Loss
from regard.training.shards import backward
from regard.training.start import start_run
from regard.training.transfer import PretrainedModel

SOURCES = [[5, 6, 7, 8, 5, EOS], [6, 5, 5, EOS], [8, EOS]]
TARGETS = [[5, 7, EOS], [6, 6, EOS], [5, 7, 6, EOS]]  # the last does not fit into its frames
BATCH = Batch(pad(SOURCES), pad(TARGETS))
PAIRS = [Pair(word, word[::-1], line) for line, word in enumerate(["abcd", "bacb", "cab", "b"], 1)]


def model_of(decoder: str, cross: str, ctc: bool = False) -> torch.nn.Module:
    """A tiny model in eval mode."""
    torch.manual_seed(1)
    side = {"kind": decoder, "width": 8, "layers": 2, "dropout": 0.0}
    side |= {"heads": 2, "feedforward_width": 8} if decoder == "transformer" else {}
    tree = {"encoder": side, "decoder": side | {"cross": cross}, "embedding_width": 0, "ctc": ctc}
    options = EncoderDecoderOptions.model_validate(tree)
    return options.build(InputShape("text", 9), 9, shared=False).eval()


def rows() -> list[Batch]:
    return [BATCH.take(slice(n, n + 1)) for n in range(3)]


def test_penalties_by_hand() -> None:
    """Lengths 2 and 4 in the first row, 1 and 2 in the second."""
    target, source = torch.tensor([[1, 1], [1, 0]]).bool(), torch.tensor([[1] * 4, [1, 1, 0, 0]])
    found = off_diagonal(target, source.bool(), 0.5)
    at = lambda apart: 1 - math.exp(-(apart**2) / 0.5)  # noqa: E731
    expected = [[0.0, 0.25, 0.5, 0.75], [0.5, 0.25, 0.0, 0.25]]
    close = [[at(apart) for apart in row] for row in expected]
    torch.testing.assert_close(found[0], torch.tensor(close))
    torch.testing.assert_close(found[1, 0, :2], torch.tensor([0.0, at(0.5)]))
    at_width = off_diagonal(torch.ones(1, 5).bool(), torch.ones(1, 5).bool(), 0.2)
    assert float(at_width[0, 0, 1]) == pytest.approx(0.39, abs=0.005)  # as the option says


def test_the_guided_loss_by_hand() -> None:
    """One row, two tokens: weights on the diagonal cost nothing."""
    batch = Batch(None, pad([[5, EOS]]))
    output = Outputs(torch.zeros(2, 9), encoded=torch.ones(1, 2).bool())
    weights = torch.tensor([[[1.0, 0.0], [0.5, 0.5]]])
    loss = guided_loss(Loss(torch.tensor(3.0), 2, {}), weights, output, batch, 10.0, 0.5)
    penalty = 0.5 * (1 - math.exp(-0.25 / 0.5))
    assert float(loss.sum) == pytest.approx(3 + 10 * penalty)
    assert float(loss.parts["guided_attention"]) == pytest.approx(penalty)


GUIDED = [("recurrent", kind) for kind in ("additive", "location", "monotonic")]
GUIDED += [("transformer", kind) for kind in ("softmax", "topk", "additive")]


@pytest.mark.parametrize(("decoder", "cross"), GUIDED)
def test_guided_attention_reads_the_weights_of_the_model(decoder: str, cross: str) -> None:
    """Those of the last layer, averaged over heads; rows are apart, and padding does not count."""
    model = model_of(decoder, cross)
    objective = CrossEntropy(guided_attention=2.0)
    whole, plain = objective(model, BATCH), CrossEntropy()(model, BATCH)
    with recording() as seen:
        model(BATCH)
    penalty = 0.0
    for row, (source, target) in enumerate(zip(SOURCES, TARGETS, strict=True)):
        for t in range(len(target)):
            for s in range(len(source)):
                apart = s / len(source) - t / len(target)
                weight = float(seen.alignment()[row, t, s].detach())
                penalty += weight * (1 - math.exp(-(apart**2) / (2 * 0.2**2)))
    assert float(whole.parts["guided_attention"]) == pytest.approx(penalty, rel=1e-4)
    assert float((whole.sum - plain.sum).detach()) == pytest.approx(2 * penalty, rel=1e-4)
    alone = [objective(model, row) for row in rows()]
    assert float(whole.sum.detach()) == pytest.approx(
        sum(float(x.sum.detach()) for x in alone), rel=1e-5
    )
    whole.sum.backward()
    moved = [p.grad for name, p in model.named_parameters() if "query" in name or "score" in name]
    assert any(g is not None and bool(g.any()) for g in moved)


def test_guided_attention_in_bfloat16_and_in_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("regard.training.shards.MIN_ROWS", 1)
    model, objective = model_of("transformer", "softmax", ctc=True), CrossEntropy(
        guided_attention=1.0, ctc_weight=0.4
    )  # fmt: skip
    one = backward(model, objective, BATCH, 1.0, 1)
    first = [p.grad.clone() for p in model.parameters() if p.grad is not None]
    model.zero_grad()
    two = backward(model, objective, BATCH, 1.0, 3)
    again = [p.grad.clone() for p in model.parameters() if p.grad is not None]
    torch.testing.assert_close(first, again, atol=1e-4, rtol=1e-4)
    for name in ("nll", "ctc", "guided_attention"):
        assert float(one.parts[name]) == pytest.approx(float(two.parts[name]), rel=1e-4)
    with torch.autocast("cpu", torch.bfloat16):
        half = objective(model, BATCH)
    assert float(half.sum.detach()) == pytest.approx(float(one.sum.detach()), rel=0.05)


@pytest.mark.parametrize("decoder", ["recurrent", "transformer"])
def test_the_joint_loss_is_the_weighted_sum_of_both(decoder: str) -> None:
    """CTC from the states of the encoder, by its own output layer; also step by step."""
    model = model_of(decoder, "additive", ctc=True)
    joint = CrossEntropy(ctc_weight=0.3, label_smoothing=0.1)(model, BATCH)
    alone = CrossEntropy(label_smoothing=0.1)(model, BATCH)
    memory = model.encoder(model.frontend(BATCH.source))
    scores = (memory.data @ model.ctc.weight.T + model.ctc.bias).log_softmax(-1)
    each = ctc_nll(scores, memory.mask, BATCH.target)
    assert [math.isfinite(x) for x in each.tolist()] == [True, True, False]
    ctc = float(each[:2].sum().detach())
    total = 0.7 * float(alone.sum.detach()) + 0.3 * ctc
    assert float(joint.sum.detach()) == pytest.approx(total, rel=1e-5)
    assert float(joint.parts["ctc"]) == pytest.approx(ctc, rel=1e-5)
    assert float(joint.parts["nll"]) == pytest.approx(float(alone.parts["nll"]))
    assert joint.count == alone.count == CrossEntropy().count(BATCH)
    apart = sum(float(CrossEntropy(ctc_weight=0.3)(model, row).sum.detach()) for row in rows())
    assert total == pytest.approx(apart, rel=1e-5)
    scheduled = ScheduledSampling(ctc_weight=0.3, label_smoothing=0.1)(model, BATCH)
    assert float(scheduled.sum.detach()) == pytest.approx(total, rel=1e-5)


def test_targets_that_do_not_fit_are_named() -> None:
    corpus = PairCorpus(Ragged.of([[5, 6], [5]], EOS), Ragged.of([[5, 5], [6, 6]], EOS))
    found = EncoderDecoderOptions(ctc=True).unfit(corpus, "text")
    assert found is not None and found[0].tolist() == [False, True]
    assert "objective.ctc_weight" in found[1]
    assert EncoderDecoderOptions().unfit(corpus, "text") is None
    assert isinstance(found[0], np.ndarray)


def config_of(objective: dict[str, object], **decoder: object) -> TransduceConfig:
    side = {"kind": "recurrent", "width": 8, "layers": 1}
    tree = {"model": {"encoder": side, "decoder": side | decoder}, "objective": objective}
    task = {side: {"tokenizer": "char"} for side in ("source", "target")}
    config = check_config({**tree, "task": task, "training": {"steps": 2}}, "settings")
    assert isinstance(config, TransduceConfig)
    return config


def test_the_weight_adds_the_layer(tmp_path: object) -> None:
    """It is saved with the model, and a later run without the weight does not inherit it."""
    config = config_of({"ctc_weight": 0.3})
    assert config.model.ctc and not config_of({}).model.ctc
    run = start_run(tmp_path, config, PAIRS, PAIRS)  # type: ignore[arg-type]
    tensors = run.model.state_dict()
    assert {"ctc.weight", "ctc.bias"} <= set(tensors)
    assert EncoderDecoderOptions.model_validate(run.config.model.model_dump()).ctc
    before = PretrainedModel(run.folder, run.config, run.task, tensors)
    for objective, kept in (({"kind": "risk"}, False), ({"ctc_weight": 0.5}, True)):
        again = start_run(tmp_path, config_of(objective), PAIRS, PAIRS, before)  # type: ignore[arg-type]
        assert again.config.model.ctc == ("ctc.weight" in again.model.state_dict()) == kept


RECURRENT, TRANSFORMER = {"kind": "recurrent"}, {"kind": "transformer"}
GUIDE, JOINT = {"guided_attention": 1}, {"ctc_weight": 0.3}
MISTAKES: dict[str, tuple[dict[str, object], str]] = {
    "no attention": (
        {"objective": GUIDE, "model": {"decoder": RECURRENT | {"cross": "none"}}},
        r"guided_attention: cross none has no attention weights .* model.decoder.cross=additive",
    ),
    "no weights": (
        {"objective": GUIDE, "model": {"decoder": TRANSFORMER | {"cross": "linear"}}},
        r"cross linear has no attention weights that training can read; .*cross=softmax",
    ),
    "no layer": ({"objective": JOINT, "model": {"ctc": False}}, r"requires model.ctc=true"),
    "no weight": (
        {"objective": "risk", "model": {"ctc": True}},
        r"objective risk does not train this layer",
    ),
    "no decoder": (
        {"objective": JOINT, "model": {"decoder": "none"}},
        r"objective.ctc_weight.*found none",
    ),
    "parallel decoder": (
        {"model": {"ctc": True, "decoder": "parallel"}},
        r"writes token by token, found parallel",
    ),
    "no cross entropy": ({"objective": {"ctc_weight": 1}}, r"ctc_weight"),
    "other objective": ({"objective": GUIDE | {"kind": "distill"}}, r"guided_attention"),
    "other task": ({"task": {"kind": "language-model"}, "objective": JOINT}, r"ctc_weight"),
    "other decoder": (
        {"model": {"decoder": TRANSFORMER | {"cross": "monotonic"}}},
        r"cross monotonic is for recurrent decoders only; use model.decoder.kind=recurrent",
    ),
}


@pytest.mark.parametrize(("tree", "message"), MISTAKES.values(), ids=MISTAKES)
def test_what_does_not_fit_is_an_error_by_name(tree: dict[str, object], message: str) -> None:
    with pytest.raises(UserError, match=message):
        check_config(tree, "settings")
