"""Images on the command line: check, train, evaluate, predict, score, diagnose."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pictures import by_class, draw, write, write_idx

Command = Callable[..., Any]
LABELS = np.array([n % 2 for n in range(20)], np.uint8)
IMAGES = np.stack([draw(n % 2, n) for n in range(20)])
MLP = ("--set", "model.encoder.kind=mlp")


@pytest.fixture(autouse=True)
def in_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.fixture(scope="module")
def classifier(command: Command, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model of cats (bright upper left corner) and dogs (upper right)."""
    folder = tmp_path_factory.mktemp("images")
    pets = by_class(folder / "pets", 12)
    said = command(
        *("train", pets, "--task", "classify", "--epochs", "10", "--out", folder / "run"), *MLP
    )
    assert said.code == 0, said.err
    assert f"next: regard predict {folder}/run FILE" in said.out + said.err
    return folder / "run"


def lines(said: Any) -> list[str]:
    assert said.code == 0, said.err
    return said.out.splitlines()


def test_lines_name_the_file(command: Command, classifier: Path) -> None:
    write(Path("a.png"), draw(0, 77))
    write(Path("b.bmp"), draw(1, 77))
    assert lines(command("predict", classifier, "a.png", "b.bmp")) == ["a.png\tcat", "b.bmp\tdog"]
    (found,) = lines(command("predict", classifier, "a.png", "--json"))
    record = json.loads(found)
    assert (record["source"], record["prediction"]) == ("a.png", "cat")
    best = lines(command("predict", classifier, "a.png", "--nbest", "2"))
    assert [row.split("\t")[::2] for row in best] == [["a.png", "cat"], ["a.png", "dog"]]


def test_inputs_without_lines(command: Command, classifier: Path) -> None:
    folder = by_class(Path("new"), 2)
    (folder / "notes.txt").write_text("x")
    said = command("predict", classifier, "--input", folder)
    expected = [f"new/{kind}/{n}.png\t{kind}" for kind in ("cat", "dog") for n in (0, 1)]
    assert lines(said) == expected
    assert "skipped: 1 file of other kinds: notes.txt" in said.err
    shards = [
        command("predict", classifier, "--input", folder, "--shard", f"{k}/3") for k in (1, 2, 3)
    ]
    assert [line for shard in shards for line in lines(shard)] == expected
    np.savez("a.npz", images=IMAGES[:2])
    for name in ("a.npz", write_idx(Path("a-idx3-ubyte.gz"), IMAGES[:2])):
        assert lines(command("predict", classifier, "--input", name)) == [
            f"{name} image 1\tcat",
            f"{name} image 2\tdog",
        ]
    said = command("predict", classifier, "--input", "a.npz", "--source-column", "image")
    assert said.code == 2 and "a.npz: no array `image`: found images" in said.err
    assert lines(command("predict", classifier, "--input", "new/cat/1.png")) == expected[1:2]


def test_lists_of_files(command: Command, classifier: Path) -> None:
    by_class(Path("new"), 2)
    Path("new/list.txt").write_text("cat/0.png\ndog/1.png\n")
    expected = ["cat/0.png\tcat", "dog/1.png\tdog"]
    assert lines(command("predict", classifier, "--input", "new/list.txt")) == expected
    said = command("predict", classifier, "--input", "-", stdin="new/cat/0.png\n")
    assert lines(said) == ["new/cat/0.png\tcat"]
    Path("new/bad.txt").write_text("cat/0.png\nnew/cat/0.png\n")
    said = command("predict", classifier, "--input", "new/bad.txt")
    assert said.code == 2 and not said.out
    assert "new/bad.txt line 2: new/new/cat/0.png: no such file" in said.err
    assert "new/cat/0.png exists relative to the current folder" in said.err
    Path("new/bad.txt").write_text("cat/0.png\n\nno.png\ncat\ndog/1.png\n")
    said = command("predict", classifier, "--input", "new/bad.txt")
    assert said.code == 2 and not said.out
    assert said.err.splitlines()[-4:-1] == [
        "error: new/bad.txt line 2: expected the name of a file, found nothing",
        "new/bad.txt line 3: new/no.png: no such file",
        "new/bad.txt line 4: new/cat: expected a file, found a folder",
    ]


def test_evaluate_every_format(command: Command, classifier: Path) -> None:
    names = np.array(["cat", "dog"])[LABELS]
    np.savez("a.npz", images=IMAGES, labels=names)
    by_class(Path("new"), 4)
    rows = [f"new/{kind}/{n}.png\t{kind}\ttest" for kind in ("cat", "dog") for n in range(4)]
    Path("a.tsv").write_text("\n".join(["file\tlabel\tpart", *rows, "x.png\tcat\ttrain"][:-1]))
    for words in (["a.npz"], ["new"], ["a.tsv", "--split-column", "part", "--split", "test"]):
        found = json.loads(command("evaluate", classifier, *words, "--json").out)
        assert found["metrics"]["accuracy"] == 100


def test_idx_pairs_with_a_dev_set(command: Command) -> None:
    files = [write_idx(Path(f"{name}.gz"), array) for name, array in (("x", IMAGES), ("y", LABELS))]
    both = ("--source", files[0], "--target", files[1])
    dev = ("--dev-source", files[0], "--dev-target", files[1])
    said = command("train", *both, *dev, "--task", "classify", "--steps", "3", "--out", "r", *MLP)
    assert said.code == 0, said.err
    assert "read as IDX" in said.err
    assert lines(command("evaluate", "r", *both, "--json"))
    checked = json.loads(command("check", *both, *dev, "--task", "classify", "--json").out)
    assert checked["media"]["overlap"] == 20 and checked["media"]["copies"] == 0
    assert checked["labels"] == {"0": 10, "1": 10}


def test_check(command: Command) -> None:
    folder = by_class(Path("pets"), 6)
    write(folder / "cat" / "copy.bmp", draw(0, 3))
    write(folder / "dog" / "flat.png", np.full((8, 8), 7, np.uint8))
    by_class(Path("dev"), 1)
    said = command("check", folder, "--dev", "dev", "--task", "classify", "--json")
    found = json.loads(lines(said)[0])
    pixels = np.concatenate(
        [draw(k, n).ravel() for k in (0, 1) for n in range(6)] + [draw(0, 3).ravel(), [7] * 64]
    )
    media = found["media"]
    assert media["sizes"] == {"8x8": 14} and media["channels"] == {"1": 14}
    np.testing.assert_allclose(
        [media["mean"], media["std"]], [[pixels.mean()], [pixels.std()]], atol=1e-4
    )
    assert (media["constant"], media["copies"], media["overlap"]) == (1, 1, 2)
    assert found["warnings"][-3:] == [
        "1 constant image (all pixels are equal), first: pets/dog/flat.png",
        "1 image of train equal to an earlier one, first: pets/cat/copy.bmp = pets/cat/3.png",
        "2 of 2 dev images also occur in train (data leakage), first: dev/cat/0.png = "
        "pets/cat/0.png",
    ]
    text = lines(command("check", folder, "--dev", "dev", "--task", "classify"))
    assert "height x width           8x8 (14)" in text and "train images             14" in text


def test_captions(command: Command) -> None:
    by_class(Path("pets"), 8)
    rows = [
        json.dumps({"image": f"pets/{kind}/{n}.png", "captions": [f"a {kind}", f"one {kind}"]})
        for kind in ("cat", "dog")
        for n in range(8)
    ]
    Path("a.jsonl").write_text("\n".join(rows))
    said = command("train", "a.jsonl", "--steps", "3", "--out", "r")
    assert said.code == 0, said.err
    found = json.loads(lines(command("evaluate", "r", "a.jsonl", "--json"))[0])
    assert found["examples"] == 16
    checked = json.loads(lines(command("check", "a.jsonl", "--json"))[0])
    assert checked["media"]["images"] + checked["media"]["dev_images"] == 16
    (record,) = lines(command("predict", "r", "pets/cat/0.png", "--json"))
    assert json.loads(record)["source"] == "pets/cat/0.png"
    scored = lines(command("score", "r", "--json", stdin="pets/cat/0.png\ta cat\n"))
    assert json.loads(scored[0])["source"] == "pets/cat/0.png"
    assert command("diagnose", "r").code in (0, 1)


def test_sizes_and_conversions(command: Command, classifier: Path) -> None:
    write(Path("a.png"), draw(0, 0, (9, 8)))
    said = command("predict", classifier, "a.png")
    assert said.code == 2
    assert "a.png: expected 8x8, 1 channel as in training, found 9x8, 1 channel" in said.err
    folder = by_class(Path("mix"), 4)
    write(folder / "cat" / "big.png", draw(0, 0, (16, 16), 3))
    words = ("train", folder, "--task", "classify", "--steps", "2", "--out", "r", *MLP)
    said = command(*words)
    assert said.code == 2
    assert "mix/cat/big.png: expected 8x8, 1 channel as" in said.err
    assert "--set task.source.size=8,8" in said.err
    sizes = ("--set", "task.source.size=8", "--set", "task.source.channels=1")
    said = command(*words, *sizes)
    assert said.code == 0, said.err
    assert "images converted to grayscale: 1" in said.err
    said = command("predict", "r", "mix/cat/big.png", "mix/cat/0.png")
    assert len(lines(said)) == 2 and "images resized to 8x8: 1" in said.err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["train", "pets"], "a folder has classes, but this task needs texts"),
        (["train", "pets", "--task", "regress"], "a folder has classes, but this task needs num"),
        (["train", "pets", "--task", "tag"], "pets: the sources are image files: not supported"),
        (["train", "pets", "--task", "language-model"], "language-model, which reads plain text"),
        (
            ["train", "pets", "--task", "classify", "--unlabeled", "pets"],
            "not supported for images",
        ),
        (
            ["train", "pets", "--task", "classify", "--split-column", "2"],
            "only tables have columns",
        ),
    ],
)
def test_what_is_rejected(command: Command, words: list[str], message: str) -> None:
    by_class(Path("pets"), 3)
    said = command(*words, "--out", "r")
    assert said.code == 2 and message in said.err
    assert not Path("r", "config.yaml").exists()


def test_predict_tables(command: Command, classifier: Path) -> None:
    """Files in a table, which needs no targets; the first column, one by name, JSON lines."""
    by_class(Path("new"), 2)
    expected = ["cat/0.png\tcat", "dog/1.png\tdog"]
    tables = {
        "a.tsv": "file\tlabel\tpart\ncat/0.png\tcat\ttest\ndog/1.png\t\ttest\n",
        "b.csv": "file\ncat/0.png\ndog/1.png\n",
        "c.csv": "id,scan\n1,cat/0.png\n2,dog/1.png\n",
        "d.jsonl": '{"image": "cat/0.png", "captions": ["a", "b"]}\n{"image": "dog/1.png"}\n',
        "e.tsv": "cat/0.png\ndog/1.png\n",
    }
    for name, text in tables.items():
        Path("new", name).write_text(text)
        column = ("--source-column", "scan") if name == "c.csv" else ()
        assert lines(command("predict", classifier, "--input", f"new/{name}", *column)) == expected
    said = command("predict", classifier, "--input", "new/c.csv")
    assert said.code == 2 and not said.out
    assert "new/c.csv: expected a column of image files, found id, scan" in said.err
    said = command("predict", classifier, "--input", "new/a.tsv", "--source-column", "fil")
    assert said.code == 2 and "did you mean 'file'?" in said.err
    Path("new/a.tsv").write_text("file\tlabel\ncat/0.png\tcat\nno.png\tdog\ncat\tdog\n")
    said = command("predict", classifier, "--input", "new/a.tsv")
    assert said.code == 2 and "new/a.tsv line 3: new/no.png: no such file" in said.err
    Path("new/a.tsv").write_text("file\tlabel\ncat/0.png\tcat\ncat\tdog\n")
    said = command("predict", classifier, "--input", "new/a.tsv")
    assert "new/a.tsv line 3: new/cat: expected an image, found a folder" in said.err
