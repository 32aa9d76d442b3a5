"""The n-gram model against a slow one in dictionaries, and by hand."""

import math
from collections import Counter, defaultdict
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from regard.data.tensors.special import BOS, EOS, MASK, PAD, UNK
from regard.models.kneser_ney import discounts
from regard.models.ngram import NGram

V = 9
ORDERS = [1, 2, 3, 4, 5]
Gram = tuple[int, ...]


def text(seed: int = 0, documents: int = 12, skew: float = 1.0) -> list[list[int]]:
    """Documents of the letters 5 to 8 and now and then UNK, some empty, each closed with EOS."""
    draw = np.random.default_rng(seed)
    letters, p = [5, 6, 7, 8, UNK], np.array([8.0, 4.0, 2.0, 1.0, 0.3]) ** skew
    rows = [draw.choice(letters, draw.integers(0, 30), p=p / p.sum()) for _ in range(documents)]
    return [[*map(int, row), EOS] for row in rows]


def flat(documents: list[list[int]]) -> np.ndarray:
    return np.array([token for document in documents for token in document], dtype=np.int64)


def solved(order: int, documents: list[list[int]], vocabulary: int = V) -> NGram:
    model = NGram(vocabulary, order)
    model.solve(flat(documents))
    return model


class Slow:
    """The same formulas with dictionaries, one probability at a time."""

    def __init__(self, documents: list[list[int]], order: int) -> None:
        self.order = order
        raw: list[Counter[Gram]] = [Counter() for _ in range(order + 2)]
        for document in documents:
            marked = [BOS, *document]
            for end in range(1, len(marked)):
                for n in range(1, min(order, end + 1) + 1):
                    raw[n][tuple(marked[end - n + 1 : end + 1])] += 1
        self.counts: list[dict[Gram, int]] = [{} for _ in range(order + 1)]
        for n in range(1, order + 1):
            before: dict[Gram, set[int]] = defaultdict(set)
            for gram in raw[n + 1]:
                before[gram[1:]].add(gram[0])
            for gram, count in raw[n].items():
                whole = n == order or gram[0] == BOS
                self.counts[n][gram] = count if whole else len(before[gram])
        self.less = [discounts(np.array(list(c.values()))) for c in self.counts]

    def p(self, token: int, context: Gram) -> float:
        context = context[len(context) - min(len(context), self.order - 1) :]
        if token in (PAD, BOS, MASK):
            return 0.0
        shorter = self.p(token, context[1:]) if context else 1 / (V - 3)
        counts = self.counts[len(context) + 1]
        found = {gram[-1]: count for gram, count in counts.items() if gram[:-1] == context}
        if not found:
            return shorter
        less = self.less[len(context) + 1]
        total = sum(found.values())
        rest = sum(less[min(count, 3) - 1] for count in found.values()) / total
        own = found.get(token, 0)
        taken = less[min(own, 3) - 1] if own else 0
        return (own - taken) / total + rest * shorter


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("skew", [0.0, 1.0, 3.0])
def test_equals_dictionaries(order: int, skew: float) -> None:
    documents = text(skew=skew)
    model, slow = solved(order, documents), Slow(documents, order)
    for document in text(seed=1, documents=4, skew=0.0):
        logits, _ = model.step(torch.tensor([[BOS, *document[:-1]]]), model.start(1))
        for t, found in enumerate(logits[0].exp()):
            context = (BOS, *document[:t])
            expected = [slow.p(token, context) for token in range(V)]
            assert found.tolist() == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("order", ORDERS)
def test_probabilities_sum_to_one(order: int) -> None:
    """After contexts that were seen, were not, or only their end; also before anything is known."""
    contexts = [[BOS, 5, 5, 5], [BOS, 8, UNK, UNK], [MASK, MASK, 5, 5], [5, EOS, PAD, 4]]
    for model in (solved(order, text()), NGram(V, order)):
        logits, _ = model.step(torch.tensor(contexts), model.start(4))
        sums = logits.double().exp().sum(-1)
        torch.testing.assert_close(sums, torch.ones_like(sums), rtol=0, atol=1e-6)
        assert logits[..., [PAD, BOS, MASK]].exp().sum() == 0
        assert logits[..., [UNK, EOS, 5, 6, 7, 8]].isfinite().all()


@pytest.mark.parametrize("order", ORDERS)
def test_steps_equal_one_pass_and_rows_are_their_own(order: int) -> None:
    model = solved(order, text())
    rows = torch.tensor(np.random.default_rng(2).choice([5, 6, 7, 8, EOS], (5, 12)))
    rows[:, 0] = BOS
    whole, end = model.step(rows, model.start(5))
    state, parts = model.start(5), []
    for part in rows.split([1, 1, 4, 1, 5], 1):
        logits, state = model.step(part, state)
        parts.append(logits)
    assert torch.equal(torch.cat(parts, 1), whole)
    assert torch.equal(state.past["tokens"], end.past["tokens"])
    for row in range(5):
        alone, _ = model.step(rows[row : row + 1], model.start(1))
        assert torch.equal(alone[0], whole[row])
    picked, order_of = torch.tensor([[6], [7]]), torch.tensor([3, 1])
    logits, _ = model.step(picked, end.select(order_of, order_of))
    every, _ = model.step(torch.tensor([[5], [7], [5], [6], [5]]), end)
    assert torch.equal(logits, every[order_of])


@pytest.mark.parametrize("order", ORDERS)
def test_log_probabilities_are_entries_of_the_distribution(order: int) -> None:
    """Over several documents in a row: EOS makes the model forget what was before it."""
    model, others = solved(order, text()), text(seed=3)
    stream = torch.from_numpy(flat(others))
    inputs = torch.cat([torch.tensor([BOS]), stream[:-1]])
    logits, _ = model.step(inputs[None], model.start(1))
    found = model.log_probabilities(stream)
    torch.testing.assert_close(found, logits[0, range(len(stream)), stream], rtol=0, atol=1e-6)
    apart = [model.log_probabilities(np.array(document)) for document in others]
    assert torch.equal(torch.cat(apart), found)


def test_an_empty_text() -> None:
    """Nothing is known: all six possible tokens are equally probable."""
    model = solved(3, [])
    assert model.log_probabilities(np.array([], dtype=np.int64)).tolist() == []
    found = model.log_probabilities(np.array([5, EOS]))
    assert found.tolist() == pytest.approx([-math.log(6)] * 2)


def test_weights_repeat() -> None:
    """A text whose tokens count twice is the text twice."""
    documents = text()
    once, twice = NGram(V, 3), solved(3, documents + documents)
    once.solve(flat(documents), weights=np.full(len(flat(documents)), 2))
    for name, tensor in twice.state_dict().items():
        assert torch.equal(once.state_dict()[name], tensor)


@pytest.mark.parametrize("order", ORDERS)
def test_tables_survive_a_file(order: int, tmp_path: Path) -> None:
    model, fresh = solved(order, text()), NGram(V, order)
    save_file(model.state_dict(), tmp_path / "model.safetensors")
    fresh.load_state_dict(load_file(tmp_path / "model.safetensors"))
    stream = flat(text(seed=4))
    assert torch.equal(fresh.log_probabilities(stream), model.log_probabilities(stream))
    assert dict(model.named_parameters()) == {}


def test_bigram_by_hand() -> None:
    """The documents "aab" and "ab", with a = 5 and b = 6; V = 7, so four tokens are possible.

    Bigrams: BOS-a 2, aa 1, ab 2, b-EOS 2. Continuations: a follows {BOS, a}, b {a}, EOS {b}: 4.
    Too few for the formulas: discounts 0.5, 1 and 1.5. Unigrams: a (2 - 1)/4, b and EOS
    (1 - 0.5)/4, rest (1 + 0.5 + 0.5)/4 = 1/2, evenly 1/8 each: a 3/8, b 1/4, EOS 1/4, UNK 1/8.
    After a: aa (1 - 0.5)/3, ab (2 - 1)/3, rest (0.5 + 1)/3 = 1/2.
    """
    model = solved(2, [[5, 5, 6, EOS], [5, 6, EOS]], vocabulary=7)
    logits, _ = model.step(torch.tensor([[BOS, 5, UNK]]), model.start(1))
    begin, after_a, unseen = logits[0].exp()[:, [UNK, EOS, 5, 6]].tolist()
    assert unseen == pytest.approx([1 / 8, 1 / 4, 3 / 8, 1 / 4])
    assert after_a == pytest.approx([1 / 16, 1 / 8, 1 / 6 + 3 / 16, 1 / 3 + 1 / 8])
    assert begin == pytest.approx([1 / 16, 1 / 8, 1 / 2 + 3 / 16, 1 / 8])


def test_discounts_by_hand() -> None:
    """n1 = 4, n2 = 2, n3 = n4 = 1: Y = 1/2, D1 = 1/2, D2 = 2 - 3/4, D3 = 3 - 2."""
    assert discounts(np.array([1, 1, 1, 1, 2, 2, 3, 4])) == pytest.approx((0.5, 1.25, 1.0))
    assert discounts(np.array([1, 1, 2, 9])) == (0.5, 1.0, 1.5)  # nothing seen three times
    assert discounts(np.array([1, 2, 3, 3, 3, 4])) == (0.5, 1.0, 1.5)  # D2 would be below 0


def test_longer_contexts_help_with_a_chain_of_their_length() -> None:
    """A Markov chain of order 2: three tokens a gram are better than two, two better than one."""
    draw = np.random.default_rng(0)
    chain = draw.dirichlet([0.3] * 4, (4, 4))

    def walk(length: int) -> list[int]:
        states = [0, 0]
        for _ in range(length):
            states.append(int(draw.choice(4, p=chain[states[-2], states[-1]])))
        return [*(state + 5 for state in states), EOS]

    train, held = [walk(4000)], flat([walk(2000)])
    losses = [-float(solved(n, train).log_probabilities(held).mean()) for n in ORDERS]
    assert losses[0] > losses[1] + 0.1 and losses[1] > losses[2] + 0.1
    assert losses[4] < losses[2] + 0.05 and losses[0] < math.log(6)
