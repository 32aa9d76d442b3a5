"""Laws of objectives that prepare batches: each kind of the union, with recurrent and Transformer
models. Sampled outputs depend on the batch alone: not on rows, threads or an interruption."""

from pathlib import Path
from typing import Any

import pytest
import torch

from regard.config.configs import TransduceConfig
from regard.config.load import check_config
from regard.core.errors import UserError
from regard.core.options import kinds_of
from regard.data.tensors.tree import leaves
from regard.objectives import Context, Objective
from regard.storage.weights import save_weights
from regard.training import shards
from regard.training.describe import describe
from regard.training.run import Run
from regard.training.start import start_run
from regard.training.update import MicroBatch, _prepared, decode

from .test_resume import PAIRS, TOKENS
from .toys import begin, check_same, in_a_new_process, in_parts
from .unions import Tree

KINDS = kinds_of(TransduceConfig.model_fields["objective"].annotation)
MORE: dict[str, Tree] = {  # settings with which a kind does all it can
    "scheduled": {"decay": {"kind": "linear", "final": 0.0}},
    "reinforce": {"baseline": "moving", "samples": 2},
    "mixer": {"baseline": "greedy", "samples": 2, "end": 0.5},
    "risk": {"samples": 2},
}
BODIES = {kind: {"kind": kind, "width": 8, "layers": 1} for kind in ("recurrent", "transformer")}
FITTING = [
    (kind, body) for kind, options in KINDS.items() for body in BODIES if "steps" in options.takes
]
every = pytest.mark.parametrize(("kind", "body"), FITTING)


def config_of(kind: str, body: str, folder: Path) -> TransduceConfig:
    """A tiny run; an objective with a teacher learns from a model in this folder."""
    part = BODIES[body] | ({"heads": 2} if body == "transformer" else {}) | {"dropout": 0.2}
    objective = {"kind": kind, **MORE.get(kind, {})}
    if "teacher" in KINDS[kind].model_fields:
        objective["teacher"] = str(folder / "teacher")
    tree: dict[str, Any] = {"model": {"encoder": part, "decoder": part}, "task": TOKENS}
    tree["training"] = {"steps": 5, "batch_tokens": 12, "lr": 0.01}
    config = check_config(tree | {"objective": objective}, "laws")
    if "teacher" in objective and not (folder / "teacher").exists():
        teacher = begin(folder / "teacher", check_config(tree, "laws"), PAIRS)
        save_weights(teacher.model, folder / "teacher" / "model.safetensors")
    assert isinstance(config, TransduceConfig)
    return config


def prepared(run: Run, batch: Any, progress: float = 0.6) -> Any:
    """The batch as an update at this time would prepare it."""
    context = Context(progress, 3, lambda *a: decode(run, *a), run.task.rewards, {"reward": 0.25})
    run.model.train()
    return _prepared(run, MicroBatch(batch, 1), context).batch


@every
def test_resume_is_exact(kind: str, body: str, tmp_path: Path) -> None:
    whole, first, again = in_parts(tmp_path, config_of(kind, body, tmp_path), PAIRS, 3)
    check_same(whole, again)
    assert whole.state.objective == again.state.objective
    names = [name for name, _ in first.model.named_parameters()]
    assert [name for name, _ in again.model.named_parameters()] == names  # no teacher among them
    assert set(whole.state.objective) == ({"reward"} if MORE.get(kind, {}).get("baseline")
                                          == "moving" else set())  # fmt: skip


@every
def test_the_loss_of_a_prepared_batch_is_that_of_its_rows(
    kind: str, body: str, tmp_path: Path
) -> None:
    """Also its count and its parts; the rows were prepared together."""
    config = config_of(kind, body, tmp_path)
    run = start_run(tmp_path / "run", config, PAIRS, PAIRS)
    for module in run.model.modules():
        if hasattr(module, "rate"):
            module.rate = 0.0
    batch = prepared(run, run.corpus.batch(torch.arange(len(PAIRS)).numpy()))
    objective: Objective = run.config.objective
    whole = objective(run.model, batch)
    rows = [batch.take(slice(n, n + 1)) for n in range(batch.rows)]
    parts = [objective(run.model, row) for row in rows]
    total = sum(float(part.sum.detach()) for part in parts)
    assert float(whole.sum.detach()) == pytest.approx(total, rel=1e-4, abs=1e-4)
    assert whole.count == objective.count(batch) == sum(map(objective.count, rows))
    for name, value in whole.parts.items():
        assert float(value) == pytest.approx(sum(float(p.parts[name]) for p in parts), abs=1e-3)


@every
def test_what_is_prepared_depends_on_the_batch_alone(
    kind: str, body: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not on earlier random numbers. Gradients with two threads have the same samples."""
    run = start_run(tmp_path / "run", config_of(kind, body, tmp_path), PAIRS, PAIRS)
    batch = run.corpus.batch(torch.arange(len(PAIRS)).numpy())
    torch.manual_seed(1)
    one = prepared(run, batch)
    torch.rand(5)
    two = prepared(run, batch)
    ours, theirs = leaves(one.prepared), leaves(two.prepared)
    assert ours.keys() == theirs.keys()
    assert all(torch.equal(ours[name], theirs[name]) for name in ours)
    assert all(len(leaf) == batch.rows for leaf in ours.values())
    monkeypatch.setattr(shards, "MIN_ROWS", 1)
    for module in run.model.modules():
        if hasattr(module, "rate"):
            module.rate = 0.0
    found = []
    for threads in (1, 2):
        run.model.zero_grad()
        shards.backward(run.model, run.config.objective, one, 3.0, threads)
        found.append([p.grad.clone() for p in run.model.parameters() if p.grad is not None])
    torch.testing.assert_close(found[0], found[1], atol=1e-5, rtol=1e-4)


def test_a_changed_teacher_is_noticed(tmp_path: Path) -> None:
    config = config_of("distill", "recurrent", tmp_path)
    describe(start_run(tmp_path / "run", config, PAIRS, PAIRS[:2]), {})
    in_a_new_process(tmp_path / "run", PAIRS)
    other = start_run(tmp_path / "other", config, PAIRS, PAIRS).model
    with torch.no_grad():
        next(other.parameters()).add_(1.0)
    save_weights(other, tmp_path / "teacher" / "model.safetensors")
    with pytest.raises(UserError, match=r"teacher .* changed since this run started"):
        in_a_new_process(tmp_path / "run", PAIRS)
