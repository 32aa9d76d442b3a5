"""Laws of models that fill gaps, over every encoder and every way to read words."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import regard
from regard.data.corpus.words import word_key
from regard.data.reading.read import Pair
from regard.data.tensors.padded import Batch, Outputs, Padded
from regard.data.tensors.special import BOS, EOS, MASK, SPECIALS
from regard.objectives import Loss, Masked
from regard.storage.weights import save_weights
from regard.training.describe import describe
from regard.training.run import Run
from regard.training.start import start_run

from .toys import SENTENCES, TOYS, Case, built, cases, may_ignore, moved, predictor, twice

CASES = [
    case
    for toy in ("language-model", "words")
    for case in cases(toy)
    if case.model["kind"] == "masked"
]
every = pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
TEXTS = {"language-model": ["abcab", "cab"], "words": ["Ann saw a dog and", "a cat ran"]}
OTHER = {"language-model": " ", "words": "Unbelievably"}
SHARE = Masked(mask_rate=0.4)


def close(one: Tensor, other: Tensor) -> None:
    torch.testing.assert_close(one, other, atol=1e-5, rtol=1e-5)


class Spy(nn.Module):
    """A model that remembers what it was given and what it gave."""

    def __init__(self, model: nn.Module | None, training: bool) -> None:
        super().__init__()
        self.inner = model
        self.training = training  # only to the objective: nothing inside is random

    def forward(self, batch: Batch, chosen: Tensor) -> Outputs:
        self.batch, self.chosen = batch, chosen
        size = int(chosen.sum()), 400
        self.logits = torch.zeros(size) if self.inner is None else self.inner(batch, chosen).logits
        return Outputs(self.logits)

    @property
    def words(self) -> Tensor:
        """(B, S) the tokens it was given."""
        data = self.batch.source.data
        return data if data.dim() == 2 else data[..., 0]


def spied(model: nn.Module | None, batch: Batch, seed: int | None = None) -> tuple[Spy, Loss]:
    """What an objective does with a batch: in training with a seed, else in evaluation."""
    spy = Spy(model, seed is not None)
    torch.manual_seed(seed or 0)
    return spy, SHARE(spy, batch)


def batch_of(run: Run, texts: list[str]) -> Batch:
    """Texts as one batch of windows."""
    return run.task.corpus([Pair("", text, 0) for text in texts]).batch(np.arange(len(texts)))


def put(case: Case, place: int) -> list[str]:
    """The texts with another token at a place of the first."""
    (first, *rest), gap = TEXTS[case.toy], " " if case.toy == "words" else ""
    row = first.split() if gap else list(first)
    assert row[place] != OTHER[case.toy]
    return [gap.join([*row[:place], OTHER[case.toy], *row[place + 1 :]]), *rest]


def seeds(run: Run, case: Case, place: int, chosen: bool) -> list[int]:
    """Seeds with which training masks what it chooses, and chooses a place or does not."""
    batch, found = batch_of(run, TEXTS[case.toy]), []
    while len(found) < 2:
        seed = found[-1] + 1 if found else 0
        while not fits(spied(None, batch, seed)[0], place, chosen):
            seed += 1
        found.append(seed)
    return found


def fits(spy: Spy, place: int, chosen: bool) -> bool:
    masked = bool((spy.words[spy.chosen] == MASK).all())
    return masked and bool(spy.chosen[0, place]) == chosen


@every
@torch.no_grad()
def test_what_is_masked_is_invisible(case: Case) -> None:
    """Another token, with other letters, at a masked place changes no logit."""
    run, place = built(case), 1
    batch, other = (batch_of(run, texts) for texts in (TEXTS[case.toy], put(case, place)))
    assert not torch.equal(batch.target.data, other.target.data)
    for seed in seeds(run, case, place, chosen=True):
        (one, loss), (two, less) = (spied(run.model, b, seed) for b in (batch, other))
        close(one.logits, two.logits)
        assert float(loss.sum) != pytest.approx(float(less.sum), rel=1e-6)  # but the answer counts


@every
@torch.no_grad()
def test_what_is_not_masked_counts(case: Case) -> None:
    """Within its row, where the encoder sees more than one place."""
    run, place = built(case), 2
    alone = case.model["encoder"]["kind"] in ("linear", "mlp")
    batch, other = (batch_of(run, texts) for texts in (TEXTS[case.toy], put(case, place)))
    for seed in seeds(run, case, place, chosen=False):
        one, two = (spied(run.model, b, seed)[0] for b in (batch, other))
        row = int(one.chosen[0].sum())
        is_same = bool((one.logits[:row] - two.logits[:row]).abs().max() < 1e-5)
        assert is_same if alone else (not is_same or may_ignore(case))
        close(one.logits[row:], two.logits[row:])


@every
@torch.no_grad()
def test_padding_is_invisible(case: Case) -> None:
    """A row alone is the row in a batch, whatever stands in the padding; so the loss is a sum."""
    run = built(case)
    batch = batch_of(run, TEXTS[case.toy])
    whole, loss = spied(run.model, batch)
    ones = [spied(run.model, batch_of(run, [text])) for text in TEXTS[case.toy]]
    close(torch.cat([spy.logits for spy, _ in ones]), whole.logits)
    assert float(loss.sum) == pytest.approx(sum(float(part.sum) for _, part in ones), rel=1e-5)
    assert loss.count == SHARE.count(batch) == sum(part.count for _, part in ones)

    source = whole.batch.source
    empty = ~source.mask if source.data.dim() == 2 else ~source.mask.unsqueeze(-1)
    filled = source._replace(data=source.data.masked_fill(empty, 1))
    close(run.model(whole.batch._replace(source=filled), whole.chosen).logits, whole.logits)


@every
def test_every_weight_is_used(case: Case) -> None:
    run = built(case)
    named = dict(run.model.named_parameters())
    loss = SHARE(run.model, batch_of(run, TEXTS[case.toy])).sum
    gradients = torch.autograd.grad(loss, list(named.values()), allow_unused=True)
    assert [name for name, g in zip(named, gradients, strict=True) if g is None] == []


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_saved_and_loaded_it_scores_the_same(case: Case, tmp_path: Path) -> None:
    """At any batch size."""
    run = moved(start_run(tmp_path / "run", case.config(), *twice(case)))
    describe(run, {})
    save_weights(run.model, run.folder / "model.safetensors")
    before = predictor(run).evaluate(run.dev).scores

    torch.manual_seed(99)
    loaded = regard.load((tmp_path / "run").rename(tmp_path / "elsewhere"))
    assert loaded.config_ == run.config
    texts = [pair.target for pair in TOYS[case.toy].pairs]
    assert loaded.evaluate(texts) == before
    for size in (1, 3):
        assert loaded.evaluate(texts, batch_size=size) == pytest.approx(before, rel=1e-5)


def large() -> Batch:
    """Random tokens, special ones and padding among them."""
    draw = torch.Generator().manual_seed(0)
    lengths = torch.randint(150, 300, (200, 1), generator=draw)
    mask = torch.arange(300) < lengths
    tokens = torch.randint(3, 400, mask.shape, generator=draw).masked_fill(~mask, 0)
    return Batch(Padded(tokens, mask), Padded(tokens, mask))


def test_the_fates_of_what_is_chosen() -> None:
    """80 in a hundred masked, 10 another, 10 as they were; nothing else is touched."""
    batch = large()
    tokens, possible = batch.target.data, batch.target.mask & (batch.target.data >= len(SPECIALS))
    spy, loss = spied(None, batch, seed=5)
    shown, chosen = spy.words, spy.chosen
    assert torch.equal(shown[~chosen], tokens[~chosen]) and not (chosen & ~possible).any()
    assert loss.count == int(chosen.sum()) == pytest.approx(0.4 * int(possible.sum()), rel=0.01)
    shares = [(shown[chosen] == MASK), (shown[chosen] == tokens[chosen])]
    assert [float(s.float().mean()) for s in shares] == pytest.approx([0.8, 0.1], abs=0.01)
    assert not torch.equal(spied(None, batch, seed=6)[0].chosen, chosen)

    calm, again = (spied(None, batch)[0] for _ in range(2))
    assert torch.equal(calm.chosen, again.chosen) and (calm.words[calm.chosen] == MASK).all()


def test_a_word_and_its_letters_agree() -> None:
    """Also where a word was masked, or another one put in its place."""
    run = built(next(case for case in CASES if case.toy == "words"))
    task: Any = run.task
    batch = batch_of(run, SENTENCES)
    spelled = [spell(task, chars) for chars in batch.source.shared.data]
    changed = 0
    for seed in range(20):
        spy, _ = spied(None, batch, seed)
        for (word, place), truth in zip(
            spy.batch.source.data[spy.chosen].tolist(), batch.target.data[spy.chosen], strict=True
        ):
            assert word == spelled[place]
            changed += word not in (MASK, int(truth))
    assert changed > 0


def spell(task: Any, chars: Tensor) -> int:
    """The number of the word with these letters."""
    inner = [int(letter) for letter in chars if letter not in (0, BOS, EOS)]
    if inner == [MASK]:
        return MASK
    (number,) = task.tokenizer.ids_of([word_key("".join(task.chars.name(i) for i in inner))])
    return number
