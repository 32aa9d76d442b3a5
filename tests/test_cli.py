"""The words of the command line: what each takes, where its answers go, and what they are."""

import gzip
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import corpora
import pytest
import typer
import yaml

import regard
from regard.cli.main_app import app
from regard.config.load import load_config
from regard.config.recipe_files import recipe_names

Command = Callable[..., Any]
PAIRS = [("ab", "ba"), ("abc", "cba"), ("fed", "def"), ("cafe", "efac"), ("bee", "eeb")]
MEASURES = ["exact_match", "ser", "cer", "wer", "bleu", "chrf", "short_bleu", "perplexity"]
TSV = "".join(f"{source}\t{target}\n" for source, target in PAIRS)


@pytest.fixture(autouse=True)
def in_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def once(command: Command, tiny: list[str]) -> Command:
    """`train` of a tiny model for one step."""

    def train(*words: str | Path, **more: Any) -> Any:
        said = command("train", *words, "--steps", "1", *tiny, **more)
        assert said.code == 0, said.err
        return said

    return train


WORDS = {
    "train": """--task --init-from --unlabeled --teacher
        --source --target --dev --dev-source --dev-target --source-column --target-column
        --recipe --set --budget --steps --epochs --seed --out --resume --force --print-config
        --debug""",
    "predict": """--input --output --beam --nbest --temperature --top-k --top-p --max-length --seed
        --threshold --source-column --target-column --batch-size --quantize --json --debug""",
    "evaluate": """--source --target --source-column --target-column --beam --batch-size --quantize
        --json --debug""",
    "score": "--input --batch-size --json --debug",
    "check": "--task --dev --max-length --set --plot --json --debug",
    "recipes": "--debug",
}


def test_every_promised_word_is_there() -> None:
    commands: Any = typer.main.get_command(app)
    for name, options in WORDS.items():
        known = {word for parameter in commands.completed(name).params for word in parameter.opts}
        assert set(options.split()) <= known, name


@pytest.mark.parametrize("words", [[], ["train"], ["predict"], ["score"], ["evaluate"], ["check"]])
def test_help_goes_to_stdout(command: Command, words: list[str]) -> None:
    said = command(*words, "--help")
    assert said.code == 0 and "Usage" in said.out and said.err == ""


# train


def test_the_version(command: Command) -> None:
    assert command("--version") == (0, f"{regard.__version__}\n", "")


def test_training_talks_on_stderr_only(trained: Any) -> None:
    out, err = trained.said.out, trained.said.err
    assert out == ""
    for part in (
        "train 260 pairs",
        "step 30: dev exact_match",
        "done: 60 steps",
        "report: ",
        "next: ",
    ):
        assert part in err
    assert "\x1b" not in err  # no colors, no moving cursor outside a terminal


def test_runs_are_named_after_the_data_and_counted(once: Command) -> None:
    Path("words.tsv").write_text(TSV)
    Path("deep").mkdir()
    Path("deep/words.de").write_text("a b\nb c\nc d\n")
    Path("deep/words.en").write_text("b a\nc b\nd c\n")
    once("words.tsv")
    once("words.tsv")
    assert sorted(os.listdir("runs")) == ["words-1", "words-2"]
    once("--source", "deep/words.de", "--target", "deep/words.en")
    once("-", stdin=TSV)
    with gzip.open("small.jsonl.gz", "wt") as file:
        file.writelines(json.dumps({"source": s, "target": t}) + "\n" for s, t in PAIRS)
    once("small.jsonl.gz")
    assert {"words-3", "standard-input-1", "small-1"} <= set(os.listdir("runs"))


def test_built_in_data_have_their_name(once: Command) -> None:
    once("copy", "--set", "training.validation_examples=10")
    assert os.listdir("runs") == ["copy-1"]


def test_columns_by_number_and_by_name(once: Command) -> None:
    rows = [f"{n}\t{target}\t{source}\n" for n, (source, target) in enumerate(PAIRS)]
    Path("table.tsv").write_text("".join(["id\tlemma\tform\n", *rows]))
    Path("dev.tsv").write_text("".join(["id\tlemma\tform\n", *rows[:2]]))
    columns = [["3", "2"], ["form", "lemma"]]
    for number, (source, target) in enumerate(columns, 1):
        words = ("--source-column", source, "--target-column", target)
        once("table.tsv", "--dev", "dev.tsv", *words)
        samples = Path(f"runs/table-{number}/samples.jsonl").read_text().splitlines()
        shown = {(s["source"], s["references"][0]) for s in map(json.loads, samples)}
        assert shown == set(PAIRS[:2])


def test_two_files_and_two_dev_files(once: Command) -> None:
    sides = {"a.src": ["ab", "abc", "fed"], "a.tgt": ["ba", "cba", "def"]}
    sides |= {"d.src": ["cafe", "cafe", "bee"], "d.tgt": ["efac", "face", "eeb"]}
    for name, lines in sides.items():
        Path(name).write_text("".join(f"{line}\n" for line in lines))
    train = ("--source", "a.src", "--target", "a.tgt")
    once(*train, "--dev-source", "d.src", "--dev-target", "d.tgt", "--out", "run")
    assert json.loads(Path("run/scores.json").read_text())["examples"] == 2  # "cafe" has two


def test_options_become_settings(command: Command) -> None:
    Path("words.tsv").write_text(TSV)
    words = ("--budget", "10m", "--steps", "7", "--epochs", "1.5", "--seed", "3")
    settings = ("--set", "search.beam=2", "--set", "objective.label_smoothing=0.2")
    said = command("train", "words.tsv", *words, *settings, "--print-config")
    assert said.code == 0
    config = yaml.safe_load(said.out)
    wanted = {"budget": 600, "steps": 7, "epochs": 1.5, "seed": 3}
    assert wanted.items() <= config["training"].items()
    assert config["search"]["beam"] == 2 and config["objective"]["label_smoothing"] == 0.2


@pytest.mark.parametrize("recipe", [None, *recipe_names()])
def test_a_printed_config_is_a_recipe_for_the_same_config(
    command: Command, recipe: str | None
) -> None:
    data, *_ = corpora.write_for(load_config(recipe), Path())
    words = ("--recipe", recipe) if recipe else ()
    first = command("train", data, *words, "--steps", "3", "--print-config")
    assert first.code == 0 and ("read as" in first.err or data == "communities")
    assert not Path("runs").exists()  # nothing is written
    Path("again.yaml").write_text(first.out)
    again = command("train", data, "--recipe", "again.yaml", "--print-config")
    assert again.out == first.out
    assert load_config("again.yaml").dump() == first.out


def test_the_printed_config_is_the_one_that_is_trained(
    command: Command, once: Command, tiny: list[str]
) -> None:
    Path("words.tsv").write_text(TSV)
    once("words.tsv", "--out", "run")
    said = command("train", "words.tsv", "--steps", "1", *tiny, "--print-config", "--out", "run")
    assert said.code == 0  # the folder exists, but nothing is to be written
    assert Path("run/config.yaml").read_text() == said.out
    again = command("train", "--resume", "--out", "run", "--print-config")
    assert again.out == said.out


# predict


@pytest.fixture
def answers(trained: Any, words: list[str]) -> list[str]:
    """The model's answers to all words, from Python."""
    return regard.load(trained.run).predict(words)


def lines(texts: list[str]) -> str:
    return "".join(f"{text}\n" for text in texts)


def test_texts_on_the_command_line(
    command: Command, trained: Any, words: list[str], answers: list[str]
) -> None:
    said = command("predict", trained.run, *words[:9])
    assert said == (0, lines(answers[:9]), "")
    assert len(set(answers)) > 100  # the model does state itmething


def test_files_and_streams(
    command: Command, trained: Any, words: list[str], answers: list[str]
) -> None:
    Path("words.txt").write_text(lines(words))
    with gzip.open("words.gz", "wt") as file:
        file.write(lines(words))
    for name in ("words.txt", "words.gz"):
        assert command("predict", trained.run, "--input", name) == (0, lines(answers), "")
    assert command("predict", trained.run, "--input", "-", stdin=lines(words)).out == lines(answers)
    assert command("predict", trained.run, stdin=lines(words)).out == lines(answers)
    without_end = lines(words[:3]).removesuffix("\n")
    assert command("predict", trained.run, stdin=without_end).out == lines(answers[:3])
    Path("empty.txt").touch()
    said = "warning: empty.txt: the input is empty\n"
    assert command("predict", trained.run, "--input", "empty.txt") == (0, "", said)


@pytest.mark.parametrize("size", ["1", "7", "64"])
def test_batch_size_changes_no_answer_and_no_order(
    command: Command, trained: Any, words: list[str], answers: list[str], size: str
) -> None:
    said = command("predict", trained.run, "--batch-size", size, stdin=lines(words[:90]))
    assert said.out == lines(answers[:90])


def test_output_goes_to_a_file(
    command: Command, trained: Any, words: list[str], answers: list[str]
) -> None:
    Path("out.txt").write_text("")
    said = command("predict", trained.run, "--output", "out.txt", stdin=lines(words))
    assert said == (0, "", "")
    assert Path("out.txt").read_text() == lines(answers)
    assert os.listdir() == ["out.txt"]


def test_a_broken_stream_leaves_the_old_output(command: Command, trained: Any) -> None:
    Path("out.txt").write_text("old")
    words = ("predict", trained.run, "--output", "out.txt", "--force")
    said = command(*words, stdin=b"ab\nbc\n\xe4\n")
    assert said.code == 2 and "error: standard input line 3: not UTF-8" in said.err
    assert Path("out.txt").read_text() == "old"
    assert "partial output in out.txt.part" in said.err
    assert len(Path("out.txt.part").read_text().splitlines()) == 2


def test_output_into_a_pipe_leaves_it_a_pipe(command: Command, trained: Any) -> None:
    os.mkfifo("pipe")
    got: list[str] = []
    reader = threading.Thread(target=lambda: got.append(Path("pipe").read_text()), daemon=True)
    reader.start()
    said = command("predict", trained.run, "ab", "--output", "pipe")
    reader.join(120)
    assert said.code == 0 and got == [command("predict", trained.run, "ab").out]
    assert Path("pipe").is_fifo()


def test_output_that_cannot_be_written(command: Command, trained: Any) -> None:
    Path("folder").mkdir()
    for output, reason in (
        ("folder", "expected a file"),
        ("no/out.txt", "the folder no does not exist"),
    ):
        said = command("predict", trained.run, "ab", "--output", output)
        assert said.code == 2 and said.err.startswith(f"error: --output {output}: {reason}")


def test_nbest(command: Command, trained: Any, words: list[str], answers: list[str]) -> None:
    rows = command("predict", trained.run, *words[:5], "--nbest", "3").out.splitlines()
    assert len(rows) == 15
    for place in range(5):
        found = [row.split("\t") for row in rows[3 * place : 3 * place + 3]]
        scores = [float(score) for score, _ in found]
        texts = [text for _, text in found]
        assert scores == sorted(scores, reverse=True) and len(set(texts)) == 3
        assert texts[0] == answers[place]


def test_json_lines(command: Command, trained: Any, words: list[str], answers: list[str]) -> None:
    said = command("predict", trained.run, *words[:4], "--json")
    records = [json.loads(line) for line in said.out.splitlines()]
    assert [record["source"] for record in records] == words[:4]
    assert [record["prediction"] for record in records] == answers[:4]
    assert all(record["score"] < 0 and record.keys() == {*SHORT} for record in records)

    said = command("predict", trained.run, *words[:4], "--json", "--nbest", "2")
    for record, answer in zip(map(json.loads, said.out.splitlines()), answers[:4], strict=True):
        assert record["prediction"] == answer == record["nbest"][0]["text"]
        assert len(record["nbest"]) == 2


SHORT = ("source", "prediction", "score")


def test_beam(command: Command, trained: Any, words: list[str]) -> None:
    model = regard.load(trained.run)
    by_beam = {beam: lines(model.predict(words[:90], beam=beam)) for beam in (1, 2, 9)}
    for beam, expected in by_beam.items():
        said = command("predict", trained.run, "--beam", str(beam), stdin=lines(words[:90]))
        assert said.out == expected
    assert by_beam[1] != by_beam[9]


def test_unknown_tokens_are_counted_and_said(command: Command, trained: Any) -> None:
    said = command("predict", trained.run, "a!b", "ab", "?!", "--json")
    first, second, third = map(json.loads, said.out.splitlines())
    assert first["unknown_tokens"] == ["!"] and third["unknown_tokens"] == ["?", "!"]
    assert "unknown_tokens" not in second
    assert (
        said.err == ("warning: 3 unknown tokens in the input (read as <unk>): '!' '?'\n")
        and said.code == 0
    )


def test_every_line_has_its_answer(command: Command, trained: Any) -> None:
    """Empty lines, carriage returns and odd separators: one line in, one line out."""
    given = "ab\n\n\ufeffab\r\na\u2028b\na\u0085b\nab\n"
    rows = command("predict", trained.run, stdin=given).out.split("\n")
    assert len(rows) == 7 and rows[0] == rows[5] != "" and rows[6] == ""
    assert command("predict", trained.run, stdin="") == (0, "", "")


# evaluate


def test_evaluate_prints_one_json_object(command: Command, trained: Any) -> None:
    said = command("evaluate", trained.run, trained.dev, "--json")
    assert said.code == 0 and said.out.count("\n") == 1
    result = json.loads(said.out)
    assert result.keys() == {"metrics", "examples", "baselines", "details"}
    assert result["examples"] == 40
    assert list(result["metrics"]) == MEASURES
    assert all(isinstance(value, float) for value in result["metrics"].values())


def test_a_budget_has_a_unit(command: Command) -> None:
    said = command("train", "g2p", "--budget", "10")
    assert said.code == 2
    assert "--budget 10: seconds or minutes?" in said.err and "10s, 10m or 10h" in said.err


QUICK = {
    "recipes": 0,
    "predict runs/nope word": 2,
    "evaluate runs/nope test.tsv": 2,
    "train nope.tsv": 2,
    "train g2p --budget 10": 2,
    "check --source nope.txt --target nope.txt": 2,
    "diagnose runs/nope": 2,
    "serve runs/nope": 2,
    # the options that are made from settings are there without torch
    **{f"{name} --help": 0 for name in ("predict", "inspect", "serve", "train", "evaluate")},
}
SLOW = ("torch", "sacrebleu")


def test_help_and_wrong_paths_do_not_wait_for_torch() -> None:
    """All of them in one process, each with its exit code and what it has imported."""
    program = f"""
import sys
from regard.cli import main
for words in sys.argv[1:]:
    sys.argv = ["regard", *words.split()]
    try:
        main()
        code = 0
    except SystemExit as end:
        code = end.code or 0
    print(f"{{words}}: {{code}}", [name for name in {SLOW} if name in sys.modules], file=sys.stderr)
"""
    found = subprocess.run([sys.executable, "-c", program, *QUICK], capture_output=True, text=True)
    ends = [line for line in found.stderr.splitlines() if line.endswith("]")]
    assert ends == [f"{words}: {code} []" for words, code in QUICK.items()], found.stderr


def test_evaluate_shows_the_metrics_in_use(command: Command, trained: Any) -> None:
    """For strings, exact match and symbol errors; the others are named and shown by --all."""
    said = command("evaluate", trained.run, trained.dev)
    names = [row.split()[0] for row in said.out.splitlines()[1:-1]]
    assert names == ["exact_match", "ser"]
    assert f"--all also shows {', '.join(MEASURES[2:])}\n" in said.err
    assert "  dev ser " in trained.said.err and "  dev wer " not in trained.said.err


def test_evaluate_in_words(command: Command, trained: Any) -> None:
    said = command("evaluate", trained.run, trained.dev, "--all")
    assert "--all" not in said.err
    assert said.out.startswith("40 sources, 40 references, beam 5\n")
    *rows, last = said.out.splitlines()[1:]
    assert [row.split()[0] for row in rows] == MEASURES
    assert "95 %" in rows[0]
    assert [row.split()[0] for row in rows if "   baseline: " in row] == MEASURES[:-1]
    assert last.startswith("baseline: affix rules (exact_match ")  # no perplexity
    assert "bleu: nrefs:1|" in said.err and "chrf: nrefs:1|" in said.err


def test_evaluate_takes_data_in_every_form(command: Command, trained: Any) -> None:
    expected = command("evaluate", trained.run, trained.dev, "--json").out
    pairs = [line.split("\t") for line in trained.dev.read_text().splitlines()]
    Path("dev.src").write_text(lines([source for source, _ in pairs]))
    Path("dev.tgt").write_text(lines([target for _, target in pairs]))
    Path("dev.csv").write_text("target,x,source\n" + lines([f"{t},0,{s}" for s, t in pairs]))
    for words in (
        ("--source", "dev.src", "--target", "dev.tgt"),
        ("dev.csv", "--source-column", "3", "--target-column", "1"),
        ("dev.csv", "--source-column", "source", "--target-column", "target"),
    ):
        assert command("evaluate", trained.run, *words, "--json").out == expected
    stdin = trained.dev.read_bytes()
    assert command("evaluate", trained.run, "-", "--json", stdin=stdin).out == expected


def test_evaluate_uses_the_test_part_of_built_in_data(command: Command, trained: Any) -> None:
    said = command("evaluate", trained.run, "reverse", "--beam", "1", "--json")
    assert json.loads(said.out)["examples"] == 500
    assert "test set of reverse: 500 pairs, none of them in the training set" in said.err
    assert "unknown tokens in the input" in said.err  # g to z


# check, recipes


def test_check_says_what_is_in_the_data(command: Command) -> None:
    Path("odd.tsv").write_text(TSV + "ab\tba\ngone\t\nab\tother\n")
    Path("dev.tsv").write_text("ba\tab\n")
    said = command("check", "odd.tsv", "--dev", "dev.tsv")
    assert said.code == 0 and said.err == ""
    assert "warning: 1 pair with an empty target, skipped in training (first: line 7)" in said.out
    assert "warning: 1 duplicate pair (first: line 6)" in said.out
    assert "task.source.tokenizer=char (short texts" in said.out
    Path("words.tsv").write_text(TSV)
    assert "held out by source hash" in command("check", "words.tsv").out


def test_check_as_json_with_a_limit_and_a_dev_file(command: Command) -> None:
    Path("words.tsv").write_text(TSV)
    Path("dev.tsv").write_text("ab\tba\nxy\tyx\n")
    said = command("check", "words.tsv", "--dev", "dev.tsv", "--max-length", "3", "--json")
    found = json.loads(said.out)
    assert (found["pairs"], found["dev_pairs"], found["overlap"]) == (5, 2, 1)
    assert found["limit"] == 3 and found["over_limit"] == 1


def test_recipes_are_listed_with_what_they_are_for(command: Command) -> None:
    said = command("recipes")
    assert said.code == 0 and said.err == ""
    assert [line.split()[0] for line in said.out.splitlines()] == recipe_names()
    assert all(len(line.split()) > 2 for line in said.out.splitlines())


# In a process of its own


def start(*words: str | Path) -> subprocess.Popen[bytes]:
    pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    where = {"PYTHONPATH": str(Path(regard.__file__).parents[1]), "OMP_NUM_THREADS": "1"}
    run = [sys.executable, "-m", "regard", *map(str, words)]
    return subprocess.Popen(run, env=os.environ | where, **pipes)


def test_a_stream_is_answered_line_by_line(
    trained: Any, words: list[str], answers: list[str]
) -> None:
    """Each answer comes before the next line is written; Ctrl-C then ends it without noise."""
    process = start("predict", trained.run)
    assert process.stdin and process.stdout and process.stderr
    for word, answer in zip(words[:5], answers[:5], strict=True):
        process.stdin.write(f"{word}\n".encode())
        process.stdin.flush()
        assert process.stdout.readline() == f"{answer}\n".encode()
    stat = Path(f"/proc/{process.pid}/stat")
    while stat.exists() and stat.read_text().rpartition(")")[2].split()[0] != "S":
        time.sleep(0.005)  # until it waits for the next line
    process.send_signal(signal.SIGINT)
    assert process.wait(120) == 130 and process.stderr.read() == b""


def test_a_reader_that_goes_away_is_no_error(trained: Any) -> None:
    process = start("predict", trained.run)
    assert process.stdin and process.stdout and process.stderr
    process.stdin.write(b"ab\n")
    process.stdin.flush()
    process.stdout.readline()
    process.stdout.close()
    process.stdin.write(b"ab\n")
    process.stdin.flush()
    assert process.wait(120) == 1 and process.stderr.read() == b""
