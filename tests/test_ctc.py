"""CTC: the loss against a sum over all paths and against torch, decoding against enumeration."""

import itertools
import math

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from regard.config.defaults import fill_defaults
from regard.config.load import check_config
from regard.core.data_stats import DataStats
from regard.data.corpus.corpora import PairCorpus
from regard.data.corpus.ragged import Ragged
from regard.data.tensors.padded import Batch, Outputs, Padded, pad
from regard.data.tensors.special import BLANK, EOS
from regard.models.encoder_decoder import EncoderDecoderOptions
from regard.models.parallel_options import repeats
from regard.objectives import CTC
from regard.objectives.ctc import ctc_nll
from regard.search import Collapse, SearchRequest
from regard.search.ctc import output_probability, prefix_beam_search, viterbi

V = 8  # the five special tokens, of which 0 is the blank, and three others
LETTERS = (5, 6, 7)


def collapse(path: tuple[int, ...]) -> tuple[int, ...]:
    """The output of a path, by the definition: no repeats, then no blanks."""
    return tuple(token for token, _ in itertools.groupby(path) if token != BLANK)


def by_output(logp: np.ndarray) -> dict[tuple[int, ...], list[tuple[float, tuple[int, ...]]]]:
    """All paths of blanks and letters with their log probabilities, by output."""
    found: dict[tuple[int, ...], list[tuple[float, tuple[int, ...]]]] = {}
    for path in itertools.product((BLANK, *LETTERS), repeat=len(logp)):
        total = sum(float(frame[token]) for frame, token in zip(logp, path, strict=True))
        found.setdefault(collapse(path), []).append((total, path))
    return found


def logsum(values: list[float]) -> float:
    return math.log(sum(map(math.exp, values)))


def random_logp(frames: int, seed: int, only_letters: bool = True) -> np.ndarray:
    """Log probabilities of frames; with only_letters, those of other special tokens are -inf."""
    logits = torch.randn(frames, V, generator=torch.Generator().manual_seed(seed)).double()
    if only_letters:
        logits[:, 1:5] = -math.inf
    return logits.log_softmax(-1).numpy()


class Frames(nn.Module):
    """A model that gives the same frames for every source."""

    def __init__(self, logits: Tensor, mask: Tensor) -> None:
        super().__init__()
        self.logits, self.mask = nn.Parameter(logits), mask

    def frames(self, source: Padded) -> Padded:
        return Padded(self.logits, self.mask)

    def forward(self, batch: Batch) -> Outputs:
        return Outputs(self.logits, frames=Padded(self.logits, self.mask))


def toy(sizes: list[int], seed: int) -> Frames:
    mask = torch.arange(max(sizes)) < torch.tensor(sizes)[:, None]
    logits = torch.randn(*mask.shape, V, generator=torch.Generator().manual_seed(seed)).double()
    return Frames(logits, mask)


@pytest.mark.parametrize("target", [(), (5,), (5, 5), (5, 6), (7, 5, 7), (5, 5, 6), (6, 6, 6)])
def test_the_loss_is_the_sum_over_all_paths(target: tuple[int, ...]) -> None:
    """And so is its gradient, found by torch from that sum."""
    model = toy([5], seed=3)
    batch = Batch(pad([[5, EOS]]), pad([[*target, EOS]]))
    loss = CTC()(model, batch)
    loss.sum.backward()
    gradient, model.logits.grad = model.logits.grad, None
    scores = model.logits[0].float().log_softmax(-1).double()
    paths = [p for p in itertools.product((BLANK, *LETTERS), repeat=5) if collapse(p) == target]
    each = torch.stack([scores[range(5), list(path)].sum() for path in paths])
    expected = -each.logsumexp(0)
    expected.backward()
    assert float(loss.sum.detach()) == pytest.approx(float(expected.detach()), rel=1e-5)
    assert loss.count == len(target) + 1
    torch.testing.assert_close(gradient, model.logits.grad, atol=1e-5, rtol=1e-4)


def test_the_loss_is_that_of_torch() -> None:
    model = toy([6, 4, 9], seed=1)
    targets = [[5, 6, EOS], [7, EOS], [5, 5, 6, 7, EOS]]
    loss = CTC()(model, Batch(pad(targets), pad(targets)))
    expected = F.ctc_loss(
        model.logits.float().log_softmax(-1).transpose(0, 1),
        torch.tensor([5, 6, 7, 5, 5, 6, 7]),
        torch.tensor([6, 4, 9]),
        torch.tensor([2, 1, 4]),
        reduction="sum",
    )
    assert float(loss.sum.detach()) == pytest.approx(float(expected.detach()), rel=1e-6)
    assert (loss.count, float(loss.parts["nll"])) == (10, pytest.approx(float(expected.detach())))


def test_targets_that_do_not_fit_are_counted_and_omitted() -> None:
    """Two equal tokens need a blank between them: three frames."""
    model = toy([2, 2], seed=1)
    targets = pad([[5, 5, EOS], [5, 6, EOS]])
    scores = model.logits.detach().float().log_softmax(-1)
    each = ctc_nll(scores, model.mask, targets)
    assert math.isinf(each[0]) and math.isfinite(each[1])
    loss = CTC(label_smoothing=0.1)(model, Batch(targets, targets))
    loss.sum.backward()
    assert loss.count == 3 and bool(loss.sum.isfinite())
    assert model.logits.grad is not None and not model.logits.grad[0].any()
    assert float(loss.parts["nll"]) == pytest.approx(float(each[1]))


def test_smoothing_adds_the_mean_cross_entropy_of_frames() -> None:
    model = toy([4], seed=2)
    batch = Batch(pad([[5, EOS]]), pad([[5, 6, EOS]]))
    plain, smoothed = (float(CTC(label_smoothing=s)(model, batch).sum.detach()) for s in (0, 0.2))
    uniform = -float(model.logits.detach().float().log_softmax(-1).mean(-1).sum())
    assert smoothed == pytest.approx(0.8 * plain + 0.2 * uniform, rel=1e-5)


def test_pairs_that_do_not_fit_are_named() -> None:
    sources = Ragged.of([[5], [5, 6], [5]], EOS)  # two, three and two positions
    targets = Ragged.of([[5, 5, 5], [5, 5, 5], [5, 6, 5, 6]], EOS)
    assert repeats(targets).tolist() == [2, 2, 0]
    corpus = PairCorpus(sources, targets)
    one, two = [True, True, True], [True, False, False]
    for source, given, upsample, unfit in (
        ("text", {"upsample": 1}, 1, one),
        ("text", {"upsample": 2}, 2, two),
        ("text", {}, 2, two),
        ("sound", {}, 1, one),  # a position of its frontend has two windows
        ("sound", {"upsample": 4}, 4, two),
    ):
        decoder = {"kind": "none", **given}
        found = EncoderDecoderOptions.model_validate({"decoder": decoder}).unfit(corpus, source)
        assert found is not None and found[0].tolist() == unfit
        assert f"upsample={upsample}" in found[1]


@pytest.mark.parametrize(("frames", "upsample"), [(False, 2), (True, 1)])
def test_frames_per_position_follow_from_the_source(frames: bool, upsample: int) -> None:
    stats = DataStats(100, 4000, 9, False, frames=frames)
    config, _ = fill_defaults(check_config({"model": {"decoder": "none"}}, "test"), stats)
    assert config.model.decoder.upsample == upsample
    given = {"model": {"decoder": {"kind": "none", "upsample": 3}}}
    assert fill_defaults(check_config(given, "test"), stats)[0].model.decoder.upsample == 3


@pytest.mark.parametrize("seed", range(4))
def test_prefix_beam_search_is_enumeration(seed: int) -> None:
    """With a wide beam: all outputs with their exact probabilities, in order."""
    logp = random_logp(5, seed)
    exact = {output: logsum([p for p, _ in paths]) for output, paths in by_output(logp).items()}
    found = prefix_beam_search(logp, 1000, 1000, 20)
    order = sorted(exact, key=lambda output: -exact[output])
    assert [one.tokens for one in found] == order
    assert [one.score for one in found] == pytest.approx([exact[output] for output in order])


def test_token_probabilities_are_conditional() -> None:
    """p(y_i | y_<i): all outputs that continue with y_i, among those that start with y_<i."""
    logp = random_logp(5, 7)
    exact = {output: logsum([p for p, _ in paths]) for output, paths in by_output(logp).items()}
    for output in list(exact)[:30]:
        found, total = output_probability(logp, output), 0.0
        for i, each in enumerate(found.token_logprobs[:-1], 1):
            total += each
            starts = [p for other, p in exact.items() if other[:i] == output[:i]]
            assert total == pytest.approx(logsum(starts))
        assert sum(found.token_logprobs) == pytest.approx(exact[output]) == found.score


@pytest.mark.parametrize("seed", range(3))
def test_the_alignment_is_the_most_probable_path(seed: int) -> None:
    logp = random_logp(5, seed)
    for output, paths in by_output(logp).items():
        path = tuple(BLANK if i < 0 else output[i] for i in viterbi(logp, output))
        assert path == max(paths)[1]


def test_beam_one_collapses_the_best_path() -> None:
    wanted = [(5, 5, BLANK, 5, 6), (BLANK, 7, 7, 7, BLANK), (BLANK,) * 5]
    logits = torch.full((3, 5, V), -2.0)
    for row, path in enumerate(wanted):
        logits[row, range(5), list(path)] = 3.0
    mask = torch.ones(3, 5, dtype=torch.bool)
    mask[2, 2:] = False
    request = SearchRequest(pad([[5, EOS]] * 3), torch.tensor([9, 9, 9]))
    found = [one for (one,) in Collapse().run(Frames(logits, mask), request)]
    assert [one.tokens for one in found] == [(5, 5, 6), (7,), ()]
    frame = float(logits[0, 0].log_softmax(-1).max())
    assert [one.score for one in found] == pytest.approx([5 * frame, 5 * frame, 2 * frame])
    # two frames of the first 5; a blank and a frame of the second; one of 6; nothing after
    assert found[0].token_logprobs == pytest.approx((2 * frame, 2 * frame, frame, 0))
    assert found[1].token_logprobs == pytest.approx((4 * frame, frame))
    assert found[2].token_logprobs == pytest.approx((2 * frame,))


def test_impossible_tokens_are_never_decoded() -> None:
    """UNK, BOS, EOS and MASK, even if they are the most probable."""
    logits = torch.zeros(1, 3, V)
    logits[..., 1:5] = 9.0
    logits[..., 6] = 1.0
    model = Frames(logits, torch.ones(1, 3, dtype=torch.bool))
    request = SearchRequest(pad([[5, EOS]]), torch.tensor([9]), nbest=1)
    for beam in (1, 4):
        ((best, *_),) = Collapse(beam=beam).run(model, request)
        assert set(best.tokens) <= set(LETTERS)


def test_more_paths_can_beat_the_best_path() -> None:
    """The example of Graves et al. (2006), 3.2: the best path is empty, the best output is not."""
    p = np.array([[0.6, 0.4], [0.6, 0.4]])  # blank and 5 in each of two frames
    logp = np.full((2, V), -np.inf)
    logp[:, [BLANK, 5]] = np.log(p)
    best, other = prefix_beam_search(logp, 10, 2, 20)
    assert (best.tokens, other.tokens) == ((5,), ())
    assert math.exp(best.score) == pytest.approx(0.64)  # 0.6 * 0.4 * 2 + 0.4 * 0.4
    assert math.exp(other.score) == pytest.approx(0.36)
