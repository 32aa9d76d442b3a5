"""Sequence-level objectives: gradients equal those of listing all outputs of a tiny problem."""

import itertools
import math
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from regard.config.load import check_config
from regard.core.errors import UserError
from regard.data.reading.read import Pair
from regard.data.tensors.padded import Batch, Outputs, pad
from regard.data.tensors.special import EOS, PAD
from regard.metrics.rewards import rewards
from regard.objectives import Context, CrossEntropy, MinimumRisk, Mixer, Objective, Reinforce
from regard.objectives.candidates import Candidate, pack
from regard.search import Hypothesis
from regard.training.loop import train
from regard.training.start import start_run

A, B, LONGEST = 5, 6, 3
V = 7
ALL = [o for n in range(LONGEST) for o in itertools.product((A, B), repeat=n)]  # without EOS
TRUE = [(A, B), (B,)]
BATCH = Batch(pad([[A, EOS], [B, EOS]]), pad([[*one, EOS] for one in TRUE]))


class Table(nn.Module):
    """A bigram model per source: the logits of a token depend on the previous one. After two tokens
    only EOS follows, so `ALL` are all outputs."""

    def __init__(self) -> None:
        super().__init__()
        logits = torch.randn(2, V, V, generator=torch.Generator().manual_seed(1))
        self.logits = nn.Parameter(logits.double())

    def forward(self, batch: Batch) -> Outputs:
        assert batch.target is not None
        tokens, mask = batch.target.data, batch.target.mask
        rows = torch.arange(len(tokens)) // (len(tokens) // 2)
        before = torch.cat([torch.full_like(tokens[:, :1], 2), tokens[:, :-1]], 1)
        scores = self.logits[rows[:, None], before].clone()  # (R, T, V)
        scores[..., [0, 1, 2, 4]] = float("-inf")
        end = torch.full((V,), float("-inf"))
        end[EOS] = 0.0
        scores[:, LONGEST - 1 :] = end.double()
        return Outputs(scores[mask])

    def logp(self, row: int, output: tuple[int, ...]) -> Tensor:
        """The log probability of an output, token by token."""
        total, before = torch.zeros(()).double(), 2
        for position, token in enumerate((*output, EOS)):
            if position < LONGEST - 1:
                logits = self.logits[row, before, [EOS, A, B]]
                total = total + logits.log_softmax(-1)[(EOS, A, B).index(token)]
            before = token
        return total


def reward(output: tuple[int, ...], true: tuple[int, ...]) -> float:
    """A reward that differs for most outputs."""
    same = sum(a == b for a, b in zip(output, true, strict=False))
    return (1 + same) / (2 + max(len(output), len(true)))


def rewards_of(metric: str, outputs: Any, references: Any) -> list[float]:
    return [reward(tuple(o), tuple(r)) for o, r in zip(outputs, references, strict=True)]


def expected_reward(model: Table) -> Tensor:
    """By listing all outputs."""
    return torch.stack(
        [model.logp(n, o).exp() * reward(o, TRUE[n]) for n in range(2) for o in ALL]
    ).sum()


def decoder(model: Table, drawn: Any = None) -> Any:
    """A search that returns what `drawn` says, or samples from the listed probabilities."""

    def decode(search: Any, request: Any) -> list[list[Hypothesis]]:
        found = []
        for row in range(2):
            p = torch.stack([model.logp(row, o) for o in ALL]).exp().detach()
            picks = torch.multinomial(p, request.nbest, replacement=True).tolist()
            some = [ALL[n] for n in picks] if drawn is None else drawn
            found.append([Hypothesis(one, 0.0, ()) for one in some])
        return found

    return decode


def gradient(objective: Objective, model: Table, drawn: Any = None, progress: float = 1.0) -> Any:
    context = Context(progress, 0, decoder(model, drawn), rewards_of)
    batch = objective.prepare(model, BATCH, context)
    loss = objective(model, batch, context)
    assert loss.count == objective.count(batch) == 2
    return torch.autograd.grad(loss.sum, model.logits)[0], loss


def test_the_model_gives_each_output_its_probability() -> None:
    model = Table()
    total = sum(float(model.logp(0, output).detach().exp()) for output in ALL)
    assert total == pytest.approx(1.0)


@pytest.mark.parametrize("candidates", ["samples", "nbest"])
def test_risk_of_all_outputs_is_the_expected_cost(candidates: str) -> None:
    """And its gradient that of the expected reward, exactly."""
    model = Table()
    objective = MinimumRisk(samples=len(ALL), cross_entropy=0.0, candidates=candidates)
    found, loss = gradient(objective, model, ALL)
    expected = torch.autograd.grad(-expected_reward(model), model.logits)[0]
    torch.testing.assert_close(found, expected, atol=1e-6, rtol=0)
    assert float(loss.sum) == pytest.approx(2 - float(expected_reward(model)), abs=1e-6)
    assert float(loss.parts["risk"]) == pytest.approx(float(loss.sum), abs=1e-6)
    entropies = [-model.logp(n, o) * model.logp(n, o).exp() for n in range(2) for o in ALL]
    assert float(loss.parts["entropy"]) == pytest.approx(float(sum(entropies)), abs=1e-6)


@pytest.mark.parametrize("baseline", ["none", "greedy", "moving"])
def test_weighted_by_their_probabilities_samples_give_the_policy_gradient(baseline: str) -> None:
    """Any baseline that does not depend on the sample leaves the expectation as it is."""
    model, objective = Table(), Reinforce(cross_entropy=0.0, baseline=baseline)
    rows = [
        [Candidate(o, reward(o, TRUE[n]), float(model.logp(n, o).exp())) for o in ALL]
        for n in range(2)
    ]
    tensors = pack(rows, torch.zeros(0))
    tensors["baseline"] = torch.tensor([[0.3], [0.6]]) * (baseline != "none")
    batch = BATCH._replace(prepared=tensors | {"forced": torch.zeros(2).long()})
    loss = objective(model, batch)
    found = torch.autograd.grad(loss.sum, model.logits)[0]
    expected = torch.autograd.grad(-expected_reward(model), model.logits)[0]
    torch.testing.assert_close(found, expected, atol=1e-5, rtol=0)


@pytest.mark.parametrize("baseline", ["mean", "greedy", "none"])
def test_many_samples_give_the_policy_gradient(baseline: str) -> None:
    """Within five standard errors of a mean of 4,000 samples; a fifth of the gradient is more."""
    torch.manual_seed(0)
    model, objective = Table(), Reinforce(samples=4000, cross_entropy=0.0, baseline=baseline)
    found, _ = gradient(objective, model)
    expected = torch.autograd.grad(-expected_reward(model), model.logits)[0]
    tolerance = 5 * 0.5 / math.sqrt(4000)
    assert float((found - expected).abs().max()) < tolerance < float(expected.abs().max())
    assert float((0.8 * expected - expected).norm()) > 2 * float((found - expected).norm())


def test_baselines_by_hand() -> None:
    """Rewards 1, 1 and 0 of three samples: the mean of the other two is 1/2, 1/2 and 1."""
    model = Table()
    context = Context(0.5, 0, decoder(model, [(A, B), (A, B), ()]), lambda m, o, r: [
        float(tuple(a) == (A, B)) for a in o
    ], {"reward": 0.7})  # fmt: skip
    kinds = {}
    for kind in ("mean", "moving", "none", "greedy"):
        objective = Reinforce(samples=3, baseline=kind)
        prepared = objective.prepare(model, BATCH, context).prepared
        kinds[kind] = prepared["baseline"][0, :2].tolist()
        assert prepared["weight"][0, :2].tolist() == pytest.approx(
            [2 / 3, 1 / 3]
        )  # distinct outputs
    assert kinds["mean"] == pytest.approx([0.5, 1.0])
    assert kinds["moving"] == pytest.approx([0.7, 0.7])
    assert kinds["none"] == [0, 0]
    assert kinds["greedy"] == pytest.approx([1.0, 1.0])  # the first that this search returns


def test_the_moving_baseline_is_an_average() -> None:
    objective = Reinforce(baseline="moving")
    state = objective.advance({}, {"reward": 0.5})
    assert state == {"reward": 0.5}
    assert objective.advance(state, {"reward": 1.0})["reward"] == pytest.approx(0.505)
    assert Reinforce().advance({}, {"reward": 0.5}) == {}


def test_mixer_trains_the_first_tokens_on_the_reference() -> None:
    """At first all tokens: cross entropy. Later the last ones are sampled."""
    model = Table()
    found, loss = gradient(Mixer(cross_entropy=0.0), model, progress=0.0)
    nll = -sum(model.logp(n, TRUE[n]) for n in range(2))
    expected = torch.autograd.grad(nll, model.logits)[0]
    torch.testing.assert_close(found, expected, atol=1e-6, rtol=0)
    assert float(loss.parts["sampled_fraction"]) == 0
    half = Mixer(end=0.8)
    assert [half.sampled_fraction(p) for p in (0.0, 0.4, 0.8, 1.0)] == [0.0, 0.5, 1.0, 1.0]
    assert Mixer(start=0.5, end=0.5).sampled_fraction(0.5) == 1.0
    forced = half.forced(BATCH, Context(progress=0.4))
    assert forced.tolist() == [1, 1]  # of 3 and 2 tokens with EOS
    asked: list[Any] = []

    def decode(search: Any, request: Any) -> Any:
        asked.extend(one.prefix for one in request.constraints)
        return [[Hypothesis(one, 0.0, ())] * request.nbest for one in ((A,), (B, A))]

    context = Context(0.4, 0, decode, rewards_of)
    batch = Mixer(end=0.8, baseline="none", cross_entropy=0.0).prepare(model, BATCH, context)
    assert asked == [(A,), (B,)]
    loss = Mixer(end=0.8, baseline="none", cross_entropy=0.0)(model, batch, context)
    sampled = model.logits[0, A, [EOS, A, B]].log_softmax(-1)[0] * reward((A,), (A, B))
    rest = model.logits[1, B, [EOS, A, B]].log_softmax(-1)[1] * reward((B, A), (B,))
    first = [model.logits[n, 2, [EOS, A, B]].log_softmax(-1)[n + 1] for n in range(2)]
    assert float(loss.sum) == pytest.approx(-float(sampled + rest + sum(first)), abs=1e-6)


@pytest.mark.parametrize("kind", [MinimumRisk, Reinforce])
def test_only_cross_entropy_is_the_likelihood_of_the_references(kind: type) -> None:
    model = Table()
    found, _ = gradient(kind(cross_entropy=1.0), model)
    nll = -sum(model.logp(n, TRUE[n]) for n in range(2))
    torch.testing.assert_close(found, torch.autograd.grad(nll, model.logits)[0])


def test_references_need_not_be_candidates() -> None:
    model = Table()
    objective = MinimumRisk(samples=2, include_reference=False, alpha=0.5, cross_entropy=0.0)
    _, loss = gradient(objective, model, [(A,), ()])
    costs, weights = [], []
    for n in range(2):
        p = [float(model.logp(n, o).exp()) ** 0.5 for o in ((A,), ())]
        weights.append([one / sum(p) for one in p])
        costs.append([1 - reward(o, TRUE[n]) for o in ((A,), ())])
    expected = sum(
        a * b for w, c in zip(weights, costs, strict=True) for a, b in zip(w, c, strict=True)
    )
    assert float(loss.sum) == pytest.approx(expected, abs=1e-6)


def test_padding_of_candidates() -> None:
    rows = [[Candidate((A,), 1.0, 1.0)], [Candidate((), 0.5, 0.25), Candidate((B, A), 0.0, 0.75)]]
    found = pack(rows, torch.zeros(0))
    assert found["tokens"].tolist() == [
        [[A, EOS, PAD], [EOS, PAD, PAD]], [[EOS, PAD, PAD], [B, A, EOS]],
    ]  # fmt: skip
    assert found["real"].tolist() == [[True, False], [True, True]]


def test_rewards_by_hand() -> None:
    outputs, true = ["a b c", "a b", "x"], ["a b c", "a b c", "a b c d"]

    def score(metric: str) -> list[float]:
        return rewards(metric, outputs, true, str.split)

    assert score("exact_match") == [1, 0, 0]
    assert score("edit_distance") == pytest.approx([1, 2 / 3, 0])
    assert score("ser") == score("wer") == pytest.approx([1, 2 / 3, 0])
    assert score("cer") == pytest.approx([1, 1 - 2 / 5, 0])
    assert score("bleu")[0] == pytest.approx(1) and score("chrf")[0] == pytest.approx(1)
    # both bigrams and unigrams match; brevity exp(1 - 3/2)
    assert score("bleu")[1] == pytest.approx(math.exp(-0.5))
    assert rewards("ser", ["a b c d e"], ["a"], str.split) == [-3]


PAIRS = [Pair(text, text[::-1], n) for n, text in enumerate(("ab", "ba", "abb", "bab"), 1)]
SETTINGS = {"training": {"steps": 2, "batch_tokens": 20}}


def test_a_run_from_random_weights_warns(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    tree = SETTINGS | {"objective": {"kind": "risk", "samples": 2}}
    run = start_run(tmp_path, check_config(tree, "test"), PAIRS, PAIRS)
    error = capsys.readouterr().err
    assert "warning: objective.kind=risk: improves a trained model" in error
    assert "help: train with cross entropy first, then add --init-from RUN" in error
    assert run.config.objective.reward == run.task.metric
    records = list(train(run))
    assert all(0 <= r.parts["reward"] <= 1 and r.tokens == r.examples for r in records)


def test_the_learning_rate_is_lower(tmp_path: Path) -> None:
    rates = []
    for kind in ("cross_entropy", "reinforce"):
        tree = SETTINGS | {"objective": {"kind": kind}}
        rates.append(start_run(tmp_path, check_config(tree, "test"), PAIRS, PAIRS))
    one, other = (run.config.training.lr for run in rates)
    assert other == pytest.approx(0.1 * one)
    (setting,) = [s for s in rates[1].auto_settings if s.key == "training.lr"]
    assert setting.reason == "0.1 of the usual rate: fine-tuning with reinforce"


@pytest.mark.parametrize("kind", ["risk", "reinforce", "mixer"])
def test_sharded_weights_are_rejected(kind: str) -> None:
    tree = {"objective": {"kind": kind}, "training": {"parallel": "fsdp"}}
    with pytest.raises(UserError, match=f"fsdp: not supported with objective {kind}"):
        check_config(tree, "test")


def test_evaluation_is_cross_entropy() -> None:
    model = Table()
    for kind in (MinimumRisk, Reinforce, Mixer):
        one = kind()
        assert one.prepare(model, BATCH) is BATCH
        smooth = CrossEntropy(label_smoothing=0.0)
        quiet = kind(label_smoothing=0.0)
        assert torch.equal(quiet(model, BATCH).sum, smooth(model, BATCH).sum)
        assert quiet.count(BATCH) == 5
