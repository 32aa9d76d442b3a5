"""Synthesis from the command line, in Python and over HTTP, and what is an error."""

import base64
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import corpora
import numpy as np
import pytest
from starlette.testclient import TestClient

import regard
from regard.core.errors import UserError
from regard.data.reading.sound_files import decode_sound, read_sound
from regard.search.frame_search import Expand
from regard.serve.app import build_app
from regard.serve.settings import ServeSettings

Command = Callable[..., Any]
TURNED = ("--source-column", "word", "--target-column", "file")
SMALL = (
    *("--set", "model.encoder.width=16", "--set", "model.encoder.layers=1"),
    *("--set", "model.decoder.width=16", "--set", "training.lr=0.02"),
    *("--set", "training.batch_tokens=400"),
)


def data(folder: Path, count: int, first: int = 0) -> Path:
    """Tones that rise or fall, what they are called, and two speakers."""
    table = corpora.spoken(folder, count, first)
    header, *rows = table.read_text().splitlines()
    found = [f"{row}\t{('ann', 'bo', 'bo')[n % 3]}" for n, row in enumerate(rows)]
    table.write_text("\n".join([f"{header}\tspeaker", *found]) + "\n")
    return table


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory, command: Command) -> Path:
    """A model of tones by two speakers, hardly trained."""
    folder = tmp_path_factory.mktemp("synthesis")
    train, dev = data(folder, 12), data(folder, 4, first=12)
    words = ["--task", "synthesize", *TURNED, "--speaker-column", "speaker", *SMALL]
    said = command("train", train, "--dev", dev, *words, "--steps", "4", "--out", folder / "run")
    assert said.code == 0, said.err
    return folder / "run"


@pytest.fixture(autouse=True)
def in_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_predict_writes_files(command: Command, run: Path) -> None:
    said = command("predict", run, "up", "down", "up", "--output", "made")
    assert said.code == 0, said.err
    names = ["made/up.wav", "made/down.wav", "made/up-2.wav"]
    assert said.out == "".join(
        f"{n.split('/')[1].split('.')[0].split('-')[0]}\t{n}\n" for n in names
    )
    assert "note: speaker bo, the most common one; --speaker selects ann" in said.err
    sounds = [read_sound(name) for name in names]
    assert all(one.rate == 8000 and one.seconds > 0.02 for one in sounds)
    assert alike(sounds[0], sounds[2])
    assert not list(Path("made").glob(".*"))  # no temporary files
    said = command("predict", run, "up", "--output", "one.wav", "--speaker", "ann", "--json")
    assert "note:" not in said.err and json.loads(said.out)["file"] == "one.wav"
    assert Path("one.wav").exists()
    said = command("predict", run, "up", "--output", "made")
    assert said.code == 2 and "made/up.wav: the file exists" in said.err
    assert command("predict", run, "up", "--output", "made", "--force").code == 0
    Path("texts.txt").write_text("up\ndown\n")
    said = command("predict", run, "--input", "texts.txt", "--output", "more")
    assert said.out == "up\tmore/up.wav\ndown\tmore/down.wav\n"


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["up"], "no output: this model makes sounds"),
        (["up", "--output", "a.mp3"], "a.mp3: sounds are written as WAV"),
        (["up", "down", "--output", "a.wav"], "a.wav: one file, but several texts"),
        (
            ["up", "--output", "x", "--speaker", "cy"],
            "speaker cy: unknown; the model knows bo, ann",
        ),
        (["u7", "--output", "x"], "'u7': unknown tokens 7: the model can say"),
        ([" ", "--output", "x"], "expected a text, found nothing"),
        (["up", "--output", "x", "--speed", "2"], "speed: unknown search setting"),
        (["up", "--output", "x", "--nbest", "2"], "--nbest: not supported for task synthesize"),
        (["up", "--output", "x", "--prefix", "a"], "found synthesize"),
        (["up", "--output", "x", "--shard", "1/2"], "--shard: not supported"),
    ],
)
def test_what_predict_rejects(command: Command, run: Path, words: list[str], expected: str) -> None:
    said = command("predict", run, *words)
    assert said.code == 2 and expected in said.err, said.err
    assert not list(Path().glob("*/*.wav"))


def test_evaluate_with_a_baseline(command: Command, run: Path) -> None:
    table = data(Path(), 4, first=20)
    speaker = ("--speaker-column", "speaker")
    found = json.loads(command("evaluate", run, table, *TURNED, *speaker, "--json").out)
    assert set(found["metrics"]) == {"mcd", "duration_error", "stop_errors"}
    assert found["baselines"][0]["name"] == "mean frame" and found["examples"] == 4
    words = ("train", table, "--task", "classify", *corpora.SPOKEN, "--dev", table, *SMALL[:4])
    assert command(*words, "--steps", "2", "--out", "labels").code == 0
    said = command("evaluate", run, table, *TURNED, *speaker, "--recognizer", "labels", "--json")
    assert 0 <= json.loads(said.out)["metrics"]["recognized"] <= 100
    said = command("evaluate", "labels", table, *corpora.SPOKEN, "--recognizer", "labels")
    assert said.code == 2 and "--recognizer: only supported for models that make sounds" in said.err
    other = table.with_name("other.tsv")
    other.write_text(table.read_text().replace("up\t", "high\t").replace("down\t", "low\t"))
    said = command("evaluate", run, other, *TURNED, *speaker, "--recognizer", "labels")
    assert said.code == 2, said.err
    assert "its labels are down, up: expected the texts of the data, high, low" in said.err
    other.write_text(table.read_text().replace("up\t", "high\t"))
    said = command("evaluate", run, other, *TURNED, *speaker, "--recognizer", "labels")
    assert said.code == 0 and "1 text not among its labels: high" in said.err, said.err
    said = command("evaluate", run, table, *TURNED, *speaker, "--recognizer", str(run))
    assert said.code == 2 and "expected a model that reads sounds, this one reads texts" in said.err


def test_check_prints_durations(command: Command) -> None:
    table = data(Path(), 6)
    words = ("check", table, "--task", "synthesize", *TURNED, "--speaker-column", "speaker")
    said = command(*words, "--dev", data(Path(), 2, first=6))
    assert said.code == 0, said.err
    for line in ("train sounds             6", "distinct texts           2", "seconds  "):
        assert line in said.out
    assert "speakers                 bo (5), ann (3)" in said.out
    assert "metrics do not show" not in said.out  # speakers of dev must be known


def alike(one: Any, other: Any) -> bool:
    """Whether two sounds differ by rounding at most: rows of a batch are not added in one order."""
    both = (x.samples.astype(np.int32) for x in (one, other))
    return len(one) == len(other) and bool(np.abs(next(both) - next(both)).max() <= 8)


def rejected(command: Command, table: str, *words: str) -> str:
    """The error of training on a table."""
    Path("bad.tsv").write_text(table)
    said = command("train", "bad.tsv", "--task", "synthesize", *(words or TURNED), "--out", "bad")
    assert said.code == 2, said.out
    assert not Path("bad").exists()
    return str(said.err)


def test_errors_of_the_data(command: Command) -> None:
    data(Path(), 2)
    silent = corpora.wav(np.zeros(4000, np.int16))
    Path("silent.wav").write_bytes(silent)
    Path("short.wav").write_bytes(corpora.wav(np.arange(50, dtype=np.int16)))
    found = rejected(command, "word\tfile\nup\tnone.wav\n")
    assert "bad.tsv line 2: none.wav: no such file" in found
    assert "the target column names sound files" in found
    found = rejected(command, "word\tfile\nup\tbad.tsv\n")
    assert "bad.tsv line 2: bad.tsv: expected a sound" in found
    found = rejected(command, "word\tfile\nup\tsilent.wav\n")
    assert "bad.tsv line 2: silent.wav: the recording is silent" in found
    found = rejected(command, "word\tfile\nup\tshort.wav\n")
    assert "recording of 6 ms: expected at least one window of 25 ms" in found
    found = rejected(command, "word\tfile\n \t0.wav\nup\t1.wav\n")
    assert "bad.tsv line 2: expected a text, found nothing" in found
    found = rejected(command, "word\tfile\nup\t0.wav\ndown\t1.wav\n", *corpora.SPOKEN)
    assert "the sources are sound files: --task synthesize reads texts and writes sounds" in found
    assert "--source-column TEXT --target-column FILE" in found
    long = "up" * 200
    words = (*TURNED, "--set", "model.decoder.kind=parallel")
    found = rejected(command, f"word\tfile\n{long}\t0.wav\n{long}\t1.wav\n", *words)
    assert "shorter than their texts: each token needs a frame" in found


def test_what_a_model_of_sounds_does_not_do(command: Command, run: Path) -> None:
    for words, expected in (
        (
            ("inspect", run, "up"),
            "inspection is not supported for task synthesize\nhelp: use regard",
        ),
        (("export", run, "--to", "onnx", "--out", "x"), "synthesize models cannot be exported"),
        (("diagnose", run), "task synthesize"),
    ):
        said = command(*words)
        assert said.code == 2 and expected in said.err, (words, said.err)


def test_the_figure(command: Command, run: Path) -> None:
    for words in ((), ("--text", "up", "--set", "search.speaker=ann"), ("--text", "dw")):
        said = command("plot", "synthesis", run, *words, "--out", "a.png", "--force")
        assert said.code == 0, said.err
    assert Path("a.png").stat().st_size > 5_000


def test_python(tmp_path: Path) -> None:
    data(tmp_path, 8)
    texts = ["down", "up"] * 4
    files = [tmp_path / f"{n}.wav" for n in range(8)]
    settings = {"model.decoder.kind": "parallel", "model.encoder.width": 16}
    settings |= {"model.decoder.width": 16, "model.decoder.heads": 2}
    model = regard.Synthesizer(steps=2, settings=settings)
    model.fit(texts, files, speakers=["a", "b"] * 4, dev=(texts[:2], files[:2], ["a", "b"]))
    (sound,) = model.predict(["up"], speaker="b", speed=2.0)
    assert sound.rate == 8000 and sound.samples.dtype == np.int16 and len(sound) > 0
    sound.save(tmp_path / "made.wav")
    assert np.array_equal(read_sound(str(tmp_path / "made.wav")).samples, sound.samples)
    assert set(model.evaluate(texts[:2], files[:2])) >= {"mcd"}
    arrays = [read_sound(str(file)).samples for file in files]
    again = regard.Synthesizer(steps=1, rate=8000, settings=settings).fit(texts, arrays)
    assert again.speakers_ == []
    for fit, expected in (
        (lambda: again.predict(["up"], speaker="b"), "none: pass speakers to fit"),
        (lambda: regard.Synthesizer().fit(texts, arrays), "expected names of sound files"),
        (lambda: regard.Synthesizer().fit(["", *texts[1:]], files), "expected a text"),
        (lambda: regard.Synthesizer().fit(texts, files, speakers=["a"]), "speakers has 1"),
    ):
        with pytest.raises(UserError, match=expected):
            fit()


def test_over_http(run: Path) -> None:
    shutil.copytree(run, "copy")
    model = regard.load("copy")
    with TestClient(build_app({"tones": model}, ServeSettings())) as client:
        check_responses(client, model)


def check_responses(client: TestClient, model: Any) -> None:
    info = client.get("/models").json()["models"][0]
    assert info["capabilities"] == ["predict"] and info["task"] == "synthesize"
    body = {"texts": ["up", "down"], "search": {"speaker": "ann"}}
    found = client.post("/predict", json=body).json()["predictions"]
    for text, one in zip(body["texts"], found, strict=True):
        assert one["value"]["type"] == "audio/wav"
        sound = decode_sound(base64.b64decode(one["value"]["data"]), "a")
        (expected,) = model.predict([text], speaker="ann")
        assert alike(sound, expected)
    answer = client.post("/predict", json={"texts": ["up"], "search": {"speaker": "cy"}})
    assert answer.status_code == 400 and "the model knows bo, ann" in answer.json()["error"]


def test_slow_speech_has_a_higher_limit(run: Path) -> None:
    task = regard.load(run).task_
    usual, slow = (task.max_output_length(8, Expand(speed=speed)) for speed in (1.0, 0.5))
    assert task.max_output_length(8, Expand(speed=2.0)) == usual
    assert usual < slow <= 2 * usual
    with pytest.raises(ValueError, match="less than or equal to 3600"):
        Expand(max_seconds=1e308)
