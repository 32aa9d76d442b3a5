"""Search options and constraints of `predict`, and `score`."""

import json
import math
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import typer

import regard
from regard.cli.main_app import app
from regard.core.errors import UserError
from regard.search import Argmax, Beam, Sample
from regard.tasks.values import Constraints

Command = Callable[..., Any]


@pytest.fixture(autouse=True)
def in_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.fixture(scope="module")
def model(trained: Any) -> Any:
    return regard.load(trained.run)


def records(said: Any) -> list[dict[str, Any]]:
    assert said.code == 0, said.err
    return [json.loads(line) for line in said.out.splitlines()]


def test_every_setting_of_a_search_is_an_option() -> None:
    command = typer.main.get_command(app).completed("predict")  # type: ignore[attr-defined]
    known = {word for parameter in command.params for word in parameter.opts}
    for search in (Beam, Sample, Argmax):
        options = {f"--{name.replace('_', '-')}" for name in search.model_fields}
        assert options - {"--kind"} <= known
    groups = {getattr(parameter, "rich_help_panel", None) for parameter in command.params}
    assert len(groups) >= 4


CHANGES: list[tuple[tuple[str, ...], dict[str, Any]]] = [
    (("--length-penalty", "0"), {"length_penalty": 0}),
    (("--length-norm", "none"), {"length_norm": "none"}),
    (("--stopping", "first", "--beam", "3"), {"stopping": "first", "beam": 3}),
    (("--beam", "4", "--beam-groups", "2"), {"beam": 4, "beam_groups": 2}),
    (("--max-length", "2"), {"max_length": 2}),
    (("--min-length", "7", "--no-repeat-ngram", "1"), {"min_length": 7, "no_repeat_ngram": 1}),
    (
        ("--set", "search.beam=1", "--set", "search.coverage_penalty=0.2"),
        {"beam": 1, "coverage_penalty": 0.2},
    ),
    (("--sample", "--seed", "3"), {"kind": "sample", "seed": 3}),
    (
        ("--sample", "--top-k", "3", "--temperature", "2", "--max-length", "4"),
        {"kind": "sample", "top_k": 3, "temperature": 2, "max_length": 4},
    ),
]


@pytest.mark.parametrize(("given", "search"), CHANGES)
def test_options_are_the_settings_of_python(
    command: Command, trained: Any, model: Any, given: Any, search: Any
) -> None:
    sources = ["abc", "fed", "cafe", "bee", "dada"]
    expected = model.predict(sources, **search)
    said = command("predict", trained.run, *sources, *given)
    assert said.code == 0 and said.out.splitlines() == expected


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (("--temperature", "2"), "temperature: unknown search setting of a transduce model"),
        (("--temperature", "2"), "it is a setting of --sample, or search.kind=sample"),
        (
            ("--beam", "5", "--beam-groups", "2"),
            "search: beam 5 is not a multiple of beam_groups 2",
        ),
        (("--set", "training.lr=1"), "--set training: only search.* can be changed after training"),
        (("--set", "search.bean=1"), "bean: unknown search setting of a transduce model"),
        (("--stopping", "never"), "stopping: Input should be "),
        (("--token-scores",), "--token-scores, --alignments: require --json"),
        (("--alternatives", "2", "--nbest", "2"), "--alternatives: cannot be combined"),
        (("--input-json",), "--input-json: cannot be combined with texts"),
        (("--require", "z!"), "require: 'z!' contains tokens outside the target vocabulary"),
        (("--require", "a", "--ban", "a"), "require: 'a' is also banned"),
        (
            ("--sample", "--min-length", "5", "--max-length", "4"),
            "search: min_length 5 is above max_length 4",
        ),
    ],
)
def test_invalid_options_are_errors(
    command: Command, trained: Any, given: Any, message: str
) -> None:
    said = command("predict", trained.run, "ab", *given)
    assert said.code == 2 and message in said.err and said.out == ""


def test_constraints_need_task_transduce(command: Command, models: Any) -> None:
    said = command("predict", models("classify").run, "a", "--require", "b")
    assert said.code == 2 and "only supported for task transduce" in said.err


def test_constraints_for_all(command: Command, trained: Any) -> None:
    def predictions(*words: str) -> list[str]:
        return command("predict", trained.run, "abc", "fed", "aa", *words).out.splitlines()

    assert all(text.startswith("dad") for text in predictions("--prefix", "dad"))
    assert all(
        "cf" in text and "ee" in text for text in predictions("--require", "cf", "--require", "ee")
    )
    plain = predictions()
    assert any("a" in text for text in plain)
    assert not any("a" in text for text in predictions("--ban", "a"))


def test_constraints_in_json_lines(command: Command, trained: Any, model: Any) -> None:
    rows = [
        {"source": "abc"},
        {"source": "abc", "prefix": "f"},
        {"source": "fed", "require": ["aa"], "ban": ["f"]},
    ]
    Path("in.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    said = command("predict", trained.run, "--input", "in.jsonl", "--input-json", "--ban", "d")
    constraints = [
        Constraints(ban=("d",)),
        Constraints("f", (), ("d",)),
        Constraints("", ("aa",), ("d", "f")),
    ]
    assert said.out.splitlines() == model.predict(["abc", "abc", "fed"], constraints=constraints)
    assert said.out.splitlines()[1].startswith("f") and "aa" in said.out.splitlines()[2]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("abc", "line 1: invalid JSON"),
        ("", "line 1: invalid JSON"),
        ('{"prefix": "a"}', "line 1: the key 'source' is missing"),
        ('{"source": "a", "want": 1}', "line 1: expected the keys source, prefix, require, ban"),
        (
            '{"source": "a", "require": "b"}',
            "line 1: 'require': expected a list of strings, found a string",
        ),
        ('{"source": "a", "prefix": "!"}', "line 1: prefix: '!' contains tokens outside"),
    ],
)
def test_json_lines_that_cannot_be_read(
    command: Command, trained: Any, line: str, message: str
) -> None:
    said = command("predict", trained.run, "--input-json", stdin=line + "\n")
    assert said.code == 2 and f"standard input {message}" in said.err


IMPOSSIBLE = {"source": "abc", "require": ["ab"], "ban": ["b"]}


@pytest.mark.parametrize("given", [(), ("--alternatives", "2"), ("--nbest", "2")])
def test_a_required_word_that_cannot_appear_is_an_error_with_its_line(
    command: Command, trained: Any, given: tuple[str, ...]
) -> None:
    rows = [{"source": "abcdef"}, {"source": "a"}, IMPOSSIBLE, {"source": "abcd"}]
    lines = "".join(json.dumps(row) + "\n" for row in rows)
    said = command("predict", trained.run, "--input-json", *given, stdin=lines)
    assert said.code == 2
    assert "standard input line 3: no hypothesis contains all required words" in said.err
    assert "help: drop a required word or a ban, or increase --beam" in said.err
    said = command("predict", trained.run, "fed", "abc", "--require", "ab", "--ban", "b", *given)
    assert said.code == 2 and re.search("'(fed|abc)': no hypothesis contains all", said.err)


def test_the_predictions_before_such_a_line_are_kept(command: Command, trained: Any) -> None:
    """The first window of 256 lines is written; the command resumes after the line is fixed."""
    rows = [{"source": "ab"}] * 260
    words = ("predict", trained.run, "--input", "in.jsonl", "--input-json", "--output", "out")
    for row in (IMPOSSIBLE, {"source": "abc"}):
        rows[258] = row
        Path("in.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
        said = command(*words)
        if row is IMPOSSIBLE:
            assert said.code == 2 and "in.jsonl line 259: no hypothesis" in said.err
    assert said.code == 0 and "resuming: 256 sources already done" in said.err
    assert len(Path("out").read_text().splitlines()) == 260


def test_constraints_that_cannot_be_met_name_the_source(model: Any) -> None:
    constraints = [Constraints(), Constraints(), Constraints(require=("ab",), ban=("b",))]
    with pytest.raises(UserError, match="source 3: no hypothesis contains all required words"):
        model.predict(["abcdef", "a", "abc"], constraints=constraints)


def test_json_has_tokens_and_alignments(command: Command, trained: Any, model: Any) -> None:
    words = ("predict", trained.run, "abc", "--json", "--nbest", "2")
    (record,) = records(command(*words, "--token-scores"))
    (found,) = model.predict_detailed(["abc"], nbest=2)
    for shown, one in zip([record, *record["nbest"]], [found, *found.nbest], strict=True):
        assert shown["tokens"] == [*one.tokens, "<eos>"]
        assert shown["token_logprobs"] == pytest.approx(one.token_logprobs, abs=1e-5)
    (record,) = records(command(*words, "--alignments"))
    assert record["source_tokens"] == ["a", "b", "c", "<eos>"]
    assert len(record["alignment"]) == len(record["tokens"])
    for row in record["alignment"]:
        assert len(row) == 4 and sum(row) == pytest.approx(1, abs=1e-3)


def test_alternatives_after_a_prefix(command: Command, trained: Any) -> None:
    words = ("predict", trained.run, "abc", "--prefix", "c", "--alternatives", "3")
    rows = [line.split("\t") for line in command(*words).out.splitlines()]
    (record,) = records(command(*words, "--json"))
    assert len(rows) == 3 and record["prefix"] == "c"
    probabilities = [float(p) for p, _, _ in rows]
    assert probabilities == sorted(probabilities, reverse=True) and sum(probabilities) <= 1
    for (p, token, text), other in zip(rows, record["alternatives"], strict=True):
        assert (token, text) == (other["token"], other["text"])
        assert float(p) == pytest.approx(other["probability"], abs=1e-4)
        assert text == "c" if token == "<eos>" else text.startswith("c" + token)


def test_ensemble(command: Command, trained: Any, models: Any) -> None:
    alone = command("predict", trained.run, "abc", "fed", "--json")
    twice = command("predict", trained.run, "abc", "fed", "--json", "--ensemble", trained.run)
    for one, two in zip(records(alone), records(twice), strict=True):
        assert one["prediction"] == two["prediction"]
        assert one["score"] == pytest.approx(two["score"], abs=1e-4)
    said = command("predict", trained.run, "ab", "--ensemble", models("tag").run)
    assert said.code == 2 and "only sequence-to-sequence models" in said.err
    said = command("predict", trained.run, "ab", "--ensemble", models("transduce").run)
    assert said.code == 2 and "its vocabularies differ" in said.err


# score


def test_given_targets_have_the_scores_of_predictions(
    command: Command, trained: Any, model: Any
) -> None:
    sources = ["abc", "fed", "cafe", ""]
    found = model.predict_detailed(sources)
    pairs = [(source, one.text) for source, one in zip(sources, found, strict=True)]
    for row, one in zip(model.log_likelihoods(pairs), found, strict=True):
        assert row["token_logprobs"] == pytest.approx(one.token_logprobs, abs=1e-4)
        assert row["log_probability"] == pytest.approx(sum(one.token_logprobs), abs=1e-4)
        mean = row["log_probability"] / len(one.token_logprobs)
        assert row["perplexity"] == pytest.approx(math.exp(-mean))
    Path("in.tsv").write_text("".join(f"{source}\t{target}\n" for source, target in pairs))
    Path("a").write_text("".join(f"{source}\n" for source, _ in pairs))
    Path("b").write_text("".join(f"{target}\n" for _, target in pairs))
    first = command("score", trained.run, "--input", "in.tsv", "--json")
    for row, expected in zip(records(first), model.log_likelihoods(pairs), strict=True):
        assert row["log_probability"] == pytest.approx(expected["log_probability"], abs=1e-5)
        assert row["tokens"] == expected["tokens"]
        rounded = [round(score, 6) for score in expected["token_logprobs"]]
        assert row["token_logprobs"] == rounded
    for words in (("--source", "a", "--target", "b"), ("abc\t" + pairs[0][1],)):
        said = command("score", trained.run, *words, "--json", "--batch-size", "2")
        assert records(said)[0]["target"] == pairs[0][1]
    lines = command("score", trained.run, "--source", "a", "--target", "b").out.splitlines()
    assert lines[0] == "perplexity\tlog_probability\tsource\ttarget" and len(lines) == 5
    assert lines[1].split("\t")[2:] == list(pairs[0])


def test_invalid_pairs(command: Command, trained: Any, models: Any) -> None:
    Path("a").write_text("ab\nbc\n")
    Path("b").write_text("ba\n")
    for words, message in (
        (("--source", "a", "--target", "b"), "b: has 1 lines, a has more"),
        (("--source", "a"), "--source and --target must be used together"),
        (("--input", "a"), "a line 1: expected source TAB target, found 0 tabs"),
        (
            ("--source", "a", "--target", "b", "--input", "a"),
            "cannot be combined with texts or --input",
        ),
    ):
        said = command("score", trained.run, *words)
        assert said.code == 2 and message in said.err
    assert "nothing to score" in command("score", trained.run, stdin="").err
    said = command("score", models("classify").run, "a\tb")
    assert "score is only supported for language-model and transduce models" in said.err


def test_one_constraint_per_source(model: Any) -> None:
    with pytest.raises(UserError, match=r"constraints: expected one per source \(2\), found 1"):
        model.predict(["ab", "bc"], constraints=[Constraints()])
