"""Mask-predict: the loss of three examples by hand, lengths, and the passes of the search."""

import math
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from regard.config.load import check_config
from regard.core.errors import UserError
from regard.data.tensors.padded import Batch, LengthScores, Outputs, Padded, pad
from regard.data.tensors.special import EOS, MASK
from regard.data.tensors.state import State
from regard.models.parallel import LengthClassifier, SoftCopy
from regard.objectives import CMLM
from regard.objectives.cmlm import length_nll, masked_inputs
from regard.search import Refine, SearchRequest

V = 8
TARGETS = [[5, 6, 7, EOS], [6, 6, EOS], [EOS]]


class Filler(nn.Module):
    """A model whose logits depend on the position only; and its length scores."""

    positions = 0

    def __init__(self, logits: Tensor, lengths: LengthScores | None) -> None:
        super().__init__()
        self.logits, self.scores = logits, lengths  # (B, T, V)
        self.seen: list[Tensor] = []

    def unknown(self, target: Tensor) -> Tensor:
        return torch.where(target == EOS, target, MASK)

    def forward(self, batch: Batch, inputs: Tensor) -> Outputs:
        assert batch.target is not None
        masked = (inputs == MASK) & batch.target.mask
        return Outputs(self.logits[:, : inputs.shape[1]][masked], lengths=self.scores)

    def start(self, source: Padded) -> State:
        return State({}, {})

    def lengths(self, state: State) -> LengthScores | None:
        return self.scores

    def fill(self, tokens: Tensor, real: Tensor, state: State) -> Tensor:
        self.seen.append(tokens.clone())
        copies = len(tokens) // len(self.logits)
        return self.logits[:, : tokens.shape[1]].repeat_interleave(copies, 0)


def logits_of(probabilities: list[list[dict[int, float]]]) -> Tensor:
    """Logits (B, T, V) with these probabilities of some tokens; the rest is shared evenly."""
    rows = []
    for row in probabilities:
        each = []
        for position in row:
            rest = (1 - sum(position.values())) / (V - len(position))
            each.append([math.log(position.get(token, rest)) for token in range(V)])
        rows.append(each)
    return torch.tensor(rows)


def test_the_loss_of_three_examples_by_hand() -> None:
    """Of three, two and no tokens. Masked: 5 and 7 of the first, the first 6 of the second."""
    row: list[dict[int, float]] = [{5: 0.5, 6: 0.25}, {6: 0.5}, {7: 0.125}, {EOS: 0.5}]
    logits = logits_of([row, row, row])
    shortest = torch.tensor([3, 3, 1])  # lengths 3 and 4; 3 and 4; 1 and 2: EOS counts
    p = torch.tensor([[0.25, 0.75], [0.5, 0.5], [0.9, 0.1]])
    model = Filler(logits, LengthScores(p.log(), shortest))
    inputs = torch.tensor([[MASK, 6, MASK, EOS], [MASK, 6, EOS, 0], [EOS, 0, 0, 0]])
    batch = Batch(pad([[5, EOS]] * 3), pad(TARGETS), prepared=inputs)
    objective = CMLM(label_smoothing=0.0, length_weight=0.5)
    loss = objective(model, batch)
    nll = -math.log(0.5) - math.log(0.125) - math.log(0.25)
    length = -math.log(0.75) - math.log(0.5) - math.log(0.9)
    assert float(loss.parts["nll"]) == pytest.approx(nll)
    assert float(loss.parts["length"]) == pytest.approx(length, rel=1e-5)
    assert float(loss.sum) == pytest.approx(nll + 0.5 * length, rel=1e-5)
    assert loss.count == objective.count(batch) == 3


def test_masks_are_uniform_in_number_and_position() -> None:
    """One to all tokens of a row, equally often; each position equally often; EOS never."""
    torch.manual_seed(0)
    target = pad([[5, 6, 7, EOS]] * 6000)
    maskable = target.data != EOS
    masked = masked_inputs(target, maskable, sample=True) == MASK
    counts = torch.bincount(masked.sum(1), minlength=5) / 6000
    torch.testing.assert_close(counts, torch.tensor([0, 1 / 3, 1 / 3, 1 / 3, 0]), atol=0.03, rtol=0)
    share = masked.float().mean(0)
    torch.testing.assert_close(share, torch.tensor([2 / 3, 2 / 3, 2 / 3, 0]), atol=0.03, rtol=0)


def test_masks_of_evaluation_depend_on_the_row_alone() -> None:
    some = [[5, 6, 7, 7, 5, EOS], [6, EOS], [7, 5, 6, EOS]]
    together = masked_inputs(pad(some), pad(some).data >= 5, sample=False)
    for row, tokens in enumerate(some):
        alone = masked_inputs(pad([tokens]), pad([tokens]).data >= 5, sample=False)
        assert together[row, : len(tokens)].tolist() == alone[0].tolist()
        assert (alone == MASK).sum() >= 1


def test_the_length_classifier_counts_from_the_source() -> None:
    model = LengthClassifier(4, most=2, joint=False)
    memory = Padded(torch.randn(2, 5, 4), torch.arange(5) < torch.tensor([[5], [1]]))
    scores = model(memory)
    assert scores.shortest.tolist() == [3, -1] and scores.logits.shape == (2, 5)
    assert scores.logits[1].isinf().tolist() == [True, True, False, False, False]  # at least EOS
    each = length_nll(scores, torch.tensor([4, 9]))  # 9 is beyond the last class, 3
    logp = scores.logits.log_softmax(-1)
    torch.testing.assert_close(each, -torch.stack([logp[0, 1], logp[1, 4]]))


@pytest.mark.parametrize(("length", "changes"), [("classifier", False), ("joint", True)])
def test_only_a_joint_length_loss_changes_the_encoder(length: str, changes: bool) -> None:
    model = LengthClassifier(4, most=2, joint=length == "joint")
    data = torch.randn(1, 3, 4, requires_grad=True)
    model(Padded(data, torch.ones(1, 3, dtype=torch.bool))).logits.sum().backward()
    assert (data.grad is not None) == changes
    assert model.linear.weight.grad is not None


def test_copies_are_scaled_to_the_target_length() -> None:
    """Position i of T reads the source around i * (S - 1) / (T - 1)."""
    copy = SoftCopy(3, 3)
    with torch.no_grad():
        copy.linear.weight.copy_(torch.eye(3))
        copy.linear.bias.zero_()
    memory = Padded(torch.eye(3)[None], torch.ones(1, 3, dtype=torch.bool))
    real = torch.arange(5) < torch.tensor([[5], [2]])
    weights = copy(memory, real)[0]
    near = [math.exp(-2 * d) for d in (0, 1, 2)]
    expected = [n / sum(near) for n in near]
    torch.testing.assert_close(weights[0], torch.tensor(expected))
    assert weights.argmax(1)[[0, 2, 4]].tolist() == [0, 1, 2]
    weights = weights.detach()
    assert float(weights[1, 0]) == pytest.approx(float(weights[1, 1]))  # halfway
    assert copy(memory, real)[1, :2].argmax(1).tolist() == [0, 2]


LENGTHS = LengthScores(torch.tensor([[0.2, 0.5, 0.3]]).log(), torch.tensor([3]))  # 3, 4, 5


def run(model: Filler, limit: int = 9, nbest: int = 1, **options: Any) -> list[Any]:
    (found,) = Refine(**options).run(
        model, SearchRequest(pad([[5, EOS]]), torch.tensor([limit]), nbest)
    )
    return found


def filler() -> Filler:
    """Probabilities of the best tokens 5, 6, 7, 5 at four positions: 0.9, 0.4, 0.7, 0.2."""
    row: list[dict[int, float]] = [{5: 0.9}, {6: 0.4}, {7: 0.7}, {5: 0.2}, {6: 0.3}]
    return Filler(logits_of([row]), LENGTHS)


def test_one_pass_takes_the_best_token_of_each_position() -> None:
    (best,) = run(filler(), passes=1, lengths=1)
    p = [0.9, 0.4, 0.7]
    assert best.tokens == (5, 6, 7)  # the most probable length is 4, EOS included
    assert best.score == pytest.approx(sum(map(math.log, [*p, 0.5])) / 4, abs=1e-5)
    assert best.token_logprobs == pytest.approx([*map(math.log, p), math.log(0.5)], abs=1e-5)
    assert not best.truncated


def test_candidate_lengths_compete_by_the_mean_of_their_tokens_and_the_length() -> None:
    found = run(filler(), passes=1, lengths=3, nbest=3)
    assert [len(one.tokens) for one in found] == [3, 4, 2]
    outputs = [0.9 * 0.4 * 0.2, 0.9 * 0.4 * 0.7 * 0.5, 0.9 * 0.4 * 0.7 * 0.2 * 0.3]
    expected = [math.log(p) / n for p, n in zip(outputs, (3, 4, 5), strict=True)]
    assert [one.score for one in sorted(found, key=lambda one: len(one.tokens))] == pytest.approx(
        expected, abs=1e-5
    )
    assert found[0].score == max(one.score for one in found)


def test_each_pass_masks_the_least_probable_tokens() -> None:
    """floor(n (P - t) / P) of them in pass t (Ghazvininejad et al. 2019, 3.3)."""
    model = filler()
    run(model, passes=4, lengths=1)
    shown = [seen[0].tolist() for seen in model.seen]
    assert shown[0] == [MASK, MASK, MASK, EOS]
    assert shown[1] == [5, MASK, MASK, EOS]  # floor(3 * 3 / 4) = 2: those of 0.4 and 0.7
    assert shown[2] == [5, MASK, 7, EOS]  # floor(3 * 2 / 4) = 1
    assert len(shown) == 3  # floor(3 / 4) = 0: nothing is left to rewrite


def test_limits_bound_the_length() -> None:
    (best,) = run(filler(), limit=3, passes=1, lengths=1)
    assert len(best.tokens) == 2 and best.truncated
    (best,) = run(filler(), limit=2, passes=1, lengths=1)  # shorter than all classes
    assert len(best.tokens) == 1 and best.truncated
    (best,) = run(filler(), passes=1, lengths=1, min_length=4)
    assert len(best.tokens) == 4
    (best,) = run(filler(), passes=1, lengths=1, max_length=3)
    assert len(best.tokens) == 3


def test_an_output_ends_at_its_first_eos() -> None:
    row: list[dict[int, float]] = [{5: 0.9}, {EOS: 0.8}, {EOS: 0.9}, {6: 0.9}, {7: 0.9}]
    model = Filler(logits_of([row]), None)
    model.positions = 5
    (best,) = run(model, passes=1)
    assert best.tokens == (5,)
    assert best.score == pytest.approx((math.log(0.9) + math.log(0.8)) / 2, abs=1e-5)
    assert best.token_logprobs == pytest.approx([math.log(0.9), math.log(0.8)], abs=1e-5)
    row[3], row[4] = {7: 0.9}, {5: 0.5}  # nothing after EOS changes the output
    model.logits = logits_of([row])
    assert run(model, passes=1) == [best]
    row[1] = {6: 0.8}
    model.logits = logits_of([row])
    (best,) = run(model, passes=1, limit=2)
    assert best.tokens == (5,) and best.truncated  # EOS is forced at the limit


def test_without_tokens_the_score_is_that_of_the_length() -> None:
    model = Filler(
        logits_of([[{5: 0.9}]]), LengthScores(torch.tensor([[0.75, 0.25]]).log(), torch.tensor([1]))
    )
    (best,) = run(model, passes=3, lengths=1)
    assert best.tokens == () and best.score == pytest.approx(math.log(0.75))


def test_a_length_that_is_never_learned_is_an_error() -> None:
    with pytest.raises(UserError, match=r"length_weight 0.*use model\.decoder\.length=classifier"):
        check_config({"objective": {"kind": "cmlm", "length_weight": 0}}, "settings")
