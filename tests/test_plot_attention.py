"""Figures that explain attention, positions and residual branches: what they plot is so."""

from typing import Any

import pytest
import torch

from regard.core.errors import UserError
from regard.nn.positions.sinusoidal import sinusoids
from regard.views.figures.style import styled
from regard.views.plots import (
    attention_cells,
    attention_field,
    attention_rank,
    number_task,
    position_training,
    recurrent_plot,
    relu_curves,
    residual_sizes,
)
from regard.views.plots.plot_args import PlotArgs


@pytest.mark.parametrize("n", [128, 512])
def test_weights_that_are_not_zero(n: int) -> None:
    """By the formulas of the docs: a band without its corners, blocks, all pairs."""
    window, size = 32, 64
    band = n * (2 * window + 1) - window * (window + 1)
    assert attention_cells.nonzero_weights("local", n) == band
    assert attention_cells.nonzero_weights("block", n) == n * size
    assert attention_cells.nonzero_weights("softmax", n) == n * n
    # A global position attends to all, and all to it; the band has 33 of each already.
    assert attention_cells.nonzero_weights("longformer", n) == band + 2 * (n - 1 - window)


@pytest.mark.parametrize("n", [128, 512])
def test_scores_that_are_computed(n: int) -> None:
    """Local: three blocks of keys per block of queries. Nystroem: three factors. Reformer: two
    chunks per chunk in each of two rounds."""
    landmarks, chunk = 32, 32
    expected = {
        "softmax": n * n,
        "local": n * 3 * 32,
        "block": n * 64,
        "linformer": n * 64,
        "nystrom": 2 * n * landmarks + landmarks**2,
        "reformer": n * 2 * chunk * 2,
    }
    assert {name: attention_cells.computed_scores(name, n) for name in expected} == expected


@pytest.mark.parametrize("name", ["strided", "longformer", "bigbird"])
def test_no_weight_is_without_a_score(name: str) -> None:
    """Sparse kernels compute a score for each weight that is not zero."""
    weights = attention_cells.nonzero_weights(name, 512)
    assert weights <= attention_cells.computed_scores(name, 512) < 512 * 512 / 4


def test_the_growth_of_sparse_kernels() -> None:
    """Four times the length: four times the weights; with stride sqrt(n), eight times."""
    for name, factor in (("bigbird", 4), ("longformer", 4), ("strided", 8), ("softmax", 16)):
        few, many = (attention_cells.nonzero_weights(name, n) for n in (512, 2048))
        assert many / few == pytest.approx(factor, rel=0.05)


def test_lines_of_cells() -> None:
    with styled():
        figure = attention_cells.plot_cells(PlotArgs(kinds=["softmax", "nystrom"]))
    names = [[line.get_label() for line in axes.lines[:-2]] for axes in figure.axes]
    assert names == [["softmax"], ["softmax", "nystrom"]]
    with pytest.raises(UserError, match="--kind topk: expected one of softmax, local"):
        attention_cells.plot_cells(PlotArgs(kinds=["topk"]))


@pytest.mark.parametrize("layers", attention_field.DEPTHS)
def test_layers_reach_as_many_windows(layers: int) -> None:
    """An output depends on the inputs within l windows, and on no others."""
    at = torch.arange(attention_field.LENGTH)
    distance = (at[:, None] - at).abs()
    for name in ("local", "convolution"):
        assert torch.equal(attention_field.field(name, layers), distance <= 3 * layers)
    assert torch.equal(attention_field.field("block", layers), at[:, None] // 8 == at // 8)
    for name in ("longformer", "strided", "bigbird"):  # two layers are enough
        assert attention_field.field(name, layers).all() == (layers > 1)


def test_sorting_gathers_the_weights_of_reformer() -> None:
    """In a chunk and the previous one, and within a bucket; before, they are anywhere."""
    weights, buckets, order = attention_field.sorted_maps()
    assert (buckets[order].diff() >= 0).all() and len(buckets.unique()) > 3
    chunk = torch.arange(len(order)) // attention_field.CHUNK
    behind = chunk[:, None] - chunk
    near = (behind == 0) | (behind == 1)
    after = weights[order][:, order] > 0
    assert not after[~near].any() and (weights > 0)[~near].any()
    alike = buckets[order][:, None] == buckets[order]
    # Each attends to all others of its bucket that are near, or to itself if it is alone.
    others = alike & near & ~torch.eye(len(order), dtype=torch.bool)
    alone = ~others.any(-1)
    assert torch.equal(after, others | torch.diag(alone))


def test_the_rank_of_maps() -> None:
    """Two equal blocks have rank 2, the identity has rank 4."""
    blocks = torch.block_diag(torch.ones(2, 2) / 2, torch.ones(2, 2) / 2)
    assert attention_rank.cumulative_share(blocks[None]).tolist() == pytest.approx([0.5, 1, 1, 1])
    assert attention_rank.best_error(torch.eye(4)[None]).tolist() == pytest.approx(
        [1, 0.75, 0.5, 0.25, 0]
    )


def test_linformer_with_a_slot_per_position_is_softmax() -> None:
    torch.manual_seed(0)
    model, task = number_task.NumberModel().eval(), number_task.mirrored
    batch = number_task.examples(task, 1)[:2]
    same, other = (attention_rank.as_linformer(model, rank).eval() for rank in (32, 16))
    with torch.no_grad():
        torch.testing.assert_close(same(*batch), model(*batch), atol=1e-5, rtol=1e-5)
        assert not torch.allclose(other(*batch), model(*batch), atol=1e-3)


def test_trained_maps_have_the_rank_of_their_task() -> None:
    """A mean over each of 6 letters needs rank 6; a mirror image needs all 32."""
    shares = {}
    for name, (task, _) in attention_rank.TASKS.items():
        model = attention_rank.trained(task)
        assert number_task.held_out_error(model, task) < 0.05
        maps = number_task.attention_maps(model, number_task.examples(task, 1))
        shares[name] = float(attention_rank.cumulative_share(maps)[number_task.LETTERS - 1])
    assert shares["mean"] > 0.9 and shares["mirror"] < 0.3


def test_targets_of_the_number_task() -> None:
    letters, numbers = torch.tensor([[0, 1, 0, 1]]), torch.tensor([[1.0, 2.0, 3.0, 6.0]])
    assert number_task.mean_of_letter(letters, numbers).tolist() == [[4, 8, 4, 8]]
    assert number_task.mirrored(letters, numbers).tolist() == [[6, 3, 2, 1]]
    assert number_task.shifted(letters, numbers).tolist() == [[0, 0, 0, 1]]


def test_position_tables_after_a_training() -> None:
    """Rows of a learned table beyond the trained lengths do not change; p(0) stays 0."""
    sinusoidal = sinusoids(position_training.SHOWN, number_task.WIDTH)
    tables = {}
    for kind in ("learned", "floater"):
        model = position_training.built(kind)
        before = position_training.position_table(model)
        number_task.train(model, number_task.shifted, 12, lengths=position_training.TRAINED_LENGTHS)
        tables[kind] = before, position_training.position_table(model)
    new, learned = tables["learned"]
    assert torch.equal(new[32:], learned[32:]) and (new[:32] != learned[:32]).all()
    start, solved = tables["floater"]
    torch.testing.assert_close(start, sinusoidal)
    moved = (solved - sinusoidal).abs().amax(-1)
    assert moved[0] == 0 and (moved[1:] > 0).all()


def test_relu_attention_learns_with_rows_of_any_sum() -> None:
    learned = relu_curves.train("relu", 120)
    assert sum(learned.losses[-10:]) / 10 < 0.7 * sum(learned.losses[10:30]) / 20
    weights = relu_curves.cross_attention(learned.model, relu_curves.examples(1, 1))
    assert (weights >= 0).all() and ((weights.sum(-1) - 1).abs() > 0.1).any()


def test_the_figure_of_relu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(relu_curves, "STEPS", 3)
    with styled():
        curves, *maps = relu_curves.plot_relu(PlotArgs()).axes
    assert [axes.get_title(loc="left") for axes in maps] == ["softmax", "relu"]
    assert [line.get_label() for line in curves.lines] == ["softmax", "relu"]
    assert maps[0].images[0].get_array().sum(1).tolist() == pytest.approx([1.0] * 7, abs=1e-5)


def test_gradients_over_distance() -> None:
    """A recurrent cell loses what is far, an LSTM less; attention treats distances alike."""
    rnn, lstm, attention = (
        recurrent_plot.gradients_by_distance(kind) for kind in ("rnn", "lstm", "self-attention")
    )
    assert attention.max() < 2 * attention.min()
    assert rnn[40] < 1e-6 * rnn[0] and 1000 * rnn[40] < lstm[40] < 0.01 * lstm[0]


def test_the_figure_of_recurrent_layers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recurrent_plot, "LENGTHS", (8, 16))
    with styled():
        left, right = recurrent_plot.plot_recurrent(PlotArgs()).axes
    assert [line.get_label() for line in left.lines] == list(recurrent_plot.KINDS)
    times: Any = [line.get_ydata() for line in right.lines]
    assert len(times) == 2 and all(value > 0 for line in times for value in line)


def test_the_stream_is_the_sum_of_its_branches() -> None:
    """Pre-norm: squares add up, as those of independent vectors. Others: a norm sets sizes."""
    sizes = {name: residual_sizes.sizes_by_layer(name) for name in ("pre", "post", "sandwich")}
    stream, *branches = (torch.tensor(sizes["pre"][part]) for part in residual_sizes.PARTS)
    added = sum(branch.square() for branch in branches).cumsum(0)
    start = 1 + 0.5  # random inputs and sinusoids
    torch.testing.assert_close(stream.square(), start + added, rtol=0.25, atol=0)
    assert sizes["post"]["stream"] == pytest.approx([1.0] * 12, rel=0.01)
    assert sizes["sandwich"]["attention"] == pytest.approx([1.0] * 12, rel=0.01)
    alone = residual_sizes.sizes_by_layer("no residual")
    assert alone["stream"] == alone["feed-forward"]
