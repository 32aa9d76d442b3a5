"""Tokenizers: special tokens, exact round trips, automatic choice, saving, corrupted files."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from regard.core.errors import UserError
from regard.data.tensors.special import BOS, EOS, MASK, PAD, SPECIALS, UNK
from regard.data.tokenizers.build import KINDS, build_tokenizer, load_tokenizer
from regard.data.tokenizers.tokenizer_choice import choose_tokenizer

SENTENCES = [
    "The quick brown fox, aged 3, jumps over the lazy dog.",
    "It isn't  easy: two spaces, a tab\tand <mask> <pad> <unk> stay text!",
    " Leading and trailing space ",
    "caf\u00e9 \u4f60\u597d \u0939\u093f\u0928\u094d\u0926\u0940 \u2581\u2585 \U0001f600",
    "",
] * 3
texts = some.lists(some.text(max_size=30), min_size=1, max_size=5)


@pytest.mark.parametrize("kind", KINDS)
def test_specials_have_the_same_ids_in_every_kind(kind: str) -> None:
    tokenizer = build_tokenizer(kind, SENTENCES)
    assert (PAD, UNK, BOS, EOS, MASK) == (0, 1, 2, 3, 4)
    assert tuple(tokenizer.name(id) for id in range(5)) == SPECIALS
    assert all(id > MASK for text in SENTENCES for id in tokenizer.encode(text))


@pytest.mark.parametrize("kind", ["char", "char_features", "bpe", "unigram"])
def test_text_comes_back_exactly(kind: str) -> None:
    tokenizer = build_tokenizer(kind, SENTENCES)
    encoded = tokenizer.encode_all(SENTENCES)
    assert [tokenizer.decode(ids) for ids in encoded] == SENTENCES
    assert encoded == [tokenizer.encode(text) for text in SENTENCES]


@pytest.mark.parametrize("kind", ["char", "char_features"])
@given(given_texts=texts)
def test_any_text_comes_back_from_characters(kind: str, given_texts: list[str]) -> None:
    tokenizer = build_tokenizer(kind, given_texts)
    assert [tokenizer.decode(tokenizer.encode(text)) for text in given_texts] == given_texts


@given(some.lists(some.text("aVP3;|,=.+ \t\u2028{", max_size=12), min_size=1))
def test_any_features_come_back(given_texts: list[str]) -> None:
    tokenizer = build_tokenizer("char_features", given_texts)
    assert [tokenizer.decode(tokenizer.encode(text)) for text in given_texts] == given_texts


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("go V;PST", ["g", "o", " ", ";V", ";PST"]),
        ("V;PST go", [";V", ";PST", " ", "g", "o"]),
        ("USA N;SG", ["U", "S", "A", " ", ";N", ";SG"]),
        ("x V.PTCP;3;AT+ESS", ["x", " ", ";V.PTCP", ";3", ";AT+ESS"]),
        ("x N;{NOM/ACC}", ["x", " ", ";N", ";{NOM/ACC}"]),
        ("x V;NOM(1,SG)", ["x", " ", ";V", ";NOM(1,SG)"]),
        ("x Case=Nom|Number[psor]=Sing", ["x", " ", "|Case=Nom", "|Number[psor]=Sing"]),
        ("x Number=Sing", ["x", " ", "|Number=Sing"]),
        ("x pos=N,case=NOM", ["x", " ", ",pos=N", ",case=NOM"]),
        ("x A|PronType=Int,Rel", ["x", " ", "|A", "|PronType=Int,Rel"]),
    ],
)
def test_features_are_tokens(text: str, tokens: list[str]) -> None:
    tokenizer = build_tokenizer("char_features", [text])
    assert tokenizer.tokenize(text) == tokens
    assert tokenizer.join(tokens) == text == tokenizer.decode(tokenizer.encode(text))


@pytest.mark.parametrize("word", ["V", "V;", ";V", "V;;N", "a;B", "A;B|C", "1,000", "1;2", "N;É"])
def test_other_words_are_characters(word: str) -> None:
    assert build_tokenizer("char_features", [word]).tokenize(word) == list(word)


def test_an_unknown_feature_is_one_unknown_token() -> None:
    tokenizer = build_tokenizer("char_features", ["go V;PST", "V go"])
    assert tokenizer.encode("V;FUT")[1:] == [UNK]
    assert tokenizer.encode("V;PST")[:1] != tokenizer.encode("V")  # the feature, the character


@given(texts)
def test_any_text_comes_back_from_words_up_to_whitespace(given_texts: list[str]) -> None:
    tokenizer = build_tokenizer("word", given_texts)
    for text in given_texts:
        assert tokenizer.decode(tokenizer.encode(text)) == " ".join(text.split())


@given(some.lists(some.text("ab \t\u2028", max_size=20), max_size=5))
def test_whitespace_tokens_come_back_with_single_spaces(given_texts: list[str]) -> None:
    tokenizer = build_tokenizer("whitespace", given_texts)
    for text in given_texts:
        kept = " ".join(part for part in text.split(" ") if part)
        assert tokenizer.decode(tokenizer.encode(text)) == kept


@settings(max_examples=40, deadline=None)
@given(texts.filter(any), some.sampled_from(["bpe", "unigram"]))
def test_any_text_comes_back_from_subwords(given_texts: list[str], kind: str) -> None:
    tokenizer = build_tokenizer(kind, given_texts)
    assert [tokenizer.decode(tokenizer.encode(text)) for text in given_texts] == given_texts


def test_words_and_punctuation_are_apart() -> None:
    tokenizer = build_tokenizer("word", ["Go, go up!"])
    assert tokenizer.tokenize("Go, go!") == ["Go", "\uffed,", "go", "\uffed!"]
    assert tokenizer.tokenize("\u0939\u093f\u0928\u094d\u0926\u0940") == [
        "\u0939\u093f\u0928\u094d\u0926\u0940"
    ]


def test_most_frequent_words_are_kept() -> None:
    tokenizer = build_tokenizer("word", ["a a a b b c"], size=2)
    assert len(tokenizer) == 7
    assert tokenizer.encode("a b c") == [5, 6, UNK]
    assert tokenizer.decode([BOS, 5, UNK, EOS, PAD, MASK]) == "a \u2047"


@pytest.mark.parametrize("kind", KINDS)
def test_unknown_is_marked(kind: str) -> None:
    tokenizer = build_tokenizer(kind, ["a b", "b a"])
    ids = tokenizer.encode("a \u20ac")
    assert UNK in ids
    assert len(ids) == len(tokenizer.tokenize("a \u20ac"))
    assert "\u2047" in tokenizer.decode(ids)


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_saved_is_loaded(kind: str, tmp_path: Path) -> None:
    tokenizer = build_tokenizer(kind, SENTENCES)
    tokenizer.save(tmp_path, "source")
    loaded = load_tokenizer(tmp_path, "source")
    assert (loaded.kind, len(loaded)) == (kind, len(tokenizer))
    assert loaded.encode_all(SENTENCES) == tokenizer.encode_all(SENTENCES)
    names = {path.name for path in tmp_path.iterdir()}
    assert names <= {"source.json", "source.model"}


def test_the_file_is_readable(tmp_path: Path) -> None:
    build_tokenizer("char", ["\u00e9a"]).save(tmp_path, "target")
    assert '"\u00e9"' in (tmp_path / "target.json").read_text(encoding="utf-8").split("\n")


def test_missing_and_corrupted_vocabularies_are_explained(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"source\.json: missing vocabulary"):
        load_tokenizer(tmp_path, "source")
    for content in ("{", "[]", '{"kind": "char", "tokens": 3}', '{"kind": "char"}'):
        (tmp_path / "source.json").write_text(content)
        with pytest.raises(UserError, match=r"source\.json: corrupted vocabulary"):
            load_tokenizer(tmp_path, "source")
    (tmp_path / "source.json").write_text('{"kind": "morse", "tokens": []}')
    with pytest.raises(UserError, match="written by a newer regard: kind 'morse'"):
        load_tokenizer(tmp_path, "source")


def test_corrupted_subwords_are_explained(tmp_path: Path) -> None:
    build_tokenizer("bpe", SENTENCES).save(tmp_path, "source")
    model = tmp_path / "source.model"
    model.write_bytes(model.read_bytes()[:100])
    with pytest.raises(UserError, match=r"source\.model"):
        load_tokenizer(tmp_path, "source")
    build_tokenizer("bpe", ["another text"]).save(tmp_path, "other")
    (tmp_path / "other.model").replace(model)
    with pytest.raises(UserError, match="does not match"):
        load_tokenizer(tmp_path, "source")
    model.unlink()
    with pytest.raises(UserError, match="missing vocabulary"):
        load_tokenizer(tmp_path, "source")


@pytest.mark.parametrize("kind", ["bpe", "unigram"])
def test_too_large_a_size_is_reduced_silently_on_the_terminal(
    kind: str, capfd: pytest.CaptureFixture[str]
) -> None:
    assert 5 < len(build_tokenizer(kind, ["hello there", "hello you"], size=8000)) < 100
    output = capfd.readouterr()
    assert output.out == output.err == ""


@pytest.mark.parametrize("kind", ["bpe", "unigram"])
def test_subwords_are_the_same_each_time(kind: str) -> None:
    first, second = (build_tokenizer(kind, SENTENCES, size=60) for _ in range(2))
    assert [first.name(id) for id in range(len(first))] == [
        second.name(id) for id in range(len(second))
    ]


def test_wrong_requests_are_explained() -> None:
    with pytest.raises(
        UserError,
        match="expected char, char_features, word, whitespace, bpe, unigram, found 'morse'",
    ):
        build_tokenizer("morse", ["a"])
    with pytest.raises(UserError, match="expected 1 or more, found 0"):
        build_tokenizer("char", ["a"], size=0)
    with pytest.raises(UserError, match="vocab_size 3 is smaller than the 7 distinct characters"):
        build_tokenizer("bpe", ["abcd ef"], size=3)
    with pytest.raises(UserError, match="all texts are empty"):
        build_tokenizer("unigram", ["", ""])


def test_names_are_printable() -> None:
    tokenizer = build_tokenizer("char", [" \t\u0301a"])
    shown = {tokenizer.token(id): tokenizer.name(id) for id in range(5, len(tokenizer))}
    assert shown == {" ": "\u2423", "\t": "U+0009", "\u0301": "\u25cc\u0301", "a": "a"}


ONES = ["one", "two", "three", "four", "five", "six", "seven", "eight", "nine"]


@pytest.mark.parametrize(
    ("texts", "kind", "reason"),
    [
        (
            ["T R IH P AH L EY", "AA B ER G", "AA K AH N"],
            "whitespace",
            "5.0 whitespace-separated tokens per line",
        ),
        (["\u0254 t e l", "k a\u0320\u02d0 \u0261 e\u031e"] * 20, "whitespace", "8 distinct"),
        (["attention", "is", "needed"], "char", "1 word "),
        (["3 May 2021", "May 3, 2021", "Monday 3rd May 2021"] * 30, "char", "3.3 words"),
        (["Ada Lovelace", "Grace Brewster Hopper"] * 30, "char", "2.5 words"),
        (["A little girl climbs into a wooden house.", "Two men work."] * 30, "bpe", "sentences"),
        (
            ["\u6211\u4eca\u5929\u53bb\u5546\u5e97\u4e70\u4e86\u82f9\u679c\u3002"] * 3,
            "unigram",
            "91%",
        ),
        (["\u4f60\u597d", "\u8c22\u8c22"], "char", "2.0 characters"),
        (
            ["walk V;PST", "go V;3;SG;PRS", "fly V;PST"] * 9,
            "char_features",
            "100% of the lines have a feature bundle such as V;PST: 2.7 features per line",
        ),
        (["Hund Case=Nom|Number=Sing", "ab Case=Acc|Number=Sing"] * 9, "char_features", "2.0 fe"),
        (["V;PST", "N;SG", "N;PL"] * 9, "char_features", "5 distinct"),
        (["walk V;PST", "go V;PRS", "fly"] * 9, "char", "1.7 words"),  # not every line has one
        (["walk V;PST V;PRS"] * 9, "char", "3 words"),  # two bundles
        (["walk Tense=Past", "go Tense=Fut"] * 9, "char", "2 words"),  # one feature per line
        ([f"walk A{i};B{i}" for i in range(90)], "char", "2 words"),  # features occur once
        (["the old man walked V;PST home again"] * 9, "bpe", "sentences"),
        (["Well, yes.", "A, B and C", "3,000 men"] * 30, "char", "words"),
        ([f"{a} hundred {b}" for a in ONES for b in ONES], "whitespace", "closed vocabulary: 10 d"),
        (["", " "], "char", "no text"),
        ([], "char", "no text"),
    ],
)
def test_automatic_choice(texts: list[str], kind: str, reason: str) -> None:
    chosen, why = choose_tokenizer(texts, closed=True)
    assert chosen == kind
    assert reason in why
