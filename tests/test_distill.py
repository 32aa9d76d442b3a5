"""`regard distill`: outputs of a model as training data, in shards and after an interruption."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from regard.config.load import check_config
from regard.core.errors import UserError
from regard.data.reading.read import Pair, read_pairs
from regard.data.tensors.padded import Batch, Outputs, pad
from regard.data.tensors.special import EOS
from regard.inference.prediction import sink
from regard.objectives import CrossEntropy
from regard.objectives.distill import Distill
from regard.storage.weights import save_weights
from regard.training.describe import describe
from regard.training.start import start_run


@pytest.fixture
def data(tmp_path: Path, words: list[str]) -> Path:
    """Pairs with references that the model does not write; the first source has two."""
    path = tmp_path / "data.tsv"
    lines = [f"{word}\tz{word}" for word in words[:9]]
    path.write_text("\n".join([*lines, f"{words[0]}\ty"]) + "\n")
    return path


def test_sources_with_the_output_of_the_model(
    trained: Any, data: Path, words: list[str], command: Any, tmp_path: Path
) -> None:
    out = tmp_path / "new.tsv"
    said = command("distill", trained.run, data, "--out", out)
    assert said.code == 0, said.err
    answers = command("predict", trained.run, *words[:9]).out.splitlines()
    expected = [f"{word}\t{answer}" for word, answer in zip(words[:9], answers, strict=True)]
    assert out.read_text().splitlines() == expected
    assert "9 sources to distill" in said.err
    said = command("distill", trained.run, data, "--out", out)
    assert said.code == 2 and "the file exists" in said.err


def test_references_and_nbest(
    trained: Any, data: Path, words: list[str], command: Any, tmp_path: Path
) -> None:
    out = tmp_path / "new.jsonl"
    said = command("distill", trained.run, data, "--out", out, "--nbest", "2", "--keep-reference")
    assert said.code == 0, said.err
    rows = [json.loads(line) for line in out.read_text().splitlines()]
    assert [row["source"] for row in rows].count(words[0]) == 4  # two outputs, two references
    own = [row["target"] for row in rows if row["source"] == words[0]]
    assert own[2:] == [f"z{words[0]}", "y"]
    assert [pair.source for pair in read_pairs(str(out)).pairs] == [row["source"] for row in rows]


def test_shards_and_lines(
    trained: Any, data: Path, words: list[str], command: Any, tmp_path: Path
) -> None:
    """Shards together are the whole; sources may also come one per line."""
    whole = tmp_path / "whole.tsv"
    sources = tmp_path / "sources.txt"
    sources.write_text("\n".join(words[:9]) + "\n")
    for name, given in (("pairs", [data]), ("lines", ["--input", sources])):
        assert command("distill", trained.run, *given, "--out", whole, "--force").code == 0
        parts = []
        for number in (1, 2):
            part = tmp_path / f"{name}{number}.tsv"
            shard = ["--shard", f"{number}/2"]
            assert command("distill", trained.run, *given, "--out", part, *shard).code == 0
            parts.append(part.read_text())
        assert "".join(parts) == whole.read_text()


def test_an_interrupted_command_resumes(
    trained: Any, data: Path, command: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out, whole = tmp_path / "new.tsv", tmp_path / "whole.tsv"
    assert command("distill", trained.run, data, "--out", whole).code == 0

    def stop(*args: object) -> None:
        raise UserError("stopped")

    with monkeypatch.context() as patch:
        patch.setattr(sink, "_finish", stop)
        assert "stopped" in command("distill", trained.run, data, "--out", out).err
    assert not out.exists()
    said = command("distill", trained.run, data, "--out", out, "--keep-reference")
    assert said.code == 2 and "partial output of a different command" in said.err
    said = command("distill", trained.run, data, "--out", out)
    assert "resuming: 9 sources already done" in said.err
    assert out.read_text() == whole.read_text()


@pytest.mark.parametrize(
    ("words_of_command", "message"),
    [
        ([], "expected an output file"),
        (["--out", "x.tsv"], "expected either DATA"),
        (["--out", "x.tsv", "--input", "x.txt", "--keep-reference"], "requires DATA with targets"),
        (["-", "--out", "x.tsv"], "expected a file, found a pipe"),
    ],
)
def test_misuse(trained: Any, words_of_command: list[str], message: str, command: Any) -> None:
    said = command("distill", trained.run, *words_of_command)
    assert said.code == 2 and message in said.err


def test_tabs_need_json(trained: Any, command: Any, tmp_path: Path) -> None:
    data = tmp_path / "data.jsonl"
    data.write_text(json.dumps({"source": "a\tb", "target": "b"}) + "\n")
    said = command("distill", trained.run, data, "--out", tmp_path / "x.tsv")
    assert said.code == 2 and "cannot be written as TSV" in said.err and ".jsonl" in said.err
    assert command("distill", trained.run, data, "--out", tmp_path / "x.jsonl").code == 0


# The objective


class Fixed(nn.Module):
    """A model whose logits are given."""

    def __init__(self, logits: Tensor) -> None:
        super().__init__()
        self.logits = nn.Parameter(logits)

    def forward(self, batch: Batch) -> Outputs:
        return Outputs(self.logits)


@pytest.mark.parametrize(("weight", "temperature"), [(0.0, 1.0), (1.0, 1.0), (0.3, 2.0)])
def test_the_loss_by_torch(weight: float, temperature: float) -> None:
    """T^2 times the divergence of softened probabilities, and cross entropy; one gradient."""
    torch.manual_seed(0)
    teacher, model = Fixed(torch.randn(5, 8)), Fixed(torch.randn(5, 8))
    target = pad([[5, 6, EOS], [7, EOS]])
    objective = Distill(teacher="t", weight=weight, temperature=temperature, label_smoothing=0.0)
    objective.ready(lambda folder: {"t": teacher}[folder])
    loss = objective(model, Batch(target, target))
    p = (teacher.logits.detach() / temperature).softmax(-1)
    log_q = (model.logits / temperature).log_softmax(-1)
    kl = (p * (p.log() - log_q)).sum()
    nll = F.cross_entropy(model.logits, target.data[target.mask], reduction="sum")
    expected = (1 - weight) * nll + weight * temperature**2 * kl
    torch.testing.assert_close(loss.sum, expected)
    torch.testing.assert_close(loss.parts["kl"], kl.detach())
    ours, theirs = (
        torch.autograd.grad(one, model.logits, retain_graph=True)[0] for one in (loss.sum, expected)
    )
    torch.testing.assert_close(ours, theirs)
    assert teacher.logits.grad is None and loss.count == 5
    smooth = CrossEntropy(label_smoothing=0.0)
    model.eval()
    assert torch.equal(
        objective(model, Batch(target, target)).sum, smooth(model, Batch(target, target)).sum
    )


PAIRS = [Pair(text, text[::-1], n) for n, text in enumerate(("ab", "ba", "abb", "bab"), 1)]


def test_a_teacher_is_needed_and_has_the_same_tokens(tmp_path: Path) -> None:
    tree: dict[str, Any] = {"training": {"steps": 1, "batch_tokens": 20}}
    config = check_config(tree | {"objective": {"kind": "distill"}}, "test")
    with pytest.raises(UserError, match=r"objective\.teacher: expected the run folder"):
        start_run(tmp_path, config, PAIRS, PAIRS)
    other = [Pair("xyz", "zyx", 1), Pair("zzy", "yzz", 2)]
    teacher = start_run(tmp_path / "teacher", check_config(tree, "test"), other, other)
    describe(teacher, {})
    save_weights(teacher.model, tmp_path / "teacher" / "model.safetensors")
    tree["objective"] = {"kind": "distill", "teacher": str(tmp_path / "teacher")}
    with pytest.raises(UserError, match="the source vocabulary differs from that of this run"):
        start_run(tmp_path / "run", check_config(tree, "test"), PAIRS, PAIRS)
    start_run(tmp_path / "run", check_config(tree, "test"), other, other)
