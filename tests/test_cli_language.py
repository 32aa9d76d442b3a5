"""Language models on the command line: generation, scoring, n-grams, masked models."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import corpora
import pytest

import regard
from regard.inference.prediction.output_lines import one_line

Command = Callable[..., Any]
LIKELY, NOISE = "Anna Long sees the dog in Ulm.", "gmU ni .ehtL gosAd ees gonnal"


@pytest.fixture(autouse=True)
def in_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def run(models: Any) -> Path:
    return models("language-model").run


def test_temperature_0_is_the_same_for_every_seed(command: Command, run: Path) -> None:
    greedy = ("predict", run, "Anna", "--temperature", "0")
    texts = {command(*greedy, *more).out for more in ((), ("--seed", "2"), ("--seed", "3"))}
    assert len(texts) == 1 and texts.pop().startswith("Anna")


def test_a_seed_repeats_and_another_one_does_not(command: Command, run: Path) -> None:
    texts = [command("predict", run, "Anna", "--seed", seed).out for seed in ("1", "1", "2")]
    assert texts[0] == texts[1] != texts[2]


def test_length_is_a_limit(command: Command, run: Path) -> None:
    long, short = (command("predict", run, "Anna", "--max-length", n).out for n in ("20", "5"))
    assert len(short) <= len("Anna") + 5 + 1 and long.startswith(short.removesuffix("\n"))


def test_nbest_gives_several_texts_and_no_scores(command: Command, run: Path) -> None:
    words = ("--nbest", "3", "--max-length", "12", "--seed", "4")
    shown = command("predict", run, "Anna", *words).out
    assert len(set(shown.splitlines())) >= 3 and shown.count("Anna") >= 3 and "\t" not in shown
    (record,) = map(json.loads, command("predict", run, "Anna", *words, "--json").out.splitlines())
    texts = [other["text"] for other in record["nbest"]]
    assert "".join(f"{text}\n" for text in texts) == shown
    lines = "".join(f"{one_line(text)}\n" for text in texts)
    assert command("predict", run, *words, stdin="Anna\n").out == lines
    assert record["prediction"] == texts[0] and record.keys() == {"source", "prediction", "nbest"}


def test_continuations_do_not_depend_on_input_and_output(command: Command, run: Path) -> None:
    """Streamed to the screen, to a file, from a file, from a pipe, from Python."""
    texts = regard.load(run).predict(["Anna", "Ben"])
    assert command("predict", run, "Anna", "Ben").out == "".join(f"{text}\n" for text in texts)
    lines = "".join(f"{one_line(text)}\n" for text in texts)
    Path("in.txt").write_text("Anna\nBen\n")
    assert command("predict", run, "--input", "in.txt").out == lines
    assert command("predict", run, stdin="Anna\nBen\n").out == lines
    command("predict", run, "Anna", "Ben", "--output", "out.txt")
    assert Path("out.txt").read_text() == lines


def test_top_k_1_is_greedy(command: Command, run: Path) -> None:
    greedy = command("predict", run, "Anna", "--temperature", "0").out
    assert command("predict", run, "Anna", "--top-k", "1").out == greedy
    assert command("predict", run, "Anna", "--top-p", "0").out == greedy


def test_a_likely_text_scores_better_than_noise(command: Command, run: Path) -> None:
    said = command("score", run, LIKELY, NOISE)
    head, *rows = [row.split("\t") for row in said.out.splitlines()]
    assert head == ["perplexity", "bits_per_character", "nats", "text"]
    assert [row[3] for row in rows] == [LIKELY, NOISE] and said.err == ""
    assert float(rows[0][0]) < float(rows[1][0]) and float(rows[0][1]) < float(rows[1][1])
    Path("in.txt").write_text(f"{LIKELY}\n\n{NOISE}\n")  # a blank line is no text
    assert command("score", run, "--input", "in.txt").out == said.out
    assert command("score", run, stdin=f"{LIKELY}\n{NOISE}\n").out == said.out
    records = [json.loads(row) for row in command("score", run, LIKELY, "--json").out.splitlines()]
    assert records[0]["characters"] == len(LIKELY) == records[0]["tokens"]
    assert f"{records[0]['perplexity']:.4f}" == rows[0][0]


def test_the_score_of_a_text_is_that_of_its_evaluation(command: Command, run: Path) -> None:
    Path("text.txt").write_text(LIKELY)
    measured = json.loads(command("evaluate", run, "text.txt", "--json").out)["metrics"]
    (scored,) = map(json.loads, command("score", run, LIKELY, "--json").out.splitlines())
    assert measured == {name: scored[name] for name in measured}


def test_unknown_tokens_are_a_warning(command: Command, run: Path) -> None:
    expected = "warning: 1 unknown token in the input (read as <unk>): '\u00c4'\n"
    assert command("predict", run, "\u00c4nna", "--max-length", "3").err == expected
    assert command("score", run, "\u00c4nna").err == expected
    assert command("predict", run, "--max-length", "3", stdin="\u00c4nna\n").err == expected


@pytest.mark.parametrize("decoder", ["transformer", "recurrent", "window"])
def test_every_decoder_generates(command: Command, models: Any, decoder: str) -> None:
    _, train, dev, _ = models("language-model")
    words = ("--set", f"model.decoder.kind={decoder}", "--steps", "3", "--out", "run")
    said = command("train", train, "--dev", dev, *corpora.small("language-model"), *words)
    assert said.code == 0, said.err
    said = command("predict", "run", LIKELY * 3, "--max-length", "40")  # longer than the context
    assert said.code == 0 and said.out.startswith(LIKELY)
    evaluated = command("evaluate", "run", dev, "--json").out
    assert (
        json.loads(evaluated)["metrics"]
        == json.loads(Path("run/scores.json").read_text())["scores"]
    )


def test_an_ngram_is_counted_in_one_step(command: Command, models: Any) -> None:
    _, train, dev, _ = models("language-model")
    task = ("--task", "language-model", "--set", "model.kind=ngram", "--set", "model.order=4")
    said = command("train", train, "--dev", dev, *task, "--out", "run")
    assert said.code == 0 and "done: 1 steps" in said.err
    assert "training.optimizer.kind=closed_form (this model has a closed-form solution)" in said.err
    found = json.loads(command("evaluate", "run", dev, "--json").out)["metrics"]
    assert 1 < found["perplexity"] < 3
    text = command("predict", "run", "Anna", "--max-length", "20").out
    assert text.startswith("Anna") and len(text) <= 25
    rows = command("score", "run", LIKELY, NOISE).out.splitlines()[1:]
    assert float(rows[0].split("\t")[0]) < float(rows[1].split("\t")[0])
    again = command("train", "--resume", "--out", "run")
    assert again.err == "run: already finished (1 steps)\n"


def test_documents_are_scored_one_by_one(command: Command, models: Any) -> None:
    Path("lines.txt").write_text(corpora.running(40))
    task = (*corpora.small("language-model"), "--set", "task.document_unit=line", "--steps", "3")
    assert command("train", "lines.txt", *task, "--out", "run").code == 0
    said = command("evaluate", "run", "lines.txt")
    assert said.out.startswith("40 documents\n") and "document" in said.out.splitlines()[6]
    details = json.loads(command("evaluate", "run", "lines.txt", "--json").out)["details"]
    assert len(details["documents"]) == 40


def test_a_masked_model_does_not_generate(command: Command, models: Any) -> None:
    _, train, dev, _ = models("language-model")
    words = ("--task", "language-model", "--set", "model.kind=masked", "--steps", "3")
    said = command("train", train, "--dev", dev, *words, "--out", "run")
    assert said.code == 0, said.err
    measured = json.loads(command("evaluate", "run", dev, "--json").out)["metrics"]
    assert list(measured) == ["loss", "perplexity"]
    for word in ("predict", "score"):
        said = command(word, "run", "Anna")
        assert said.code == 2 and said.out == ""
        assert "error: a masked language model cannot generate or score text" in said.err
