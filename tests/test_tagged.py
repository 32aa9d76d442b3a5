"""Tagged sentences: every format gives the same, and is written back as it came."""

import gzip
import io
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import regard
from regard.core.errors import UserError
from regard.data.reading.read import Pair
from regard.data.reading.tagged import read_sentences, read_tagged

SENTENCES = [(("The", "dog"), ("DET", "NOUN")), (("Go", "!"), ("VERB", "PUNCT"))]


def word(number: str, form: str, tag: str, xpos: str = "_") -> str:
    return f"{number}\t{form}\t_\t{tag}\t{xpos}\t_\t_\t_\t_\t_\n"


CONLLU = (
    "# text = The dog\n"
    + word("1", "The", "DET", "DT")
    + word("2", "dog", "NOUN", "NN")
    + "\n# sent_id = 2\n# text = Go!\n"
    + word("1-2", "Go!", "_")
    + word("1", "Go", "VERB", "VB")
    + word("1.1", "you", "PRON")
    + word("2", "!", "PUNCT", ".")
    + "\n"
)
FILES = {
    "a.conllu": CONLLU,
    "a.data": CONLLU,
    "a.conll": "The\tDET\ndog\tNOUN\n\nGo\tVERB\n!\tPUNCT\n",
    "b.tsv": "The\tDET\ndog\tNOUN\n\nGo\tVERB\n!\tPUNCT\n\n",
    "c.txt": "-DOCSTART- -X- O\n\nThe x DET\ndog x NOUN\n\n\nGo x VERB\n! x PUNCT\n\n",
    "d.bio": "The  x DET\ndog x  NOUN \n\nGo x VERB\n! x PUNCT\n",
    "e.tsv": "The dog\tDET NOUN\nGo !\tVERB PUNCT\n",
    "f.tsv": "tokens\ttags\nThe  dog\tDET NOUN\n\nGo !\tVERB PUNCT\n",
    "g.jsonl": '{"tokens": ["The", "dog"], "tags": ["DET", "NOUN"]}\n'
    '{"tokens": ["Go", "!"], "tags": ["VERB", "PUNCT"], "id": "é"}\n',
    "h.json": '{"words": ["The", "dog"], "labels": ["DET", "NOUN"]}\n\n'
    '{"words": "Go !", "labels": ["VERB", "PUNCT"]}\n',
}


@pytest.fixture(autouse=True)
def in_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def write(name: str, content: str | bytes) -> str:
    data = content.encode() if isinstance(content, str) else content
    Path(name).write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
    return name


def error_of(name: str, content: str | bytes, *columns: str | None) -> str:
    with pytest.raises(UserError) as error:
        read_tagged(write(name, content), *columns)
    return str(error.value)


def predict(name: str, content: str, *columns: str | None) -> str:
    """The file as it is written with a tag X for each token."""
    sentences, layout = read_sentences(write(name, content), *columns)
    return "".join(layout.render(each, ["X"] * len(each.tokens)) for each in sentences)


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("ending", ["", ".gz"])
def test_formats_agree(name: str, ending: str) -> None:
    found, _ = read_tagged(write(name + ending, FILES[name]))
    assert [(pair.source, pair.target) for pair in found.pairs] == SENTENCES
    assert (found.name, found.path) == (name[0], name + ending)


@pytest.mark.parametrize("name", FILES)
def test_windows_line_ends_are_noted(name: str) -> None:
    found, _ = read_tagged(write(name, FILES[name].replace("\n", "\r\n")))
    assert [(pair.source, pair.target) for pair in found.pairs] == SENTENCES
    assert any("Windows line ends (CR LF) removed" in note for note in found.notes)


def test_lines_are_those_of_the_first_token() -> None:
    assert [pair.line for pair in read_tagged(write("a.conllu", CONLLU))[0].pairs] == [2, 8]
    assert [pair.line for pair in read_tagged(write("c.txt", FILES["c.txt"]))[0].pairs] == [3, 7]
    assert [pair.line for pair in read_tagged(write("f.tsv", FILES["f.tsv"]))[0].pairs] == [2, 4]


@pytest.mark.parametrize(
    ("name", "notes"),
    [
        ("a.conllu", ["read as CoNLL-U", "skipped: 2 multi-word ranges and empty nodes"]),
        ("a.data", ["read as CoNLL-U, guessed from the first lines"]),
        ("b.tsv", ["read as columns, one token per line, guessed", "tags are column 2"]),
        ("c.txt", ["read as columns", "tags are column 3", "skipped: 1 -DOCSTART- lines"]),
        ("e.tsv", ["read as TSV, one sentence per line, guessed"]),
        (
            "f.tsv",
            ["read as TSV", "a header: tokens, tags", "skipped: 1 blank lines"],
        ),
        ("h.json", ["read as JSONL", "tokens are under the key words, tags under labels"]),
    ],
)
def test_what_was_recognized_is_reported(name: str, notes: list[str]) -> None:
    found, _ = read_tagged(write(name, FILES[name]))
    assert found.notes[0].startswith(notes[0])
    for note in notes[1:]:
        assert any(note in each for each in found.notes)


def test_columns_by_number_and_name() -> None:
    path = write("a.conllu", CONLLU)
    for source, target in (("FORM", "XPOS"), ("2", "5"), (None, "xpos")):
        assert read_tagged(path, source, target)[0].pairs[0].target == ("DT", "NN")
    path = write("x.conll", "a DT x\nb NN y\n\n")
    assert read_tagged(path, "3", "2")[0].pairs == [Pair(("x", "y"), ("DT", "NN"), 1)]
    path = write("x.tsv", "id\ttokens\ttags\n1\ta b\tX Y\n")
    assert read_tagged(path, "tags", "tokens")[0].pairs == [Pair(("X", "Y"), ("a", "b"), 2)]
    path = write("x.jsonl", '{"a": ["x", "y z"], "b": ["1", "2"]}\n')
    assert read_tagged(path, "a", "b")[0].pairs == [Pair(("x", "y z"), ("1", "2"), 1)]


def test_one_column_of_tokens_is_not_one_line_of_them() -> None:
    one = [Pair(("a", "b"), ("X", "Y"), 1)]
    assert read_tagged(write("s.tsv", "a\tX\nb\tY\n"))[0].pairs == one
    assert read_tagged(write("s.tsv", "a b\tX Y\n"))[0].pairs == one
    assert read_tagged(write("s.tsv", "a\tX\n"))[1].kind == "tsv"
    found, layout = read_tagged(write("s.tsv", "10 000\tX\nb\tY\n\nc\tZ\n"))
    assert (layout.kind, found.pairs[0].source) == ("columns", ("10 000", "b"))


def test_only_spaces_separate() -> None:
    found, _ = read_tagged(write("n.tsv", "a\u00a0b c\u2028d\tX Y\n"))
    assert found.pairs == [Pair(("a\u00a0b", "c\u2028d"), ("X", "Y"), 1)]


def test_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    for data in (CONLLU.encode(), gzip.compress(FILES["e.tsv"].encode())):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))
        found, _ = read_tagged("-")
        assert [(pair.source, pair.target) for pair in found.pairs] == SENTENCES
        assert found.name == "standard-input"


@pytest.mark.parametrize("name", [name for name in FILES if name != "h.json"])
@pytest.mark.parametrize("ending", ["", ".gz"])
def test_own_tags_give_the_file_back(name: str, ending: str) -> None:
    content = FILES[name] + "\n\n# odd end\n" * (name == "a.conllu")
    sentences, layout = read_sentences(write(name + ending, content))
    found = list(sentences)
    assert [(each.tokens, each.tags) for each in found if each.tokens] == SENTENCES
    assert "".join(layout.render(each, each.tags or ()) for each in found) == content


def test_json_keeps_all_its_keys() -> None:
    written = predict("g.jsonl", FILES["g.jsonl"]).splitlines()
    assert json.loads(written[1]) == {"tokens": ["Go", "!"], "tags": ["X", "X"], "id": "é"}
    assert json.loads(predict("n.jsonl", '{"words": "a b"}\n'))["tags"] == ["X", "X"]


@pytest.mark.parametrize(
    ("name", "content", "columns", "written"),
    [
        ("t.txt", "Hello world .\n\nBye\n", [], "X X X\n\nX\n"),
        ("t.txt", "{ brace\n", [], "X X\n"),
        ("t.txt", "# no comment\n", [], "X X X\n"),
        ("t.conll", "The\ndog\n\nGo\n", [], "The X\ndog X\n\nGo X\n"),
        ("t.txt", "The\ndog\n\nGo\n", [], "The X\ndog X\n\nGo X\n"),
        ("t.txt", "a DT\nb NN\n\nc DT\n", [None, "3"], "a DT X\nb NN X\n\nc DT X\n"),
        ("t.conll", "a\tDT\nb\tNN\n\n", ["1", "3"], "a\tDT\tX\nb\tNN\tX\n\n"),
        ("t.tsv", "a b\t\nc\t\n", [], "a b\tX X\nc\tX\n"),
        ("t.tsv", "id 1\ta b\n", ["2", "3"], "id 1\ta b\tX X\n"),
        ("t.conllu", word("1", "a", "_").rstrip(), [], word("1", "a", "X") + "\n"),
        ("t.data", "# a = 1\n" + word("1", "a", "_"), [], f"# a = 1\n{word('1', 'a', 'X')}\n"),
    ],
)
def test_sentences_without_tags(
    name: str, content: str, columns: list[str | None], written: str
) -> None:
    sentences, _ = read_sentences(write(name, content), *columns)
    assert all(each.tags is None for each in sentences)
    assert predict(name, content, *columns) == written


def test_columns_named_make_lines_of_text_columns() -> None:
    assert predict("t.txt", "a DT\nb NN\n") == "X X\nX X\n"
    assert predict("t.txt", "a DT\nb NN\n", "1", "2") == "a X\nb X\n"


def test_a_wrong_number_of_tags_is_not_written() -> None:
    sentences, layout = read_sentences(write("t.txt", "a b\n"))
    with pytest.raises(ValueError, match="2 tokens but 1 tag"):
        layout.render(next(sentences), ["X"])


@pytest.mark.parametrize(
    ("given", "answers"),
    [
        (["a b\n", "c\n"], ["X X\n", "X\n"]),
        (["a\tA\nb\tB\n\n", "c\tC\n\n"], ["a\tX\nb\tX\n\n", "c\tX\n\n"]),
        (["a b\tA B\n", "c\tC\n"], ["a b\tX X\n", "c\tX\n"]),
        (["-DOCSTART- O\n\na O\n\n", "c O\n\n"], ["-DOCSTART- O\n\na X\n\n", "c X\n\n"]),
        (["# s\n" + word("1", "a", "_") + "\n"] * 2, ["# s\n" + word("1", "a", "X") + "\n"] * 2),
        (['{"tokens": ["a"]}\n'] * 2, ['{"tokens": ["a"], "tags": ["X"]}\n'] * 2),
    ],
)
def test_a_slow_stream_is_answered_sentence_by_sentence(
    given: list[str], answers: list[str]
) -> None:
    code = (
        "import sys\nfrom regard.data.reading.tagged import read_sentences\n"
        "sentences, layout = read_sentences('-')\nfor each in sentences:\n"
        "    print(layout.render(each, ['X'] * len(each.tokens)), end='', flush=True)"
    )
    environment = os.environ | {"PYTHONPATH": str(Path(regard.__file__).parents[1])}
    with subprocess.Popen(
        [sys.executable, "-c", code],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=environment,
    ) as process:
        assert process.stdin and process.stdout
        for lines, answer in zip(given, answers, strict=True):
            process.stdin.write(lines)
            process.stdin.flush()
            assert process.stdout.read(len(answer)) == answer  # before the input has ended
        process.stdin.close()


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        (
            "train.tsv",
            "a b\tX Y\na\tX\na b c d e\tA B C D\n",
            "train.tsv line 3: 5 tokens but 4 tags: expected one tag per token",
        ),
        ("t.tsv", "a b\tX Y\nc\tX\tY\n", "t.tsv line 2: expected 2 tab-separated columns, found 3"),
        ("t.conll", "a X\nb\n\nc Y\n", "t.conll line 2: expected 2 columns, found 1"),
        ("t.conll", "a\tX\nb\t\n\n", "t.conll line 2: empty tag (column 2): expected one tag per"),
        ("t.conll", "a\tX\n\tY\n\n", "t.conll line 2: empty token (column 1)"),
        ("t.conllu", "1\ta\n", "t.conllu line 1: expected 10 tab-separated columns, found 2"),
        (
            "t.conllu",
            word("1", "a", "X") + word("x", "b", "X"),
            "t.conllu line 2: column ID: expected a number such",
        ),
        (
            "t.conllu",
            "# c\n" + word("1", "a", "_") + word("2", "b", "_"),
            "t.conllu line 2: no tags in column UPOS: it is _ for all 2 words\n"
            "help: choose another column with --target-column",
        ),
        ("t.conllu", "# only\n\n", "t.conllu: no sentences in 2 lines"),
        ("t.conllu", "", "t.conllu: the file is empty: expected sentences with one tag per token"),
        ("t.txt", "a\nb\n\nc\n", "t.txt line 1: no tags found"),
        ("t.txt", "It is a text .\nNo tags\nin it anywhere\n", "t.txt line 1: no tags found"),
        ("t.jsonl", '{"tokens": ["a"]}\n', "t.jsonl line 1: expected key 'tags', found tokens"),
        (
            "t.jsonl",
            '{"tokens": "a b", "tags": ["X"]}\n',
            "line 1: 2 tokens but 1 tag: expected one tag",
        ),
        (
            "t.jsonl",
            '{"tokens": [1], "tags": ["X"]}\n',
            "'tokens': expected a string, found a number",
        ),
        ("t.jsonl", '{"tokens": 1, "tags": ["X"]}\n', "'tokens': expected a list of strings"),
        ("t.jsonl", '{"tokens": [""], "tags": ["X"]}\n', "line 1: 'tokens': empty string"),
        ("t.jsonl", '{"tokens": \n', "t.jsonl line 1: invalid JSON"),
    ],
)
def test_misuse_is_explained(name: str, content: str, message: str) -> None:
    assert message in error_of(name, content)


def test_all_bad_lines_are_named() -> None:
    lines = error_of("bad.tsv", "a b\tX Y\n" + "a b\tX\n" * 12).split("\n")
    assert lines[0].startswith("bad.tsv line 2: 2 tokens but 1 tag:")
    assert lines[10] == "and 2 more; 12 bad lines in total"


def test_wrong_columns_are_explained() -> None:
    assert "--target-column: no column 'POS' in CoNLL-U" in error_of(
        "t.conllu", CONLLU, "FORM", "POS"
    )
    assert "did you mean UPOS?" in error_of("t.conllu", CONLLU, "FORM", "upo")
    assert "no column '11' in CoNLL-U" in error_of("t.conllu", CONLLU, "11")
    assert "tokens and tags are the same column (UPOS)" in error_of("t.conllu", CONLLU, "UPOS")
    assert "--target-column: no column '3': expected a number from 1 to 2" in error_of(
        "t.conll", "a X\n\n", None, "3"
    )
    assert "did you mean 'tokens'?" in error_of("t.tsv", FILES["f.tsv"], "token")


def test_bad_lines_of_a_stream_are_named_when_they_come() -> None:
    sentences, _ = read_sentences(write("t.conll", "a X\n\nb\n\n"))
    assert next(sentences).tokens == ("a",)
    with pytest.raises(UserError, match=r"t\.conll line 3: expected 2 columns, found 1"):
        next(sentences)
    with pytest.raises(UserError, match=r"e\.txt: the file is empty: expected sentences"):
        read_sentences(write("e.txt", "\n\n"))
    with pytest.raises(
        UserError, match="--target-column: no column '4': expected a number from 1 to 3"
    ):
        read_sentences(write("t.conll", "a X\n\n"), None, "4")
