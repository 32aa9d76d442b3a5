"""Beam search on toy models whose probabilities are written down, worked out by hand."""

import math
from typing import Any

import pytest
import torch
from torch import Tensor

from regard.core.errors import UserError
from regard.data.tensors.padded import Padded, pad
from regard.data.tensors.special import BOS, EOS, MASK, PAD, UNK
from regard.data.tensors.state import State
from regard.search import Beam, Sample, SearchRequest
from regard.search.beam import BeamSpec, beam_search
from regard.search.hypothesis import Hypothesis
from regard.search.scoring import Scoring

A, B, C = 5, 6, 7
NAMES = {EOS: "", A: "a", B: "b", C: "c"}

# What follows what. Greedily: a (.6), then c (.4), then the end (1.0): .24 in all.
# But b (.4) and then the end (.9) has .36.
TABLE = {
    BOS: {A: 0.6, B: 0.4},
    A: {A: 0.3, C: 0.4, EOS: 0.3},
    B: {B: 0.1, EOS: 0.9},
    C: {EOS: 1.0},
}


def step_of(*tables: dict[int, dict[int, float]]) -> tuple[object, State]:
    """A step function in which sentence i follows table i, and its first state.

    The state remembers what it was fed; a search that mixes up rows is caught at once.
    """

    def step(tokens: Tensor, state: State) -> tuple[Tensor, State]:
        k = len(tokens) // len(state.memory)
        seen = state.past
        if seen is None:
            seen = torch.empty(len(tokens), 0, dtype=torch.long)
            sentences = state.memory
        else:
            sentences = state.memory.repeat_interleave(k)
            assert torch.equal(seen[:, 0], sentences), "a beam left its sentence"
        seen = torch.cat([seen, tokens if seen.shape[1] else sentences[:, None]], 1)
        logits = torch.full((len(tokens), 1, 8), float("-inf"))
        for row, (sentence, last) in enumerate(
            zip(sentences.tolist(), tokens[:, 0].tolist(), strict=True)
        ):
            for token, p in tables[sentence].get(last, {EOS: 1.0}).items():
                logits[row, 0, token] = math.log(p)
        return logits, State(state.memory, seen)

    return step, State(torch.arange(len(tables)), None)


def search(
    *tables: dict[int, dict[int, float]],
    beam: int,
    length_penalty: float = 0.0,
    nbest: int = 1,
    limit: int | list[int] = 10,
    stop: str = "beam_full",
) -> list[list[Hypothesis]]:
    step, state = step_of(*tables)
    limits = torch.tensor(limit if isinstance(limit, list) else [limit] * len(tables))
    plan = BeamSpec(max(beam, nbest), nbest, Scoring(length_penalty=length_penalty), stop)
    return beam_search(step, state, limits, plan)


def text(hypothesis: Hypothesis) -> str:
    return "".join(NAMES[token] for token in hypothesis.tokens)


def test_greedy_loses_and_a_beam_of_two_wins() -> None:
    ((greedy,),) = search(TABLE, beam=1)
    ((best,),) = search(TABLE, beam=2)
    assert text(greedy) == "ac" and math.exp(greedy.score) == pytest.approx(0.24)
    assert text(best) == "b" and math.exp(best.score) == pytest.approx(0.36)
    assert [math.exp(s) for s in best.token_logprobs] == pytest.approx([0.4, 0.9])
    assert math.exp(best.log_probability) == pytest.approx(0.36)


def test_all_outputs_in_order() -> None:
    """Of at most three tokens: b .36, ac .24, a .18, aa .6 x .3 x .3, bb .4 x .1 x .9."""
    (found,) = search(TABLE, beam=30, nbest=30, limit=3)
    assert [text(h) for h in found] == ["b", "ac", "a", "aa", "bb"]
    assert [math.exp(h.score) for h in found] == pytest.approx([0.36, 0.24, 0.18, 0.054, 0.036])


@pytest.mark.parametrize(("length_penalty", "best"), [(0.0, "b"), (0.75, "b"), (1.0, "ac")])
def test_longer_outputs_gain_with_length_penalty(length_penalty: float, best: str) -> None:
    """log .36 = -1.022 over 2 tokens, log .24 = -1.427 over 3 (the end counts).

    length_penalty .75: -.608 and -.626; length_penalty 1: -.511 and -.476.
    """
    ((first,),) = search(TABLE, beam=8, length_penalty=length_penalty)
    assert text(first) == best
    total, length = {"b": (math.log(0.36), 2), "ac": (math.log(0.24), 3)}[best]
    assert first.score == pytest.approx(total / length**length_penalty, abs=1e-5)


def test_a_finished_output_waits_for_a_better_one() -> None:
    """'a' is over after two steps: log .55 / 2 = -.299. A step later 'bc': log .45 / 3 = -.266."""
    table = {BOS: {A: 0.55, B: 0.45}, A: {EOS: 1.0}, B: {C: 1.0}}
    ((short,),) = search(table, beam=2, length_penalty=0.0)
    ((long,),) = search(table, beam=2, length_penalty=1.0)
    assert text(short) == "a" and text(long) == "bc"


def test_a_table_that_ends_at_once() -> None:
    ((empty,),) = search({BOS: {EOS: 1.0}}, beam=3)
    assert empty.tokens == () and empty.score == pytest.approx(0.0, abs=1e-6)
    assert len(empty.token_logprobs) == 1


def test_at_the_limit_only_eos_is_allowed() -> None:
    endless = {BOS: {A: 0.9, EOS: 0.1}, A: {A: 0.9, EOS: 0.1}}
    for limit in (1, 2, 5):
        ((found,),) = search(endless, beam=1, limit=limit)
        assert text(found) == "a" * (limit - 1)
        assert math.exp(found.score) == pytest.approx(0.9 ** (limit - 1) * 0.1)
    ((found,),) = search(endless, beam=1, limit=0)
    assert text(found) == ""


def test_sentences_leave_when_they_are_over() -> None:
    """Three sentences of different lengths and limits in one batch, as if each were alone."""
    endless = {BOS: {C: 1.0}, C: {C: 0.8, EOS: 0.2}}
    tables, limits = [TABLE, endless, {BOS: {EOS: 1.0}}, endless], [6, 7, 3, 2]
    together = search(*tables, beam=3, nbest=3, limit=limits)
    alone = [search(t, beam=3, nbest=3, limit=m)[0] for t, m in zip(tables, limits, strict=True)]
    assert [[text(h) for h in found] for found in together] == [
        [text(h) for h in found] for found in alone
    ]
    assert [len(found[0].tokens) for found in alone] == [1, 1, 0, 1]


def test_fewer_outputs_than_nbest() -> None:
    (found,) = search({BOS: {A: 0.5, EOS: 0.5}}, beam=5, nbest=5)
    assert sorted(text(h) for h in found) == ["", "a"]


def test_non_output_tokens_are_never_generated() -> None:
    """Whatever the model thinks of them."""
    table = {BOS: {PAD: 0.3, UNK: 0.2, BOS: 0.2, MASK: 0.2, A: 0.06, EOS: 0.04}}
    (found,) = search(table, beam=6, nbest=6)
    assert [text(h) for h in found] == ["a", ""]
    assert math.exp(found[0].score) == pytest.approx(0.06, rel=1e-4)
    ((greedy,),) = search(table, beam=1)  # four of them come before the first letter
    assert text(greedy) == "a"


class Diverged:
    """A model whose numbers are none, from the second step on."""

    def start(self, source: Padded) -> State:
        return State(torch.arange(len(source.mask)), {"at": 0})

    def step(self, tokens: Tensor, state: State) -> tuple[Tensor, State]:
        value = float("nan") if state.past["at"] else 0.0
        logits = torch.full((*tokens.shape, 8), value)
        logits[..., EOS] -= 50
        return logits, State(state.memory, {"at": 1})


@pytest.mark.parametrize(
    "options",
    [
        *(Beam(beam=beam) for beam in (1, 2, 5)),
        Beam(beam=1, min_length=3),
        Sample(),
        Sample(temperature=0.0),
        Sample(top_k=2, top_p=0.5),
    ],
    ids=str,
)
def test_nan_logits_are_an_error(options: Any) -> None:
    """A diverged model: the search must not run forever."""
    with pytest.raises(UserError, match="NaN logits"):
        request = SearchRequest(pad([[A, EOS], [A, A, EOS]]), torch.tensor([4, 4]))
        options.run(Diverged(), request)


def test_nan_logits_end_a_continuation() -> None:
    class Continuing(Diverged):
        def start(self, rows: int) -> State:  # type: ignore[override]
            return super().start(pad([[A]] * rows))

    with pytest.raises(UserError, match="NaN logits"):
        Sample().run(Continuing(), SearchRequest(prompts=[[A], [A]]))
