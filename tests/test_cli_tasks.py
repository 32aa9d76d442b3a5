"""Every task on the command line: train, evaluate, predict, check, and the report."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import corpora
import pytest
import yaml

import regard

Command = Callable[..., Any]
TASKS = ("tag", "classify", "regress", "language-model")
MEASURES = {
    "tag": ["accuracy", "f1", "sentence_accuracy"],
    "classify": ["accuracy", "macro_f1", "ece"],
    "regress": ["r2", "rmse", "mae"],
    "language-model": ["loss", "perplexity", "bits_per_character"],
}
SELECTED = {"tag": "f1", "classify": "accuracy", "regress": "r2", "language-model": "perplexity"}
REACHED = {"tag": ("f1", 95), "classify": ("accuracy", 95), "regress": ("r2", 0.8)}


@pytest.fixture(autouse=True)
def in_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def lines(said: Any) -> list[str]:
    assert said.code == 0, said.err
    return said.out.splitlines()


# train, evaluate, report


@pytest.mark.parametrize("task", TASKS)
def test_evaluate_prints_the_metrics_of_the_end_of_training(
    command: Command, models: Any, task: str
) -> None:
    run, _, dev, said = models(task)
    final = json.loads((run / "scores.json").read_text())
    found = json.loads(command("evaluate", run, dev, "--json").out)
    assert list(found["metrics"]) == MEASURES[task]
    assert found["metrics"] == final["scores"]
    assert found["examples"] == final["examples"] == (1 if task == "language-model" else 30)
    assert found["details"].keys() == final["details"].keys() != set()
    if task in REACHED:
        name, least = REACHED[task]
        assert found["metrics"][name] > least
    assert said.out == "" and all(f"dev {name} " in said.err for name in MEASURES[task])


@pytest.mark.parametrize("task", TASKS)
def test_evaluate_as_text(command: Command, models: Any, task: str) -> None:
    run, _, dev, _ = models(task)
    rows = lines(command("evaluate", run, dev))
    names = [row.split()[0] for row in rows[1:4]]
    assert names[0] == SELECTED[task] and sorted(names) == sorted(MEASURES[task])
    table = {"tag": "label", "classify": "label", "regress": "target"}
    assert any(row.startswith(table.get(task, "")) for row in rows[4:]) or task not in table
    assert ("rows: expected, columns: predicted" in rows) == (task in ("tag", "classify"))


PARTS = {
    "tag": ("<h2>Details</h2>", ">B-PER<", ">PER<", "Confusion matrix"),
    "classify": (
        "<h2>Details</h2>",
        ">good<",
        "Confusion matrix",
        "Confusion matrix",
    ),
    "regress": ("<h2>Details</h2>", "Predicted and expected values"),
    "language-model": ("<h2>Frequencies</h2>", 'class="zipf"'),
}


@pytest.mark.parametrize("task", TASKS)
def test_the_report_has_the_sections_of_its_task(models: Any, task: str) -> None:
    html = (models(task).run / "report.html").read_text("utf-8")
    page = re.sub(r"<script>.*?</script>", "", html, flags=re.DOTALL)  # it has words of all reports
    assert "not finished" not in page and "Traceback" not in page and ">nan<" not in page
    for part in PARTS[task]:
        assert part in page, part
    others = {parts[-1] for parts in PARTS.values()} - set(PARTS[task])
    assert not [part for part in others if part in page]


@pytest.mark.parametrize("task", TASKS)
def test_the_printed_config_is_a_recipe(command: Command, models: Any, task: str) -> None:
    run, train, dev, _ = models(task)
    first = command("train", train, "--dev", dev, *corpora.small(task), "--print-config")
    assert first.out == (run / "config.yaml").read_text()
    assert yaml.safe_load(first.out)["task"]["kind"] == task
    Path("again.yaml").write_text(first.out)
    again = command("train", train, "--dev", dev, "--recipe", "again.yaml", "--print-config")
    assert again.out == first.out and not Path("runs").exists()


# predict


def test_tags_for_words_lines_and_json(command: Command, models: Any) -> None:
    run, sentence = models("tag").run, "Anna Long sees the house in Ulm"
    tags = "B-PER I-PER O O O O B-LOC"
    assert lines(command("predict", run, sentence, "Ben in Rome")) == [tags, "B-PER O B-LOC"]
    given = f"{sentence}\n\nBen in Rome\n"
    Path("in.txt").write_text(given)
    expected = [tags, "", "B-PER O B-LOC"]
    assert lines(command("predict", run, stdin=given)) == expected
    assert lines(command("predict", run, "--input", "in.txt")) == expected
    assert lines(command("predict", run, "--input", "-", stdin=given)) == expected
    (record,) = map(json.loads, lines(command("predict", run, sentence, "--json")))
    assert record["source"] == sentence.split() and record["prediction"] == tags.split()
    assert len(record["confidences"]) == 7 and 0 < record["confidence"] <= 1


def test_conllu_output_changes_only_the_tags(command: Command, tmp_path: Path) -> None:
    Path("train.conllu").write_text(corpora.conllu(60))
    given = corpora.conllu(5, seed=3)
    Path("in.conllu").write_text(re.sub(r"\t(PROPN|VERB|X)\tx", "\t_\tx", given))
    said = command("train", "train.conllu", *corpora.small("tag"), "--out", "run")
    assert said.code == 0 and "skipped: 60 multi-word ranges and empty nodes" in said.err
    found = command("predict", "run", "--input", "in.conllu").out
    assert found == given  # tags, comments and ranges: all as they were before they were removed
    command("predict", "run", "--input", "in.conllu", "--output", "out.conllu")
    assert Path("out.conllu").read_text() == given
    xpos = command("predict", "run", "--input", "in.conllu", "--target-column", "XPOS").out
    assert xpos.splitlines()[2].split("\t")[3:5] == ["_", "PROPN"]


def test_columns_and_tsv_keep_their_format(command: Command, models: Any) -> None:
    run = models("tag").run
    given = corpora.columns(5, seed=4)
    hidden = re.sub(r" (O|[BI]-\w+)\n", " ?\n", given).replace("-X- ?", "-X- O")
    Path("in.conll").write_text(hidden)
    assert command("predict", run, "--input", "in.conll").out == given
    rows = corpora.tag_lines(5, seed=4)
    Path("in.tsv").write_text(rows)
    assert command("predict", run, "--input", "in.tsv").out == rows
    Path("in.jsonl").write_text('{"id": 7, "tokens": ["Anna", "in", "Ulm"]}\n')
    (record,) = map(json.loads, lines(command("predict", run, "--input", "in.jsonl")))
    wanted = {"id": 7, "tokens": ["Anna", "in", "Ulm"], "tags": ["B-PER", "O", "B-LOC"]}
    assert record == wanted


def test_labels_with_probabilities(command: Command, models: Any) -> None:
    run = models("classify").run
    texts = ["old lovely tree", "dull green dog"]
    Path("in.txt").write_text("\n".join(texts))
    for said in (
        command("predict", run, *texts),
        command("predict", run, "--input", "in.txt"),
        command("predict", run, stdin="\n".join(texts)),
    ):
        assert lines(said) == ["good", "bad"]
    first, _ = map(json.loads, lines(command("predict", run, *texts, "--json")))
    assert first["source"] == texts[0] and first["prediction"] == "good"
    assert sum(first["probabilities"].values()) == pytest.approx(1)
    assert next(iter(first["probabilities"])) == "good" and first["confidence"] > 0.5
    rows = [row.split("\t") for row in lines(command("predict", run, texts[0], "--nbest", "3"))]
    assert {row[1] for row in rows} == {"good", "bad", "even"} and rows[0][1] == "good"


def test_multi_label_and_a_threshold(command: Command) -> None:
    rows = [f"{text}\t{label};{text[0]}\n" for text, label in corpora.labeled(120)]
    Path("several.tsv").write_text("".join(rows))
    train = ("train", "several.tsv", *corpora.small("classify"), "--set", "task.label_separator=;")
    assert command(*train, "--out", "run").code == 0
    few, many = (
        lines(command("predict", "run", "lovely tree", "--threshold", at))[0].split(", ")
        for at in ("0.999999", "0.000001")
    )
    assert len(few) < len(many) == len(regard.load("run").task_.labels)
    found = json.loads(command("evaluate", "run", "several.tsv", "--json").out)["metrics"]
    assert {"f1", "macro_f1", "subset_accuracy"} <= found.keys()


def test_the_metric_that_selects_the_best_checkpoint(command: Command, models: Any) -> None:
    train = models("classify").train
    words = ("train", train, *corpora.small("classify"), "--steps", "1", "--out", "run")
    assert command(*words, "--set", "task.metric=macro_f1").code == 0
    assert json.loads(Path("run/run.json").read_text())["metric"] == "macro_f1"


def test_numbers(command: Command, models: Any) -> None:
    run = models("regress").run
    answers = [
        float(row) for row in lines(command("predict", run, "1,2", "1 2", "--", "1;2", "-2, 9"))
    ]
    assert answers[0] == answers[1] == answers[2] > answers[3]
    assert answers[0] == pytest.approx(6, abs=2.5)
    Path("in.csv").write_text("1,2\n-2,9\n")
    said = lines(command("predict", run, "--input", "in.csv"))
    expected = pytest.approx([answers[0], answers[3]], rel=1e-4)  # other batches, other rounding
    assert [float(row) for row in said] == expected
    (record,) = map(json.loads, lines(command("predict", run, "1,2", "--json")))
    assert record.keys() == {"source", "prediction"} and record["source"] == [1.0, 2.0]
    assert record["prediction"] == pytest.approx(answers[0], rel=1e-4)


def test_numbers_for_texts_are_numbers_in_json(command: Command) -> None:
    rows = [f"{text}\t{len(text)}\t{text.count('e')}\n" for text, _ in corpora.labeled(60)]
    Path("texts.tsv").write_text("".join(rows))
    words = ("train", "texts.tsv", *corpora.small("regress"), "--target-column", "2,3")
    assert command(*words, "--steps", "3", "--out", "run").code == 0
    (record,) = map(json.loads, lines(command("predict", "run", "the tree", "--json")))
    assert [type(value) for value in record["prediction"]] == [float, float]
    assert len(lines(command("predict", "run", "the tree"))[0].split("\t")) == 2


def test_linear_regression_is_solved_in_one_step(command: Command, models: Any) -> None:
    _, train, dev, _ = models("regress")
    words = ("--task", "regress", "--set", "model.encoder.kind=linear", "--out", "run")
    said = command("train", train, "--dev", dev, *words)
    assert "training.optimizer.kind=closed_form (this model has a closed-form solution)" in said.err
    found = json.loads(command("evaluate", "run", dev, "--json").out)["metrics"]
    assert found["r2"] == pytest.approx(1, abs=1e-6)


# check


@pytest.mark.parametrize("task", TASKS)
def test_check(command: Command, models: Any, task: str) -> None:
    _, train, dev, _ = models(task)
    rows = lines(command("check", train, "--task", task, "--dev", dev))
    assert rows[0].startswith("read as") and any(row.startswith("train ") for row in rows)
    found = json.loads(command("check", train, "--task", task, "--dev", dev, "--json").out)
    assert found["notes"] and isinstance(found["warnings"], list)
    assert not Path("runs").exists()


def test_check_plots_zipf(command: Command, models: Any) -> None:
    said = command("check", models("language-model").train, "--task", "language-model", "--plot")
    assert said.code == 2  # a file is missing
    words = ("check", models("language-model").train, "--task", "language-model")
    said = command(*words, "--plot", "zipf.svg")
    assert said.code == 0 and "written: zipf.svg" in said.err
    drawn = Path("zipf.svg").read_text("utf-8")
    assert drawn.lstrip().startswith("<svg") and drawn.rstrip().endswith("</svg>")


def test_evaluation_reads_the_columns_that_were_trained_on(
    command: Command, tmp_path: Path
) -> None:
    rows = [f"{label}\tx\t{text}\n" for text, label in corpora.labeled(60)]
    data = tmp_path / "turned.tsv"
    data.write_text("".join(rows))
    columns = ("--source-column", "3", "--target-column", "1")
    run = tmp_path / "run"
    said = command(
        "train", data, "--dev", data, *columns, "--task", "classify", "--out", run, "--steps", "3"
    )
    assert said.code == 0, said.err
    with_them, without = (command("evaluate", run, data, "--json", *c) for c in (columns, ()))
    assert with_them.code == 0 and json.loads(with_them.out) == json.loads(without.out)
