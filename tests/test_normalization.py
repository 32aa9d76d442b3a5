"""Unicode normalization: tokens, round trips, automatic choice, files, metrics and commands."""

import json
import random
import unicodedata
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from regard.core.errors import UserError
from regard.data.reading.read import Example, Pair
from regard.data.tensors.special import EOS, UNK
from regard.data.tokenizers.build import KINDS, build_tokenizer, load_tokenizer
from regard.data.tokenizers.normalized import NormalizedTexts, choose_normalization
from regard.exchange.engine_choice import load_predictor
from regard.inputs.text import Text
from regard.inputs.tokenizers import SideOptions
from regard.tasks.classify_options import ClassifyOptions
from regard.tasks.task import Prediction
from regard.tasks.transduce_options import TransduceOptions
from regard.tasks.values import Constraints

HAN, GUK = "\ud55c", "\uad6d"  # two Hangul syllables of three letters each
JAMO = ["\u1112", "\u1161", "\u11ab", "\u1100", "\u116e", "\u11a8"]
KOREAN = ["한국", "국가", "나라", "사람 둘", "가나다", "바다"]


def nfc(text: str) -> str:
    return unicodedata.normalize("NFC", text)


def nfd(text: str) -> str:
    return unicodedata.normalize("NFD", text)


def test_syllables_become_letters_and_come_back() -> None:
    tokenizer = build_tokenizer("char", [HAN, GUK], normalization="nfd")
    assert tokenizer.tokenize(HAN + GUK) == JAMO == list(nfd(HAN + GUK))
    assert len(tokenizer) == 5 + 6
    ids = tokenizer.encode(HAN + GUK)
    assert tokenizer.decode(ids) == tokenizer.join(JAMO) == HAN + GUK
    assert tokenizer.encode("\uad70") == [ids[3], ids[4], ids[2]]  # an unknown syllable
    assert tokenizer.encode("\uac00") == [ids[3], ids[1]]
    assert tokenizer.encode("\ub098") == [UNK, ids[1]]
    assert tokenizer.encode(nfd(HAN)) == tokenizer.encode(HAN)
    flat, lengths = tokenizer.encode_flat([HAN, GUK], EOS)
    assert flat.tolist() == [*ids[:3], EOS, *ids[3:], EOS] and lengths.tolist() == [4, 4]
    assert tokenizer.encode_all([HAN, GUK]) == [ids[:3], ids[3:]]


@pytest.mark.parametrize("form", ["nfc", "nfd"])
@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=20)
@given(texts=some.lists(some.text("ab \u00e9e\u0301\ud55c\u1100\u1161\u212b", max_size=9)))
def test_every_kind_returns_text_in_nfc(kind: str, form: str, texts: list[str]) -> None:
    texts = [*texts, "a b"]
    tokenizer, plain = build_tokenizer(kind, texts, None, form), build_tokenizer(kind, texts)
    for text in texts:
        ids = tokenizer.encode(text)
        assert tokenizer.decode(ids) == tokenizer.normalize(text) == nfc(plain.normalize(text))
        assert len(ids) == len(tokenizer.tokenize(text))
        assert ids == tokenizer.encode(nfc(text)) == tokenizer.encode(nfd(text))


@pytest.mark.parametrize("kind", KINDS)
def test_the_form_is_saved(kind: str, tmp_path: Path) -> None:
    tokenizer = build_tokenizer(kind, KOREAN * 3, None, "nfd")
    tokenizer.save(tmp_path, "source")
    loaded = load_tokenizer(tmp_path, "source")
    assert (loaded.kind, loaded.normalization) == (kind, "nfd")
    assert loaded.encode_all(KOREAN) == tokenizer.encode_all(KOREAN)
    assert loaded.content() == tokenizer.content() != tokenizer.inner.content()  # type: ignore[attr-defined]
    assert loaded.names() == tokenizer.names()
    assert (loaded.characters, loaded.subwords) == (tokenizer.characters, tokenizer.subwords)


def test_files_of_older_versions_have_no_form(tmp_path: Path) -> None:
    (tmp_path / "source.json").write_text(json.dumps({"kind": "char", "tokens": [HAN]}))
    assert load_tokenizer(tmp_path, "source").normalization == "none"
    content = {"kind": "char", "normalization": "nfkd", "tokens": [HAN]}
    (tmp_path / "source.json").write_text(json.dumps(content))
    with pytest.raises(UserError, match="written by a newer regard: normalization 'nfkd'"):
        load_tokenizer(tmp_path, "source")


@pytest.mark.parametrize(
    ("kind", "texts", "form", "reason"),
    [
        ("char", KOREAN, "nfd", "100% of the letters are Hangul syllables, 10 distinct"),
        ("char", [HAN + GUK + "abc"], "none", "few letters"),
        ("char", [HAN + GUK + "a 1.2!"], "nfd", "67%"),
        ("char", [nfd(HAN)], "none", "few letters"),
        ("char", ["caf\u00e9", "\u4f60\u597d"], "none", "few letters"),
        ("char", ["12", " "], "none", "few letters"),
        ("bpe", KOREAN, "none", "not characters"),
        ("whitespace", KOREAN, "none", "not characters"),
        ("marian", KOREAN, "none", "not characters"),
    ],
)
def test_automatic_choice(kind: str, texts: list[str], form: str, reason: str) -> None:
    chosen, why = choose_normalization(kind, texts)
    assert chosen == form
    assert reason in why


def test_texts_are_normalized_when_read() -> None:
    texts = NormalizedTexts((HAN, "a", GUK), "nfd")
    assert list(texts) == [nfd(HAN), "a", nfd(GUK)] == texts[:]
    assert len(texts) == 3 and texts[2] == nfd(GUK) and texts[::2] == [nfd(HAN), nfd(GUK)]


def korean_pairs() -> list[Pair]:
    return [Pair(text, text[::-1], line) for line, text in enumerate(KOREAN, 1)]


def test_each_side_of_a_transducer_has_its_own_form() -> None:
    pairs = [Pair(text, "ab c", line) for line, text in enumerate(KOREAN, 1)]
    task, options, auto_settings = TransduceOptions().fit(pairs)
    assert (options.source.normalization, options.target.normalization) == ("nfd", "none")
    (line,) = [one for one in auto_settings if "normalization" in one.key]
    assert (line.key, line.value) == ("task.source.normalization", "nfd")
    assert "jamo" in line.reason
    assert task.source.names(HAN) == [*JAMO[:3], "<eos>"]
    assert task.source.unknown("뷁") == ("\u1170", "\u11b0")
    assert task.source.unknown(HAN) == ()


def test_a_set_form_is_kept() -> None:
    options = TransduceOptions(
        source=Text(normalization="none"), target=SideOptions(normalization="nfc")
    )
    task, filled, auto_settings = options.fit(korean_pairs())
    assert task.source_tokenizer().normalization == "none" == filled.source.normalization
    assert task.target.normalization == "nfc" == filled.target.normalization
    assert not any("normalization" in one.key for one in auto_settings)


def test_shared_vocab_needs_equal_forms() -> None:
    sides: dict[str, Any] = {
        "source": Text(tokenizer="char", normalization="nfd"),
        "target": SideOptions(tokenizer="char", normalization="nfc"),
    }
    with pytest.raises(UserError, match="the same tokenizer, vocab_size and normalization"):
        TransduceOptions(**sides, shared_vocab=True).fit(korean_pairs())
    sides = {"source": Text(tokenizer="char"), "target": SideOptions(tokenizer="char")}
    pairs = [Pair("국가한국", "ab", 1), Pair("나라", "c", 2)]
    task, filled, _ = TransduceOptions(**sides, shared_vocab=True).fit(pairs)
    assert filled.source.normalization == filled.target.normalization == "nfd"
    assert task.source_tokenizer() is task.target


def test_metrics_compare_composed_text() -> None:
    task, _, _ = TransduceOptions(metric="ser").fit(korean_pairs())
    assert task.target.normalization == "nfd"
    given_predictions = [Prediction("한국", 0.0), Prediction("나가", 0.0)]
    scores = task.score(given_predictions, [Example("a", (nfd("한국"),)), Example("b", ("나라",))])
    assert scores["exact_match"] == 50
    assert scores["ser"] == scores["cer"] == 25  # one of four syllables, not one of ten letters


def test_constraints_are_normalized() -> None:
    task, _, _ = TransduceOptions().fit(korean_pairs())
    encode = task.target.encode
    found = task.encode_constraints(Constraints("한", ("나라",), ("국",)))
    assert found.prefix == tuple(encode(nfd("한"))) and len(found.prefix) == 3
    assert found.require == (tuple(encode("나라")),)
    assert tuple(encode("국")) in found.banned


def test_classifiers_read_letters() -> None:
    pairs = [Pair(text, ("x" if line % 2 else "y",), line) for line, text in enumerate(KOREAN)]
    task, options, auto_settings = ClassifyOptions().fit(pairs)
    assert options.source.normalization == "nfd"
    assert "task.source.normalization" in [one.key for one in auto_settings]
    assert task.source.names(HAN) == ["<bos>", *JAMO[:3], "<eos>"]
    again, filled, _ = ClassifyOptions().fit(pairs, like=task)
    assert filled.source.normalization == "nfd"
    assert again.source.content() == task.source.content()
    with pytest.raises(UserError, match=r"task\.source\.normalization: expected nfd as in"):
        ClassifyOptions(source=Text(normalization="none")).fit(pairs, like=task)


def test_a_pretrained_transducer_keeps_its_forms() -> None:
    task, _, _ = TransduceOptions().fit(korean_pairs())
    again, filled, _ = TransduceOptions().fit([Pair("ab", "c", 1)], like=task)
    assert filled.source.normalization == filled.target.normalization == "nfd"
    assert again.target is task.target
    with pytest.raises(UserError, match=r"task\.target\.normalization: expected nfd as in"):
        TransduceOptions(target=SideOptions(normalization="none")).fit(korean_pairs(), like=task)


SMALL = [
    f"model.{side}.{setting}"
    for side in ("encoder", "decoder")
    for setting in ("kind=transformer", "layers=1", "width=16", "heads=2")
]


@pytest.fixture(scope="module")
def korean(made_once: Callable[..., Path], command: Callable[..., Any]) -> Path:
    """The folder of a tiny model that reads and writes Korean, and its data."""

    def make(folder: Path) -> None:
        generator = random.Random(3)
        syllables = [chr(0xAC00 + 588 * i + 28 * j) for i in range(9) for j in range(9)]
        words = ["".join(generator.choices(syllables, k=2)) for _ in range(120)]
        (folder / "train.tsv").write_text("".join(f"{w}\t{w[::-1]}\n" for w in words))
        chosen = [word for setting in SMALL for word in ("--set", setting)]
        out = ("--out", folder / "run", "--steps", "25", *chosen)
        said = command("train", folder / "train.tsv", *out)
        assert said.code == 0, said.err
        (folder / "said.txt").write_text(said.err)

    return made_once("korean", make)


def test_commands_use_the_form_of_the_run(korean: Path, command: Callable[..., Any]) -> None:
    said = (korean / "said.txt").read_text()
    assert "(100% of the letters are Hangul syllables" in said
    for side in ("source", "target"):
        assert f"task.{side}.normalization=nfd" in said
        saved = json.loads((korean / "run" / "vocabulary" / f"{side}.json").read_text())
        assert saved["normalization"] == "nfd" and len(saved["tokens"]) < 20
    run, word = korean / "run", "\uac00\ub098"
    composed, decomposed = (command("predict", run, text) for text in (word, nfd(word)))
    assert composed.code == 0 and composed.out == decomposed.out == nfc(composed.out)
    scored = command("score", run, "--json", stdin=f"{word}\t{word}\n")
    assert scored.code == 0, scored.err
    assert json.loads(scored.out)["tokens"] == [*nfd(word), "<eos>"]
    forced = command("predict", run, word, "--prefix", word[0])
    assert forced.code == 0 and nfd(forced.out).startswith(nfd(word[0]))
    assert command("evaluate", run, korean / "train.tsv").code == 0
    shown = command("inspect", run, word, "--target", word)
    assert shown.code == 0 and JAMO[3] in shown.out


@pytest.mark.parametrize("engine", ["onnx", "ctranslate2"])
def test_engines_read_the_same_letters(
    engine: str, korean: Path, tmp_path: Path, command: Callable[..., Any]
) -> None:
    pytest.importorskip("onnxruntime" if engine == "onnx" else engine)
    out = tmp_path / "out"
    said = command("export", korean / "run", "--to", engine, "--out", out)
    assert said.code == 0, said.err
    words = ["\uac00\ub098", nfd("\ub77c\uac00"), "\ub2e4"]
    ours = [one.text for one in load_predictor(korean / "run").predict(words)]
    assert [one.text for one in load_predictor(out).predict(words)] == ours
