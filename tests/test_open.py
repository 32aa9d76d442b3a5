"""Which data a command means, and what is an error."""

import os
from pathlib import Path

import pytest

from regard.core.errors import UserError
from regard.data.sources.open import DataSpec, open_pairs, open_test


@pytest.mark.parametrize(
    ("place", "message"),
    [
        (
            DataSpec("reverse", "a.txt", "b.txt"),
            "reverse: cannot be combined with --source and --target",
        ),
        (DataSpec("reverse", source_column="1"), "a built-in dataset has no columns"),
        (DataSpec(source="a.txt", target="b.txt", target_column="2"), "no columns to choose"),
        (DataSpec(target="b.txt"), "--source: missing"),
    ],
)
def test_mixtures_are_errors(place: DataSpec, message: str) -> None:
    with pytest.raises(UserError, match=message):
        open_pairs(place, DataSpec(), DataSpec.read)
    with pytest.raises(UserError, match=message):
        open_test(place, DataSpec.read)


def test_built_in_data_as_dev_part() -> None:
    data = open_pairs(DataSpec("copy"), DataSpec("reverse", option="--dev-"), DataSpec.read)
    assert all(pair.target == pair.source[::-1] for pair in data.dev)
    assert all(pair.target == pair.source for pair in data.train)


def test_absolute_paths_work_from_another_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("pairs.tsv").write_text("a\tb\n" * 3 + "c\td\n")
    place = DataSpec("pairs.tsv").absolute()
    os.chdir("/")
    assert len(place.read().pairs) == 4
    assert DataSpec("-").absolute() == DataSpec("-")
    assert DataSpec("g2p").absolute() == DataSpec("g2p")
