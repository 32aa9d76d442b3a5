"""Sampling: what is cut off, what is drawn, and that neither batch nor restart shows."""

from collections import Counter

import numpy as np
import pytest
import torch
from pydantic import ValidationError
from torch import Tensor, nn

from regard.data.tensors.special import BOS, EOS, MASK, PAD, UNK
from regard.data.tensors.state import State
from regard.models.ngram import NGram
from regard.nn.recurrent import Recurrence
from regard.search import Sample, SearchRequest
from regard.search.filters import Filters, filter_logits
from regard.search.sample import continue_prompts

from .writing import write, write_alone

V = 10
PROMPTS = [[5, 6], [], [7], [8, 9], [9], [5, 5], [], [6, 6, 6]]


class Recurrent(nn.Module):
    """A small recurrent model without a source."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.embedding = nn.Embedding(V, 12)
        self.body = Recurrence("gru", 12, 12, layers=2, dropout=0.0)
        self.head = nn.Linear(12, V)

    def start(self, rows: int) -> State:
        return State({}, {"hidden": (torch.zeros(rows, 2, 12),)})

    def step(self, tokens: Tensor, state: State) -> tuple[Tensor, State]:
        h, hidden = self.body(self.embedding(tokens), state.past["hidden"])
        return 2 * self.head(h), State({}, {"hidden": hidden})


class Fixed:
    """The same logits always; remembers what it was fed since each start."""

    def __init__(self, logits: list[float]) -> None:
        self.logits = torch.tensor(logits)
        self.fed: list[list[int]] = []

    def start(self, rows: int) -> State:
        self.fed.append([])
        return State({}, {})

    def step(self, tokens: Tensor, state: State) -> tuple[Tensor, State]:
        self.fed[-1] += tokens[0].tolist()
        return self.logits.expand(*tokens.shape, -1), state


def ngram() -> NGram:
    model = NGram(V, 3)
    draw = np.random.default_rng(0)
    model.solve(draw.choice([EOS, 5, 6, 7, 8, 9], 400, p=[0.1, 0.3, 0.3, 0.1, 0.1, 0.1]))
    return model


@pytest.fixture(params=[Recurrent, ngram], ids=["recurrent", "ngram"])
def model(request: pytest.FixtureRequest) -> nn.Module:
    return request.param()


HALVES = torch.tensor([[0.125, 0.5, 0.0, 0.25, 0.125]]).log()  # one token is impossible


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, [0.125, 0.5, 0, 0.25, 0.125]),
        ({"top_k": 0}, [0.125, 0.5, 0, 0.25, 0.125]),
        ({"top_k": 1}, [0, 1, 0, 0, 0]),
        ({"top_k": 2}, [0, 2 / 3, 0, 1 / 3, 0]),
        ({"top_k": 99}, [0.125, 0.5, 0, 0.25, 0.125]),
        ({"top_p": 0.0}, [0, 1, 0, 0, 0]),
        ({"top_p": 0.49}, [0, 1, 0, 0, 0]),
        ({"top_p": 0.51}, [0, 2 / 3, 0, 1 / 3, 0]),
        ({"top_p": 0.74}, [0, 2 / 3, 0, 1 / 3, 0]),
        ({"top_p": 0.76}, [1 / 7, 4 / 7, 0, 2 / 7, 0]),
        ({"top_p": 1.0}, [0.125, 0.5, 0, 0.25, 0.125]),
        ({"top_k": 2, "top_p": 0.6}, [0, 1, 0, 0, 0]),
        ({"temperature": 0.5}, [1 / 22, 16 / 22, 0, 4 / 22, 1 / 22]),
        ({"temperature": 0.5, "top_p": 0.75}, [0, 0.8, 0, 0.2, 0]),
        ({"temperature": 0.0}, [0, 1, 0, 0, 0]),
    ],
)
def test_cut_offs_by_hand(options: dict[str, float], expected: list[float]) -> None:
    found = filter_logits(HALVES + 3.0, Filters(**options))
    torch.testing.assert_close(found.exp(), torch.tensor([expected], dtype=torch.float32))
    assert (found == float("-inf")).tolist() == [[p == 0 for p in expected]]


def test_a_tiny_temperature_is_nearly_greedy() -> None:
    assert filter_logits(HALVES, Filters(temperature=1e-30)).exp().tolist() == [[0, 1, 0, 0, 0]]


def test_cut_offs_are_row_by_row() -> None:
    torch.manual_seed(0)
    logits = torch.randn(6, 20)
    for options in ({"top_k": 4}, {"top_p": 0.6}, {"temperature": 0.7, "top_k": 9, "top_p": 0.8}):
        whole = filter_logits(logits, Filters(**options))
        rows = [filter_logits(row[None], Filters(**options)) for row in logits]
        torch.testing.assert_close(torch.cat(rows), whole)
        torch.testing.assert_close(whole.exp().sum(-1), torch.ones(6))


@pytest.mark.parametrize("temperature", [1.0, 2.0])
def test_frequencies_are_the_probabilities(temperature: float) -> None:
    """Chi-square of 4000 draws: 4 degrees of freedom, above 18.5 once in a thousand."""
    weights = torch.tensor([9.0, 9.0, 9.0, 2.0, 9.0, 1.0, 3.0, 4.0, 0.5, 0.0])
    source = Fixed(weights.log().tolist())
    options = Sample(temperature=temperature, max_length=1)
    drawn = write(source, [[]] * 4000, options)
    found = Counter(row[0] if row else EOS for row in drawn)
    possible = [EOS, 5, 6, 7, 8]
    p = weights[possible] ** (1 / temperature)
    expected = (4000 * p / p.sum()).tolist()
    counts = [found[token] for token in possible]
    assert sum(counts) == 4000
    assert sum((n - e) ** 2 / e for n, e in zip(counts, expected, strict=True)) < 18.5


def test_special_tokens_are_never_sampled() -> None:
    """Even where the decoder finds them most probable."""
    source = Fixed([50.0, 50.0, 50.0, -9.0, 50.0, 0.0, 0.0])
    for temperature in (0.0, 1.0, 5.0):
        options = Sample(temperature=temperature, max_length=50, top_p=0.9)
        tokens = write_alone(source, [], options)
        assert tokens and not {PAD, UNK, BOS, EOS, MASK} & set(tokens)


def test_temperature_0_is_greedy(model: nn.Module) -> None:
    options = Sample(temperature=0.0, max_length=12)
    for row, prompt in enumerate(PROMPTS):
        expected: list[int] = []
        while len(expected) < 12:
            fed = torch.tensor([[BOS, *prompt, *expected]])
            with torch.no_grad():
                logits, _ = model.step(fed, model.start(1))
            best = max([EOS, 5, 6, 7, 8, 9], key=lambda token: float(logits[0, -1, token]))
            if best == EOS:
                break
            expected.append(best)
        assert write_alone(model, prompt, options, row) == expected


@pytest.mark.parametrize("context", [None, 6])
def test_the_batch_is_invisible(model: nn.Module, context: int | None) -> None:
    options = Sample(max_length=30, top_k=6)
    answers = write(model, PROMPTS, options, context)
    for row, prompt in enumerate(PROMPTS):
        assert write_alone(model, prompt, options, row, context) == answers[row]
    assert len({len(answer) for answer in answers}) > 2  # some end before others


def test_seeds_repeat_and_differ(model: nn.Module) -> None:
    def run(seed: int, max_length: int = 20) -> list[list[int]]:
        return write(model, PROMPTS, Sample(seed=seed, max_length=max_length))

    assert run(1) == run(1)
    assert run(1) != run(2)
    assert run(1)[1] != run(1)[6]  # the same prompt in another row
    assert [answer[:7] for answer in run(1)] == run(1, max_length=7)


def test_tokens_are_streamed() -> None:
    """Nothing is computed before it is asked for, and `max_length` is never exceeded."""
    source = Fixed([0.0] * 3 + [-99.0, 0.0, 1.0, 1.0])
    steps = continue_prompts(source, [[5]], [0], Sample(max_length=4))
    tokens = (token for step in steps for token in step.values())
    assert source.fed == []
    first = next(tokens)
    assert source.fed == [[BOS, 5]]
    second = next(tokens)
    assert source.fed == [[BOS, 5, first]]
    assert len([first, second, *tokens]) == 4
    assert not torch.is_inference_mode_enabled()


def test_context_restarts() -> None:
    """After 4 tokens the state starts again with the last 2; BOS only while it is among them."""
    source = Fixed([0.0] * 3 + [-99.0, 0.0, 1.0, 1.0, 1.0, 1.0])
    answer = write_alone(source, [7], Sample(max_length=7), context=4)
    seen = [BOS, 7, *answer]
    assert source.fed == [seen[0:4], seen[3:7], seen[6:8]]
    source.fed.clear()
    answer = write_alone(source, [7, 8, 7, 8, 6], Sample(max_length=2), context=4)
    assert [fed for fed in source.fed if fed] == [[8, 6, answer[0]]]


def test_context_makes_no_difference_to_a_short_memory() -> None:
    """A trigram looks back on two tokens, so a context of 6 is as good as none."""
    model, options = ngram(), Sample(max_length=40)
    assert write(model, PROMPTS, options, context=6) == write(model, PROMPTS, options)


def test_a_model_with_unbounded_context_never_restarts() -> None:
    class Endless(Fixed):
        unbounded = True

    source = Endless([0.0] * 3 + [-99.0, 0.0, 1.0, 1.0])
    request = SearchRequest(prompts=[[5]], context=4)
    ((answer,),) = Sample(max_length=7).run(source, request)
    assert source.fed == [[BOS, 5, *answer.tokens[:-1]]]


def test_several_continuations_of_a_prompt_have_their_own_indices(model: nn.Module) -> None:
    """The copies of a prompt are as if they had been asked for one after the other."""
    options = Sample(max_length=20)
    request = SearchRequest(nbest=3, prompts=[[5, 6], [8, 9]], indices=[4, 2])
    found = options.run(model, request)
    for prompt, index, answers in zip(request.prompts, request.indices, found, strict=True):
        for copy, one in enumerate(answers):
            assert list(one.tokens) == write_alone(model, prompt, options, 3 * index + copy)


@pytest.mark.parametrize(
    "wrong", [{"temperature": -1}, {"top_p": 1.5}, {"top_k": -1}, {"max_length": 0}, {"width": 3}]
)
def test_wrong_options_are_errors(wrong: dict[str, float]) -> None:
    with pytest.raises(ValidationError):
        Sample(**wrong)
