"""The data check: each issue is counted and named with its line; clean data has no warnings."""

import json
import time

import pytest

from regard.data.checks.check import Check, check
from regard.data.reading.read import Pair
from regard.data.tokenizers.build import build_tokenizer

WORDS = ["reading", "writing", "counting", "walking", "singing", "talking", "making", "painting"]


def pairs_of(*sides: tuple[str, str]) -> list[Pair]:
    return [Pair(source, target, line) for line, (source, target) in enumerate(sides, 1)]


def check_of(
    train: list[Pair], dev: list[Pair] | None = None, kind: str = "char", limit: int | None = None
) -> Check:
    source = build_tokenizer(kind, [pair.source for pair in train])
    target = build_tokenizer(kind, [pair.target for pair in train])
    return check(train, dev or [], source, target, limit)


CLEAN = pairs_of(*((word, word[::-1]) for word in WORDS))


def test_clean_data_has_no_warning() -> None:
    result = check_of(CLEAN, pairs_of(("gnat", "tang")))
    assert result.warnings == []
    assert result.lines()[0] == "no issues found"
    assert len(result.short()) == 3
    assert (result.pairs, result.sources, result.multi_target_sources, result.dev_pairs) == (
        8,
        8,
        0,
        1,
    )


def test_lengths() -> None:
    train = pairs_of(*(("a" * length, "b") for length in range(1, 101)))
    result = check_of(train, limit=90)
    assert result.source.lengths == {50: 50, 90: 90, 99: 99, 100: 100}
    assert result.over_limit == 10
    assert result.over_99 == 1
    assert "10 pairs longer than 90 tokens (10.0%), skipped in training" in result.warnings


@pytest.mark.parametrize(
    ("pair", "warning"),
    [
        (("", "x"), "1 pair with an empty source, skipped in training (first: line 9)"),
        (("x", " "), "1 pair with an empty target, skipped in training (first: line 9)"),
        (("making", "gnikam"), "1 duplicate pair (first: line 9)"),
        (("a\x07b", "bxa"), "1 source with control or invisible characters (first: line 9)"),
        (("ab", "b\u200ba"), "1 target with control or invisible characters (first: line 9)"),
        (
            ("ab", "b\ufffda"),
            "1 target with U+FFFD, the replacement character of a decoding error (first: line 9)",
        ),
        (("ab ", "ba"), "1 source with leading or trailing whitespace (first: line 9)"),
        (("cafe\u0301", "fac"), "1 source not in Unicode form NFC (first: line 9)"),
        (
            ("a" * 40, "b"),
            "1 pair with an unusual length ratio, e.g. line 9 (40 source, 1 target tokens)",
        ),
    ],
)
def test_each_issue_is_named(pair: tuple[str, str], warning: str) -> None:
    train = [*CLEAN, Pair(*pair, line=9)]
    result = check_of(train)
    assert warning in result.warnings
    assert f"warning: {warning}" in result.lines()
    assert f"warning: {warning}" in result.short()


def test_double_spaces_matter_for_whitespace_tokens() -> None:
    train = pairs_of(("a b", "A B"), ("b  a", "B A"))
    warning = "1 source with double spaces, read as one (first: line 2)"
    assert warning in check_of(train, kind="whitespace").warnings
    assert check_of(train, kind="char").warnings == []


def test_unknown_in_dev_and_overlap() -> None:
    dev = pairs_of(("reading", "gnidaer"), ("zoo", "ooz"))
    result = check_of(CLEAN, dev)
    assert result.overlap == 1
    assert "1 of 2 dev sources also occur in train (data leakage)" in result.warnings
    assert (result.source.unknown_tokens, result.source.unknown_examples) == (1, 1)
    assert result.source.unknown == {"z": 1}
    assert any("dev source tokens are out of vocabulary" in warning for warning in result.warnings)


def test_several_references_are_not_duplicates() -> None:
    result = check_of(pairs_of(("a", "b"), ("a", "c"), ("d", "e")))
    assert (result.pairs, result.sources, result.multi_target_sources) == (3, 2, 1)
    assert result.duplicates.count == 0


def test_copies_are_an_issue_only_if_they_are_few() -> None:
    many = [Pair(f"ab{number}", f"{number}ab", number) for number in range(1, 100)]
    assert "1 target identical to the source (first: line 100)" in (
        check_of([*many, Pair("same", "same", 100)]).warnings
    )
    assert check_of(pairs_of(*((word, word) for word in WORDS))).warnings == []


def test_characters_and_scripts() -> None:
    train = pairs_of(("ab", "\u03b1\u03b2"), ("ba", "\u03b2\u03b1"), ("aab", "\u03b1\u4f60"))
    result = check_of(train)
    assert result.source.scripts == {"Latin": 1.0}
    assert list(result.target.scripts) == ["Greek", "Han"]
    assert result.target.characters == 3
    assert result.target.rare == {"\u03b2": 2, "\u4f60": 1}


def test_json_and_empty_data() -> None:
    train = [*CLEAN, Pair("a\x07", "", 9)]
    assert json.loads(json.dumps(check_of(train, CLEAN).as_dict()))["pairs"] == 9
    assert check_of([]).lines()


def test_many_pairs_are_quick() -> None:
    """Time is linear in the number of pairs: any comparison of all pairs takes minutes."""
    train = [Pair(f"word{n}", " ".join(f"W ER D {n}"), n) for n in range(60_000)]
    start = time.process_time()
    check_of(train, train[:1000])
    assert time.process_time() - start < 10  # about 1 s on an idle machine
