"""An imported Marian model gives the numbers, tokens and answers of transformers."""

import random
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import torch
from checkpoints import made_up_texts, write_checkpoint
from torch import Tensor

import regard
from regard.data.tensors.padded import Batch, pad
from regard.data.tensors.special import BOS, EOS, MASK, PAD, SPECIALS, UNK
from regard.exchange.importing.marian_model import Imported, _tokens, import_marian
from regard.exchange.importing.marian_tokens import MarianTokens
from regard.exchange.importing.torch_checkpoint import read_checkpoint
from regard.search import Beam, SearchRequest
from regard.search.forced_decoding import score_targets
from regard.search.scoring import Scoring

Command = Callable[..., Any]
KINDS: dict[str, dict[str, Any]] = {
    "one list": {},
    "two lists": {"apart": True},
    "own output layer": {"tie_word_embeddings": False},
    "two lists, own output layer": {"apart": True, "tie_word_embeddings": False},
    "relu, no scale": {"activation_function": "relu", "scale_embedding": False},
    "gelu, odd start": {"activation_function": "gelu", "decoder_start_token_id": 7},
    "four files": {"shard": "8KB"},
}


@dataclass(frozen=True)
class Pair:
    """The same model twice, and how ids of ours become ids of theirs."""

    folder: Path
    theirs: Any
    ours: Imported
    source: MarianTokens
    target: MarianTokens

    def ids(self, rows: list[list[int]], tokens: MarianTokens) -> Tensor:
        """Rows of our tokens as theirs, padded."""
        return torch.tensor(tokens.rows)[pad(rows).data]

    def answer(self, output: Tensor) -> list[int]:
        """An answer of theirs as our tokens, up to its end."""
        ours = {row: id for id, row in enumerate(self.target.rows) if id not in (BOS, MASK)}
        tokens = [ours[row] for row in output[1:].tolist()]
        return tokens[: tokens.index(EOS)]


@pytest.fixture(scope="module")
def make(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Pair]:
    """`make(kind)`: a checkpoint of this kind, in transformers and imported."""
    known: dict[str, Pair] = {}

    def made(kind: str) -> Pair:
        if kind not in known:
            folder = tmp_path_factory.mktemp("marian")
            theirs = write_checkpoint(folder, **KINDS[kind])
            source, target, _ = _tokens(read_checkpoint(folder))
            known[kind] = Pair(folder, theirs, import_marian(folder), source, target)
        return known[kind]

    return made


def rows(tokens: MarianTokens, longest: int, seed: int, count: int = 12) -> list[list[int]]:
    """Random sequences, closed with EOS."""
    draw = random.Random(seed)
    known = [UNK, *range(len(SPECIALS), len(tokens.rows))]
    return [[*draw.choices(known, k=draw.randint(0, longest)), EOS] for _ in range(count)]


@pytest.mark.parametrize("kind", KINDS)
def test_same_logits(make: Callable[[str], Pair], kind: str) -> None:
    pair = make(kind)
    sources, targets = rows(pair.source, 30, 1), rows(pair.target, 40, 2)
    mask = pad(sources).mask
    with torch.no_grad():
        theirs = pair.theirs(
            input_ids=pair.ids(sources, pair.source),
            attention_mask=mask.long(),
            labels=pair.ids(targets, pair.target),
        ).logits[pad(targets).mask]
        ours = pair.ours.model(Batch(pad(sources), pad(targets))).logits
    real = [id for id in range(len(pair.target.rows)) if id not in pair.target.disabled]
    wanted = theirs[:, [pair.target.rows[id] for id in real]]
    assert sorted(pair.target.rows[id] for id in real) == list(range(theirs.shape[1]))
    torch.testing.assert_close(ours[:, real], wanted, atol=1e-5, rtol=1e-5)
    shares = ours.softmax(-1)
    assert shares[:, pair.target.disabled].max() == 0


@pytest.mark.parametrize("length_penalty", [0.0, 1.0])
@pytest.mark.parametrize("beam", [1, 4])
@pytest.mark.parametrize("kind", ["one list", "two lists"])
def test_same_answers(
    make: Callable[[str], Pair], kind: str, beam: int, length_penalty: float
) -> None:
    """transformers may write UNK, and counts an end at the limit as certain: neither is here."""
    pair = make(kind)
    sources = rows(pair.source, 10, 3, 25)
    request = SearchRequest(pad(sources), torch.full((len(sources),), 49))
    found = Beam(beam=beam, length_penalty=length_penalty, min_length=4).run(
        pair.ours.model, request
    )
    never = [[pair.target.rows[PAD]], [pair.target.rows[UNK]]]
    normal = {"num_beams": beam, "max_length": 50, "min_length": 5, "bad_words_ids": never}
    if beam > 1:
        normal |= {"early_stopping": True, "length_penalty": length_penalty}
    output = pair.theirs.generate(
        input_ids=pair.ids(sources, pair.source),
        attention_mask=pad(sources).mask.long(),
        return_dict_in_generate=True,
        output_scores=True,
        **normal,
    )
    answers = [pair.answer(row) for row in output.sequences]
    cut = [
        one[0].truncated or len(answer) == 48 for one, answer in zip(found, answers, strict=True)
    ]
    whole = [i for i in range(25) if beam == 1 or not cut[i]]
    assert len(whole) > 12 and len({tuple(answers[i]) for i in whole}) > 4
    assert [list(found[i][0].tokens) for i in whole] == [answers[i] for i in whole]
    if beam > 1:
        scores = torch.tensor([found[i][0].score for i in whole])
        torch.testing.assert_close(scores, output.sequences_scores[whole], atol=1e-4, rtol=1e-4)
    again = score_targets(
        pair.ours.model, pad(sources), answers, Scoring("average", length_penalty)
    )
    for i in whole:
        assert again[i].score == pytest.approx(found[i][0].score, abs=1e-4)


ODD = [
    *("", " ", "  Hund   und  Katze ", "\tHund\n", "der\u00a0Hund", "ﬁ ① Ａ", "naïve na\u0308ive"),
    *("中文 Hund", "Hund😀😀Katze", "Привет, мир!", "\u200bdas\u00ad", "1234 5.6 %", "\u2581 das"),
    *(">>fra<< der Hund", ">>fra<<der Hund", ">>xyz<< das", ">> fra << das", ">>fra das", "a <<"),
    *("der >>fra<< Hund", "<mask> <bos> <s>", "e\u0301 é", "DER HUND", "x" * 200),
]


@pytest.mark.parametrize("kind", ["one list", "two lists"])
def test_same_tokens(make: Callable[[str], Pair], kind: str) -> None:
    transformers = pytest.importorskip("transformers")
    pair = make(kind)
    tokenizer = transformers.MarianTokenizer.from_pretrained(pair.folder)
    draw = random.Random(4)
    letters = "abcdeghiklmnorstuäöüßé AEX中😀 .,-\u00a0"
    strange = ["".join(draw.choices(letters, k=draw.randint(1, 30))) for _ in range(60)]
    for text in [*ODD, *made_up_texts(7, 60), *strange]:
        ours = pair.ours.task.source.tokenizer.encode(text)
        cut = pair.ours.task.source.tokenizer.tokenize(text)
        assert len(cut) == len(ours)
        assert [pair.source.rows[id] for id in [*ours, EOS]] == tokenizer(text).input_ids, text
        ours = pair.ours.task.target.encode(text)
        wanted = tokenizer(text_target=text).input_ids
        assert [pair.target.rows[id] for id in [*ours, EOS]] == wanted, text


@pytest.mark.parametrize("kind", ["one list", "two lists"])
def test_same_texts(make: Callable[[str], Pair], kind: str) -> None:
    transformers = pytest.importorskip("transformers")
    pair = make(kind)
    tokenizer = transformers.MarianTokenizer.from_pretrained(pair.folder)
    target = pair.ours.task.target
    for row in rows(pair.target, 12, 5, 60):
        tokens = [id for id in row if id not in (UNK, EOS)]
        theirs = tokenizer.decode([pair.target.rows[id] for id in tokens], skip_special_tokens=True)
        assert target.decode(tokens) == theirs
    known = [text for text in made_up_texts(2, 60) if UNK not in target.encode(text)]
    assert len(known) > 5 and all(target.decode(target.encode(text)) == text for text in known)
    assert "\u2047" in target.decode([UNK])


def test_the_run_folder_is_one_like_any_other(
    make: Callable[[str], Pair], command: Command, tmp_path: Path
) -> None:
    pair, run = make("one list"), tmp_path / "run"
    said = command("import", pair.folder, "--out", run)
    assert said.code == 0 and said.out == f"{run}\n", said.err
    assert f"{len(pair.target.rows):,} tokens" in said.err
    texts = made_up_texts(8, 6)
    transformers = pytest.importorskip("transformers")
    tokenizer = transformers.MarianTokenizer.from_pretrained(pair.folder)
    never = [[pair.target.rows[PAD]], [pair.target.rows[UNK]]]
    batch = tokenizer(texts, return_tensors="pt", padding=True)
    output = pair.theirs.generate(**batch, bad_words_ids=never, early_stopping=True)
    wanted = tokenizer.batch_decode(output, skip_special_tokens=True)
    assert command("predict", run, *texts).out.splitlines() == wanted
    assert regard.load(run).predict(texts) == wanted

    data = tmp_path / "data.tsv"
    both = zip(texts, wanted, strict=True)
    data.write_text("".join(f"{text}\t{answer or 'x'}\n" for text, answer in both))
    said = command("evaluate", run, data)
    assert said.code == 0 and "bleu" in said.out, said
    assert "imported" in command("runs", run).out
    assert command("report", run).code == 0
    said = command("train", data, "--dev", data, "--resume", "--out", run)
    assert said.code == 2 and f"train it further with --init-from {run}" in said.err
    said = command("diagnose", run)
    assert said.code == 2 and "no training to diagnose" in said.err


@pytest.mark.parametrize("kind", ["one list", "two lists, own output layer"])
def test_training_starts_from_it(
    make: Callable[[str], Pair], command: Command, tmp_path: Path, kind: str
) -> None:
    """With a learning rate of next to nothing the answers stay as they were."""
    pair, run, tuned = make(kind), tmp_path / "run", tmp_path / "tuned"
    assert command("import", pair.folder, "--out", run).code == 0
    texts = made_up_texts(9, 40)
    data = tmp_path / "data.tsv"
    data.write_text("".join(f"{text}\t{text[::-1]}\n" for text in texts))
    few = ("--steps", "2", "--set", "training.lr=1e-12", "--out", tuned)
    said = command("train", data, "--init-from", run, *few)
    assert said.code == 0, said.err
    one, other = regard.load(run), regard.load(tuned)
    assert other.config_.model.tie_embeddings == one.config_.model.tie_embeddings
    assert other.task_.shared == one.task_.shared
    search = {"max_length": 20, "beam": 4, "length_penalty": 1.0}
    answers = [
        [p.text for p in model.predict_detailed(texts[:5], **search)] for model in (one, other)
    ]
    assert answers[0] == answers[1]
