"""Laws of models that write frames: steps equal one pass; padding and the batch do not show."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

import regard
from regard.core.errors import UserError
from regard.data.reading.spoken import SpokenText
from regard.data.tensors.padded import Batch, Padded
from regard.models.frame_outputs import grouped
from regard.search import Expand, Unroll
from regard.storage.weights import save_weights
from regard.training import shards
from regard.training.describe import describe
from regard.training.run import Run
from regard.training.start import start_run

from .toys import SPOKEN, TOYS, Case, all_cases, built, check_same, in_parts, moved, predictor

ALL = all_cases("synthesis")
CASES = list(
    {f"{c.model['encoder']['kind']}-{c.model['decoder']['kind']}": c for c in ALL}.values()
)
DECODERS = list({case.model["decoder"]["kind"]: case for case in CASES}.values())
LOCATION: dict[str, Any] = {
    "encoder": {"kind": "recurrent", "width": 8, "layers": 1, "dropout": 0.1},
    "decoder": {
        **{"kind": "recurrent", "width": 8, "layers": 1, "dropout": 0.1, "frames_per_step": 2},
        **{"cross": {"kind": "location"}, "input_feeding": False},
    },
}
CASES.append(Case("synthesis", LOCATION, "synthesis-location"))
DECODERS.append(CASES[-1])
every = pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
each_decoder = pytest.mark.parametrize("case", DECODERS, ids=lambda case: case.name)
STEPWISE = [case for case in CASES if case.model["decoder"]["kind"] != "parallel"]
stepwise = pytest.mark.parametrize("case", STEPWISE, ids=lambda case: case.name)
PARALLEL = [case for case in CASES if case not in STEPWISE]
parallel = pytest.mark.parametrize("case", PARALLEL, ids=lambda case: case.name)


def whole(run: Run) -> Batch:
    """All examples as one batch."""
    return run.corpus.batch(np.arange(len(run.corpus)))


def shorter(rows: Padded, row: int, more: int = 0) -> Padded:
    """One row of a batch alone, with `more` positions of padding that are not zeros."""
    size = int(rows.mask[row].sum())
    data, mask = rows.data[row : row + 1, :size], rows.mask[row : row + 1, :size]
    padding = torch.ones_like(data[:, :1]).expand(-1, more, *data.shape[2:])
    return Padded(torch.cat([data, padding], 1), torch.cat([mask, mask.new_zeros(1, more)], 1))


@every
@torch.no_grad()
def test_padding_and_the_batch_are_invisible(case: Case) -> None:
    run = built(case)
    batch = whole(run)
    assert batch.source is not None and batch.target is not None
    found = run.model(batch)
    for row in range(batch.rows):
        for more in (0, 3):
            alone = Batch(shorter(batch.source, row, more), shorter(batch.target, row, more))
            again = run.model(alone)
            assert alone.target is not None
            size = int(alone.target.mask.sum())
            torch.testing.assert_close(
                again.frames[0, :size], found.frames[row, :size], atol=1e-4, rtol=1e-4
            )
            if found.stop is not None:
                steps = int(again.stop.mask.sum())
                theirs = found.stop.data[row, :steps]
                torch.testing.assert_close(again.stop.data[0, :steps], theirs, atol=1e-4, rtol=1e-4)
            if found.durations is not None:
                count = int(alone.source.mask.sum()) - 1  # type: ignore[union-attr]
                assert torch.equal(again.durations[0, :count], found.durations[row, :count])
                assert int(found.durations[row].sum()) == size


@every
@torch.no_grad()
def test_the_loss_is_the_sum_over_the_rows(case: Case) -> None:
    run = built(case)
    batch, objective = whole(run), run.config.objective
    total = objective(run.model, batch)
    rows = [objective(run.model, batch.take(slice(row, row + 1))) for row in range(batch.rows)]
    assert total.count == sum(one.count for one in rows)
    for name, value in total.parts.items():
        parts = torch.stack([one.parts[name] for one in rows]).sum()
        torch.testing.assert_close(value, parts, atol=1e-3, rtol=1e-4)
    each = torch.stack([one.sum for one in rows]).sum()
    torch.testing.assert_close(total.sum, each, atol=1e-3, rtol=1e-4)


@stepwise
@torch.no_grad()
def test_steps_equal_one_pass(case: Case) -> None:
    """Fed with the true frames, one by one."""
    run = built(case)
    batch = whole(run)
    assert batch.source is not None and batch.target is not None
    found, model = run.model(batch), run.model
    steps = grouped(batch.target, model.size)
    frame, state = model.start(batch.source)
    for u in range(steps.mask.shape[1]):
        frames, stop, state = model.step(frame, state)
        real = steps.mask[:, u]
        start = u * model.size
        theirs = found.frames[real, start : start + model.size]
        ours = frames[real, : theirs.shape[1]]
        torch.testing.assert_close(ours, theirs, atol=1e-4, rtol=1e-4)
        logits = found.stop.data[real, u]
        torch.testing.assert_close(stop[real], torch.sigmoid(logits), atol=1e-4, rtol=1e-4)
        frame = steps.data[:, u : u + 1, -model.bands :]


@stepwise
@torch.no_grad()
def test_later_frames_do_not_change_earlier_ones(case: Case) -> None:
    run = built(case)
    batch = whole(run)
    assert batch.target is not None
    at = 2 * run.model.size
    changed = batch.target.data.clone()
    changed[:, at - 1 :] += 5.0  # the last frame of the second step is read by the third
    before = run.model(batch).frames
    after = run.model(batch._replace(target=batch.target._replace(data=changed))).frames
    torch.testing.assert_close(after[:, :at], before[:, :at], atol=1e-5, rtol=1e-5)
    assert not torch.allclose(after[:, at : at + 1], before[:, at : at + 1])


def features(run: Run, sources: list[str], batch_size: int = 64, **search: Any) -> list[Tensor]:
    """The features of the sounds of these texts."""
    made = predictor(run)
    options = made.search_options(**search)
    found = made.predict(sources, options, rows=batch_size)
    return [torch.from_numpy(one.value.features) for one in found]


@every
def test_the_batch_size_is_invisible(case: Case) -> None:
    run = built(case)
    texts = [text for text, _ in SPOKEN]
    limit = {"max_seconds": 0.2}
    for one, other in zip(
        features(run, texts, **limit), features(run, texts, 1, **limit), strict=True
    ):
        torch.testing.assert_close(one, other, atol=1e-3, rtol=1e-4)


@every
def test_the_speaker_is_heard(case: Case) -> None:
    """That of the text, or that of the search; the first one if neither names one."""
    run = built(case)
    first = run.task.speakers[0]  # type: ignore[attr-defined]
    texts = [SpokenText("abba", "x"), SpokenText("abba", "y"), "abba"]
    x, y, none = features(run, texts, max_seconds=0.1)
    assert x.shape != y.shape or not torch.allclose(x, y)
    torch.testing.assert_close(none, x if first == "x" else y, atol=1e-4, rtol=1e-4)
    for name, expected in (("x", x), ("y", y)):
        for one in features(run, texts, speaker=name, max_seconds=0.1):
            torch.testing.assert_close(one, expected, atol=1e-4, rtol=1e-4)
    with pytest.raises(UserError, match="speaker z: unknown; the model knows x, y"):
        features(run, texts, speaker="z")


@stepwise
def test_a_sound_ends_where_the_model_stops_or_at_the_limit(case: Case) -> None:
    run = built(case)
    model, request = run.model, run.task.search_request
    rows = run.task.rows([text for text, _ in SPOKEN])
    part = list(range(len(SPOKEN)))
    limited = request(rows, part, Unroll(max_seconds=0.1))
    most = run.task.target.analysis.windows(800)  # type: ignore[attr-defined]
    for one in Unroll(stop_threshold=1 - 1e-9).run(model, limited):
        assert one.truncated and len(one.frames) == most
    for one in Unroll(stop_threshold=1e-9).run(model, limited):
        assert not one.truncated and len(one.frames) == min(model.size, most)


@parallel
def test_speed_divides_the_durations_and_limits_hold(case: Case) -> None:
    run = built(case)
    request = run.task.search_request
    rows = run.task.rows([text for text, _ in SPOKEN])
    part = list(range(len(SPOKEN)))
    wide = replace(request(rows, part, Expand()), limits=torch.full((len(part),), 1000))
    fast, slow = (Expand(speed=speed).run(run.model, wide) for speed in (4.0, 0.1))
    assert all(len(a.frames) < len(b.frames) for a, b in zip(fast, slow, strict=True))
    few = replace(wide, limits=torch.full((len(part),), 3))
    for one in Expand(speed=0.1).run(run.model, few):
        assert one.truncated and len(one.frames) == 3


@each_decoder
def test_saved_and_loaded_it_predicts_alike(case: Case, tmp_path: Path) -> None:
    run = moved(start_run(tmp_path / "run", case.config(), *[TOYS["synthesis"].pairs] * 2))
    describe(run, {})
    save_weights(run.model.eval(), run.folder / "model.safetensors")
    before = features(run, ["abba", "cad"], max_seconds=0.1)
    run.folder.rename(tmp_path / "elsewhere")
    loaded = regard.load(tmp_path / "elsewhere", kind=regard.Synthesizer)
    assert loaded.config_ == run.config and loaded.speakers_ == ["x", "y"]
    found = loaded.predict(["abba", "cad"], max_seconds=0.1)
    for one, other in zip(found, before, strict=True):
        assert np.array_equal(one.features, other.numpy())
    again = loaded.predict(["abba", "cad"], max_seconds=0.1)[0]
    assert np.array_equal(again.samples, found[0].samples) and again.rate == 8000


@each_decoder
def test_resume_is_exact(case: Case, tmp_path: Path) -> None:
    training = {"batch_tokens": 30, "lr": 0.01, "steps": 4, "optimizer": {"kind": "adamw"}}
    config = case.config(training=training)
    whole_run, _, again = in_parts(tmp_path, config, TOYS["synthesis"].pairs, stop=2)
    check_same(whole_run, again)


@each_decoder
def test_the_gradient_of_the_parts_is_that_of_the_whole(
    case: Case, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shards, "MIN_ROWS", 1)
    run = built(case)
    batch = whole(run)
    found = []
    for threads in (1, 2):
        run.model.zero_grad()
        shards.backward(run.model, run.config.objective, batch, 7.0, threads)
        found.append([p.grad.clone() for p in run.model.parameters() if p.grad is not None])
    torch.testing.assert_close(found[1], found[0], atol=1e-4, rtol=1e-3)
