"""Shortlists: the lexicon by hand, laws of the search among them, the command, errors."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.numpy import save

import regard
from regard.core.errors import UserError
from regard.data.tensors.padded import pad
from regard.data.tensors.special import EOS, SPECIALS
from regard.data.tokenizers.tokenizer import CharTokenizer
from regard.inference.shortlisted import with_shortlist
from regard.inference.torch_engine import TorchEngine
from regard.inputs.input import InputShape
from regard.models.encoder_decoder import EncoderDecoder, EncoderDecoderOptions, FastEncoderDecoder
from regard.models.ensemble import Ensemble
from regard.nn.capture_hooks import recording
from regard.nn.fast import fast
from regard.search import Beam, Hypothesis, Sample, SearchRequest, TokenConstraints
from regard.search.callbacks import Outputs, SearchCancelled
from regard.search.lexical import Lexicon, learn_lexicon
from regard.search.shortlist import Shortlist

SIZE, FIRST = 40, len(SPECIALS)
SOURCES = [[5, 6, 7, EOS], [8, EOS], [9, 6, 5, 8, 7, 12, EOS], [30, EOS]]
LIMITS = torch.tensor([7, 4, 9, 8])
SEARCHES = [
    Beam(beam=1),
    Beam(beam=3),
    Beam(beam=4, beam_groups=2, no_repeat_ngram=2, min_length=3),
    Beam(beam=2, coverage_penalty=0.3),
    Sample(top_p=0.9, seed=3),
]
DAS, HAUS, BUCH, EIN = range(5, 9)
THE, HOUSE, BOOK, A = range(5, 9)
BOOKS = ([[DAS, HAUS], [DAS, BUCH], [EIN, BUCH]], [[THE, HOUSE], [THE, BOOK], [A, BOOK]])


def chances(lexicon: Lexicon, source: int) -> dict[int, float]:
    own = lexicon.source == source
    return dict(zip(lexicon.target[own].tolist(), lexicon.probability[own].tolist(), strict=True))


def test_the_lexicon_by_hand() -> None:
    """Round 1 is by counts. In round 2 "the" of the first pair is 1/2 to 1/2 from both, "house"
    1/4 to 1/2; "the" of the second 1/2 to 1/4, "book" 1/4 to 1/2."""
    first, second = (learn_lexicon(*BOOKS, iterations=rounds) for rounds in (1, 2))
    assert chances(first, DAS) == pytest.approx({THE: 1 / 2, HOUSE: 1 / 4, BOOK: 1 / 4})
    assert chances(first, HAUS) == pytest.approx({THE: 1 / 2, HOUSE: 1 / 2})
    # das: the 1/2 + 2/3, house 1/3, book 1/3; Haus: the 1/2, house 2/3
    assert chances(second, DAS) == pytest.approx({THE: 7 / 11, HOUSE: 2 / 11, BOOK: 2 / 11})
    assert chances(second, HAUS) == pytest.approx({THE: 3 / 7, HOUSE: 4 / 7})


def test_the_lexicon_does_not_depend_on_its_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = learn_lexicon([*BOOKS[0], [], [EIN, EIN]], [*BOOKS[1], [A], [A, THE, A]])
    monkeypatch.setattr("regard.search.lexical.BLOCK", 1)
    parts = learn_lexicon([*BOOKS[0], [], [EIN, EIN]], [*BOOKS[1], [A], [A, THE, A]])
    for one, other in zip(whole, parts, strict=True):
        np.testing.assert_allclose(one, other)
    sums = np.bincount(whole.source, whole.probability)
    np.testing.assert_allclose(sums[[DAS, HAUS, BUCH, EIN]], 1)


def test_the_best_of_each_token_and_the_frequent_ones() -> None:
    found = Shortlist.learn(*BOOKS, 10, 9, best=1, frequent=0)
    always = list(range(FIRST))
    assert found.of([DAS]).tolist() == [*always, THE]
    assert found.of([EIN, HAUS]).tolist() == [*always, HOUSE, A]
    assert found.of([9, EOS]).tolist() == always and found.of([9], [BOOK]).tolist()[-1] == BOOK
    often = Shortlist.learn(*BOOKS, 10, 9, best=1, frequent=2)
    assert often.of([9]).tolist() == [*always, THE, BOOK]
    assert found.coverage([[DAS, HAUS], [9]], [[THE, BOOK], [A]]) == (6.0, 1 / 3)


def built(kind: str, bias: bool = False, seed: int = 1) -> EncoderDecoder:
    side = {"kind": kind, "layers": 2, "width": 8, "dropout": 0.0}
    side |= {"heads": 2, "feedforward_width": 12} if kind == "transformer" else {}
    torch.manual_seed(seed)
    tree = {"encoder": side, "decoder": side, "embedding_width": 0, "output_bias": bias}
    model = EncoderDecoderOptions.model_validate(tree).build(InputShape("text", SIZE), SIZE, False)
    if model.head.bias is not None:
        torch.nn.init.normal_(model.head.bias)
    return model.eval()


def listed() -> Shortlist:
    """Random tokens, more for some source tokens than for others; none for token 30."""
    draw = np.random.default_rng(1)
    own = [draw.choice(np.arange(FIRST, SIZE), 1 + s % 5, replace=False) for s in range(30)]
    starts = np.concatenate([[0], np.cumsum([len(one) for one in own]), [75 + 15] * (SIZE - 30)])
    return Shortlist(starts, np.concatenate(own).astype(np.int32), np.arange(7, dtype=np.int32))


def same(one: list[list[Hypothesis]], other: list[list[Hypothesis]]) -> None:
    assert [[h.tokens for h in row] for row in one] == [[h.tokens for h in row] for row in other]
    for left, right in zip(chain(*one), chain(*other), strict=True):
        assert left.score == pytest.approx(right.score, abs=1e-4)
        assert left.token_logprobs == pytest.approx(right.token_logprobs, abs=1e-4)


@pytest.mark.parametrize("kind", ["transformer", "recurrent"])
@pytest.mark.parametrize("search", SEARCHES, ids=repr)
def test_the_batch_is_invisible(kind: str, search: Beam | Sample) -> None:
    engine = TorchEngine(built(kind, bias=True), shortlist=listed())
    together = engine.run(search, SearchRequest(pad(SOURCES), LIMITS, 2))
    alone = [
        engine.run(search, SearchRequest(pad([source]), LIMITS[row : row + 1], 2))[0]
        for row, source in enumerate(SOURCES)
    ]
    same(together, alone)


def test_callbacks_get_the_tokens_of_the_vocabulary() -> None:
    engine, told = TorchEngine(built("recurrent"), shortlist=listed()), dict[int, Any]()

    def follow(rows: Sequence[int], outputs: Outputs) -> None:
        told.update(zip(rows, outputs(), strict=True))

    found = engine.run(Beam(beam=1), SearchRequest(pad(SOURCES), LIMITS, on_step=follow))
    assert set(told) == set(range(len(SOURCES)))
    for row, (tokens, scores) in told.items():
        assert tuple(tokens) == found[row][0].tokens[: len(tokens)]
        assert tuple(scores) == found[row][0].token_logprobs[: len(tokens)]


@pytest.mark.parametrize("narrow", [False, True])
@pytest.mark.parametrize("search", SEARCHES, ids=repr)
def test_a_cancelled_search_returns_what_was_finished(search: Beam | Sample, narrow: bool) -> None:
    """Of each sentence that does not continue any more, what it would have had anyway."""
    engine = TorchEngine(built("recurrent"), shortlist=listed() if narrow else None)
    request = SearchRequest(pad(SOURCES), LIMITS, 2)
    whole, going = engine.run(search, request), list[int]()

    def follow(rows: Sequence[int], outputs: Outputs) -> None:
        going[:] = rows
        if len(rows) < len(SOURCES):
            raise SearchCancelled

    with pytest.raises(SearchCancelled) as caught:
        engine.run(search, replace(request, on_step=follow))
    settled = caught.value.finished
    assert settled and {*settled} == {*range(len(SOURCES))} - {*going}
    for row, found in settled.items():
        same([list(found)], [whole[row]])


@pytest.mark.parametrize("kind", ["transformer", "recurrent"])
@pytest.mark.parametrize("search", SEARCHES, ids=repr)
def test_a_list_of_all_tokens_changes_nothing(kind: str, search: Beam | Sample) -> None:
    model, every = built(kind, bias=kind == "recurrent"), np.arange(SIZE, dtype=np.int32)
    shortlist = Shortlist(np.zeros(SIZE + 1, np.int64), every[:0], every)
    short, request = TorchEngine(model, shortlist=shortlist), SearchRequest(pad(SOURCES), LIMITS, 3)
    same(short.run(search, request), TorchEngine(model).run(search, request))


@pytest.mark.parametrize("kind", ["transformer", "recurrent"])
def test_probabilities_are_over_the_list_of_the_sentence(kind: str) -> None:
    """Against the whole output layer, its other tokens masked."""
    model, shortlist = built(kind), listed()
    request = SearchRequest(pad(SOURCES), LIMITS, 2)
    found = TorchEngine(model, shortlist=shortlist).run(Beam(beam=3), request)
    for source, row in zip(SOURCES, found, strict=True):
        own = shortlist.of(source).tolist()
        for one in row:
            inputs = torch.tensor([[2, *one.tokens]])
            with torch.no_grad():
                logits = model.step(inputs, model.start(pad([source])))[0][0, :, own]
            logp = logits.log_softmax(-1)
            true = [float(logp[t, own.index(s)]) for t, s in enumerate((*one.tokens, EOS))]
            assert one.token_logprobs == pytest.approx(true, abs=1e-4)
            assert set(one.tokens) <= set(own)


def test_the_fast_path_returns_the_vectors_of_its_model() -> None:
    model = built("transformer")
    twin, source = fast(model), pad(SOURCES)
    assert isinstance(twin, FastEncoderDecoder)
    first = torch.full((4, 1), 2)
    with torch.inference_mode():
        expected, _ = model.vectors(first, model.start(source))
        found, _ = twin.vectors(first, twin.start(source))
        with recording():
            watched, _ = twin.vectors(first, twin.start(source))
    torch.testing.assert_close(found, expected)
    torch.testing.assert_close(watched, expected)


def test_constraints_reach_outside_of_the_list() -> None:
    shortlist, search = listed(), Beam(beam=4)
    engine = TorchEngine(built("transformer"), shortlist=shortlist)
    outside = [
        s for s in range(FIRST, SIZE) if s not in set.union(*map(set, map(shortlist.of, SOURCES)))
    ]
    one, other, third = outside[:3]
    constraints = [
        TokenConstraints((one, 5)),
        TokenConstraints(require=((other, one),)),
        TokenConstraints(banned=((third,), (5,))),
        TokenConstraints(),
    ]
    found = engine.run(search, SearchRequest(pad(SOURCES), LIMITS, constraints=constraints))
    texts = [row[0].tokens for row in found]
    assert texts[0][:2] == (one, 5)
    assert (other, one) in zip(texts[1], texts[1][1:], strict=False)
    assert 5 not in texts[2] and third not in texts[2]
    plain = engine.run(search, SearchRequest(pad(SOURCES), LIMITS))
    same(found[3:], plain[3:])
    bans = [TokenConstraints(banned=((third,),))] * 4
    absent = engine.run(search, SearchRequest(pad(SOURCES), LIMITS, constraints=bans))
    same(absent, plain)  # nothing becomes likelier or less likely by a ban of what cannot come


def test_files(tmp_path: Path) -> None:
    one, other = CharTokenizer(list("abcdefgh")), CharTokenizer(list("abcdefgx"))
    found = Shortlist.learn(*BOOKS, len(one), len(other), 2, 1)
    path = tmp_path / "shortlist.safetensors"
    found.save(path, one, other)
    again = Shortlist.load(path, one, other)
    for name in ("starts", "tokens", "frequent"):
        assert np.array_equal(getattr(found, name), getattr(again, name))
    with pytest.raises(UserError, match="made for another model: expected target vocabulary"):
        Shortlist.load(path, one, one)
    with pytest.raises(UserError, match="made for another model: expected source size 8, found 13"):
        Shortlist.load(path, CharTokenizer(list("abc")), other)
    Shortlist(found.starts, found.tokens + 9, found.frequent).save(path, one, other)
    with pytest.raises(UserError, match="corrupted\nhelp: create it with"):
        Shortlist.load(path, one, other)
    path.write_bytes(save({"starts": np.zeros(3)}))
    with pytest.raises(UserError, match="not a shortlist"):
        Shortlist.load(path, one, other)
    path.write_bytes(path.read_bytes()[:20])
    with pytest.raises(UserError, match="corrupted"):
        Shortlist.load(path, one, other)
    with pytest.raises(UserError, match="no such file\nhelp: create it with: regard shortlist"):
        Shortlist.load(tmp_path / "none", one, other)


def test_the_command_and_its_use(command: Callable[..., Any], trained: Any, tmp_path: Path) -> None:
    """The letters of a reversed word are those of the word, so all of them are found."""
    file, asked = tmp_path / "short", ("abc", "fed", "cafe")
    said = command("shortlist", trained.run, trained.train, "--out", file, "--per-token", "2")
    assert said.code == 0, said.err
    assert "reference tokens covered" in said.out and "100.00%" in said.out
    assert not (trained.run / "shortlist.safetensors").exists()
    given = ("--shortlist-file", file)
    said = command("predict", trained.run, *asked, *given)
    model = regard.load(trained.run, shortlist=file)
    assert said.code == 0 and said.out.splitlines() == model.predict(list(asked))
    assert all(set(answer) <= set("abcdef") for answer in said.out.splitlines())
    said = command("evaluate", trained.run, trained.dev, *given)
    assert said.code == 0 and "exact_match" in said.out
    texts = tmp_path / "texts"
    texts.write_text("abc\nfed\n")
    output = ("--output", tmp_path / "answers", "--input", texts)
    assert command("predict", trained.run, *given, *output).code == 0


def test_a_list_without_a_character_shows_in_the_predictions(trained: Any, tmp_path: Path) -> None:
    model = regard.load(trained.run)
    task: Any = model.task_
    size, f = len(task.target), task.target.encode("f")[0]
    every = np.array([id for id in range(size) if id != f], np.int32)
    none = np.zeros(len(task.source_tokenizer()) + 1, np.int64)
    Shortlist(none, every[:0], every).save(tmp_path / "short", task.source_tokenizer(), task.target)
    short = regard.load(trained.run, shortlist=tmp_path / "short")
    words = ["fad", "fed", "fee"]
    assert any("f" in answer for answer in model.predict(words))
    assert not any("f" in answer for answer in short.predict(words))


def test_errors(command: Callable[..., Any], trained: Any, models: Any) -> None:
    model = built("recurrent")
    with pytest.raises(UserError, match="shortlist: not supported for ensembles"):
        TorchEngine(Ensemble([model, model]), shortlist=listed())
    said = command("predict", trained.run, "abc", "--shortlist", "--ensemble", trained.run)
    assert said.code == 2 and "--shortlist: not supported with --ensemble" in said.err
    model.head = torch.nn.Linear(8, SIZE)  # type: ignore[assignment]
    with pytest.raises(UserError, match="shortlist: not supported with int8 weights"):
        TorchEngine(model, shortlist=listed())
    loaded = regard.load(trained.run).predictor_
    loaded.engine = TorchEngine(loaded.engine.torch_module(), shortlist=listed())
    with pytest.raises(UserError, match="shortlist: not supported by engine torch"):
        with_shortlist(loaded, True)
    said = command("predict", trained.run, "abc", "--shortlist")
    assert said.code == 2 and "shortlist.safetensors: no such file" in said.err
    tags = models("tag")
    with pytest.raises(UserError, match="only supported for task transduce, found tag"):
        regard.load(tags.run, shortlist=True)
    said = command("shortlist", tags.run, tags.train)
    assert said.code == 2 and "shortlists are only supported for --task transduce" in said.err
