"""Figures of `regard plot`: each is plotted with the code that trains; misuse is an error."""

import builtins
import itertools
import json
import math
import xml.etree.ElementTree as xml
from pathlib import Path
from typing import Any

import pytest
import torch
import yaml
from typer.testing import CliRunner

from regard.cli.main_app import app
from regard.cli.plot import plot
from regard.config.configs import CONFIGS, TransduceConfig
from regard.core.errors import UserError
from regard.data.tensors.padded import pad
from regard.data.tensors.special import EOS
from regard.nn.kernels.kernel import AttentionMask, Shape
from regard.nn.norms.batch import BatchNorm
from regard.nn.norms.vector import LayerNorm
from regard.nn.positions import Position
from regard.search import Beam, SearchRequest
from regard.views.figures import tree_plot
from regard.views.figures.style import styled
from regard.views.plots import (
    FIGURES,
    alignment_plot,
    attention_ideas,
    checkpoints,
    decay_plot,
    functions,
    masks,
    norm_plots,
    norm_statistics,
    optimizer_paths,
    patterns,
    position_scores,
    schedule_plot,
    search_plot,
)
from regard.views.plots.plot_args import PlotArgs

SLOW = (
    *("optimizers", "norm-statistics", "attention-pattern", "performer", "alignment"),
    *("attention-rank", "attention-relu", "attention-recurrent", "position-tables"),
)
GENERAL = [name for name, one in FIGURES.items() if name not in SLOW and not one.needs_run]


def plot_command(what: str | None, out: Path | None, args: PlotArgs) -> None:
    """The command with these options."""
    plot(what, args.run, out, [*args.kinds], args.text, args.beam, [*args.settings])


def test_the_list(capsys: pytest.CaptureFixture[str]) -> None:
    result = CliRunner().invoke(app, ["plot"])
    assert result.exit_code == 0
    names = [line.split()[0] for line in result.stdout.splitlines()]
    assert names == list(FIGURES) and {"schedule", "optimizers", "positions"} <= set(names)


@pytest.mark.parametrize("what", GENERAL)
def test_every_figure_is_plotted(what: str, tmp_path: Path, monkeypatch: Any) -> None:
    """A PNG by itself, next to the user; the same twice."""
    monkeypatch.chdir(tmp_path)
    plot_command(what, None, PlotArgs())
    plot_command(what, tmp_path / "again.png", PlotArgs())
    picture = (tmp_path / f"{what}.png").read_bytes()
    assert picture.startswith(b"\x89PNG") and len(picture) > 5000
    assert picture == (tmp_path / "again.png").read_bytes()


@pytest.mark.parametrize("what", GENERAL[::4])
def test_a_figure_is_an_svg_where_asked(what: str, tmp_path: Path) -> None:
    """By any name with this ending, and the same twice."""
    files = [tmp_path / "one.svg", tmp_path / "two.SVG"]
    for path in files:
        plot_command(what, path, PlotArgs())
    assert xml.parse(files[0]).getroot().tag.endswith("svg")
    assert files[0].read_bytes() == files[1].read_bytes()


def test_the_command(tmp_path: Path) -> None:
    out = tmp_path / "a.svg"
    result = CliRunner().invoke(app, ["plot", "schedule", "--kind", "wsd", "--out", str(out)])
    assert result.exit_code == 0 and out.exists() and result.stdout == ""


def plotted(args: PlotArgs) -> Any:
    with styled():
        return schedule_plot.plot_schedules(args)


def test_schedules_are_those_that_train() -> None:
    """The line of a panel is the factor of that kind, from 0 to the end of the run."""
    figure = plotted(PlotArgs(kinds=["linear", "step"]))
    for axes, name in zip(figure.axes, ["linear", "step"], strict=True):
        assert axes.get_title(loc="left") == name
        x, y = axes.get_lines()[0].get_data()
        schedule = schedule_plot.KINDS[name]()
        assert x[0] == 0 and x[-1] == 1
        for place in (3, 40, 500, 501, 990):
            assert y[place] == schedule.factor(x[place], place)


def test_the_schedule_of_settings_and_of_a_run(tmp_path: Path) -> None:
    settings = ["training.schedule.kind=linear", "training.lr=0.5", "training.steps=200"]
    (axes,) = plotted(PlotArgs(settings=[*settings, "training.schedule.warmup=50"])).axes
    x, y = axes.get_lines()[0].get_data()
    assert axes.get_xlabel() == "steps" and x[-1] == 200
    assert max(y) == pytest.approx(0.5) and y[-1] == pytest.approx(0, abs=1e-9)
    assert x[list(y).index(max(y))] == pytest.approx(50, abs=2)

    tree_plot = CONFIGS["tag"]().model_dump(mode="json")
    tree_plot["training"] |= {"budget": 600, "lr": 0.01}
    (tmp_path / "config.yaml").write_text(yaml.safe_dump(tree_plot), "utf-8")
    (axes,) = plotted(PlotArgs(run=tmp_path)).axes
    x, y = axes.get_lines()[0].get_data()
    assert axes.get_xlabel() == "minutes" and x[-1] == 10
    assert max(y) == pytest.approx(0.01, rel=1e-3)


@pytest.mark.parametrize("kind", optimizer_paths.KINDS)
def test_optimisers_go_down(kind: str) -> None:
    """Each ends lower than it began, on its own feet: the first step is down the slope."""
    surface = optimizer_paths.SURFACES[0]
    places = optimizer_paths.path(kind, surface, 0.1)
    assert len(places) == optimizer_paths.STEPS + 1 and places[0] == surface.start
    first, second, last = (surface.value(*torch.tensor(places[i])) for i in (0, 1, -1))
    assert last < second < first


def test_plain_descent_is_what_it_should_be() -> None:
    """On 0.1 x^2 + 3 y^2 the first step at rate 0.1 is 0.1 times (0.2 x, 6 y)."""
    surface = optimizer_paths.SURFACES[0]
    (x, y), (after_x, after_y) = optimizer_paths.path("sgd", surface, 0.1)[:2]
    assert after_x == pytest.approx(x - 0.02 * x) and after_y == pytest.approx(y - 0.6 * y)


def test_a_path_that_leaves_the_window_is_none_to_choose() -> None:
    surface = optimizer_paths.SURFACES[0]
    assert optimizer_paths.cost(surface, [surface.start, (99.0, 0.0)]) == math.inf
    assert optimizer_paths.cost(surface, [surface.start, (99.0, math.nan)]) == math.inf
    near, far = [surface.start, surface.minimum], [surface.start, surface.start]
    assert optimizer_paths.cost(surface, near) < optimizer_paths.cost(surface, far)


def test_optimizers_are_plotted(tmp_path: Path) -> None:
    plot_command("optimizers", tmp_path / "a.svg", PlotArgs(kinds=["sgd", "adam"]))
    assert xml.parse(tmp_path / "a.svg").getroot().tag.endswith("svg")


def test_the_tree_of_a_search() -> None:
    """Greedily a, c, the end: .6 x .4 = .24. A beam of two finds b and the end: .4 x .9 = .36."""
    request = SearchRequest(pad([[5]]), torch.tensor([5]))
    best, found, _ = Beam(beam=2, length_penalty=0).explain(search_plot.ToyModel(), request)
    assert found is not None and (*best.tokens, EOS) == found.best
    a, b, c = search_plot.A, search_plot.B, search_plot.C
    assert found.greedy == (a, c, EOS) and found.best == (b, EOS)
    assert math.exp(found.nodes[a, c, EOS].total) == pytest.approx(0.24)
    assert math.exp(found.nodes[b, EOS].total) == pytest.approx(0.36)
    statuses = {key: node.status for key, node in found.nodes.items()}
    assert (
        statuses[a,] == statuses[b,] == statuses[a, c] == "kept" and statuses[b, EOS] == "finished"
    )
    assert statuses[a, EOS] == statuses[b, b] == "pruned"  # .21 and .04
    alone = {key for key, node in found.nodes.items() if node.greedy_only}
    assert alone == {(a, c, EOS)}  # the beam was done by then
    assert all(key[:-1] in found.nodes for key in found.nodes if len(key) > 1)


def test_where_nodes_of_a_tree_stand() -> None:
    """Leaves below each other, the most probable first; a parent in the middle of its own."""
    at = tree_plot.node_positions({(1,): 0.4, (2,): 0.6, (2, 1): 0.1, (2, 2): 0.9})
    assert at == {(2, 2): (2, 0), (2, 1): (2, -1), (2,): (1, -0.5), (1,): (1, -2), (): (0, -1.25)}


def test_the_tree_of_a_model(trained: Any, tmp_path: Path) -> None:
    args = PlotArgs(run=trained.run, text="abc", beam=2)
    plot_command("search", tmp_path / "a.svg", args)
    assert xml.parse(tmp_path / "a.svg").getroot().tag.endswith("svg")


def test_what_sees_what() -> None:
    """Read off gradients: no padding, no future."""
    encoder, decoder, cross = (visible for visible, _, _ in masks.maps().values())
    assert encoder[:, : masks.SOURCE_LENGTH].all() and not encoder[:, masks.SOURCE_LENGTH :].any()
    assert torch.equal(decoder, torch.ones_like(decoder).tril())
    assert cross[:, : masks.SOURCE_LENGTH].all() and not cross[:, masks.SOURCE_LENGTH :].any()


def test_what_norms_average_over() -> None:
    """Read off gradients: the features of a position, or a feature at all real positions."""
    (row, token, feature), real = norm_plots.SHOWN, norm_plots._real()
    layer = norm_plots.averaged_over(LayerNorm(norm_plots.FEATURES))
    assert layer[row, token].all() and layer.sum() == norm_plots.FEATURES
    batch = norm_plots.averaged_over(BatchNorm(norm_plots.FEATURES, 0.1))
    assert torch.equal(batch[..., feature], real) and batch.sum() == real.sum()


def test_gradients_of_a_new_model_by_the_position_of_norms() -> None:
    """Before the branch, gradients fall towards the output and the stream grows; after it,
    gradients near the output are larger, and the stream keeps its size (Xiong et al. 2020)."""
    (pre, growing), (post, steady) = (norm_plots.at_the_start(place) for place in ("pre", "post"))
    assert pre[-1] < 0.7 * pre[0] and post[-1] > 2 * pre[-1]
    assert growing[-1] > 2 * growing[0] and steady == pytest.approx([1.0] * len(steady), rel=0.01)


def test_scores_that_come_from_positions() -> None:
    """By distance only, if nothing is learned per position; none without positions."""
    for kind in position_scores.KINDS:
        scores = position_scores.position_scores(position_scores.built(kind))
        same = torch.allclose(scores[:, 1:, 1:], scores[:, :-1, :-1], atol=1e-4)
        assert same == (kind not in ("learned", "floater"))
        assert bool(scores.any()) == (kind != "none")


def test_targets_of_the_long_sources_are_their_runs() -> None:
    """Each letter two to six times, next to another one."""
    batch = alignment_plot.examples(3, 20)
    assert batch.source is not None and batch.target is not None
    rows = zip(*batch.source[:2], *batch.target[:2], strict=True)
    for source, real, target, own in rows:
        source, target = source[real].tolist(), target[own].tolist()
        runs = [(token, len(list(run))) for token, run in itertools.groupby(source[:-1])]
        assert [token for token, _ in runs] == target[:-1] and 6 <= len(runs) <= 12
        assert all(2 <= count <= 6 for _, count in runs)


def test_the_alignments_of_a_short_training(monkeypatch: pytest.MonkeyPatch) -> None:
    """A map for each way, with a row for each letter of the target, and a curve of the loss."""
    monkeypatch.setattr(alignment_plot, "STEPS", 3)
    figure = alignment_plot.plot_alignments(PlotArgs(kinds=["guided", "monotonic"]))
    curves, *maps = sorted(figure.axes, key=lambda axes: -len(axes.lines))
    assert [axes.get_title() for axes in maps] == ["guided", "monotonic"]
    assert len(curves.lines) == 2
    for axes in maps:
        weights = axes.images[0].get_array()
        assert weights.sum(1).tolist() == pytest.approx([1.0] * len(weights), abs=1e-4)


def test_layer_norm_has_no_statistics_to_differ() -> None:
    found = {kind: norm_statistics.train(kind, 12) for kind in norm_statistics.NORMS}
    assert max(found["layer"][0]) == 0 < min(*found["batch"][0], *found["power"][0])
    assert all(len(held_out) == 1 for _, _, held_out in found.values())


def test_smoothed_labels_by_the_formula() -> None:
    """1 - s on the true one, and s spread over all six."""
    for s in (0.0, 0.3):
        assert functions._target(s) == pytest.approx([1 - s + s / 6, *[s / 6] * 5], abs=1e-6)


@pytest.mark.parametrize(
    ("what", "out", "args", "message"),
    [
        (
            "schedules",
            None,
            PlotArgs(),
            r"unknown figure 'schedules'; did you mean schedule\? available: ",
        ),
        (
            "schedule",
            "a.pdf",
            PlotArgs(),
            r"--out a\.pdf: expected a file name that ends in \.png or \.svg",
        ),
        (
            "schedule",
            None,
            PlotArgs(kinds=["cosin"]),
            "--kind cosin: expected one of constant, step",
        ),
        ("optimizers", None, PlotArgs(kinds=["adamw"]), "--kind adamw: expected one of sgd"),
        ("softmax", None, PlotArgs(kinds=["relu"]), "--kind: not supported for figure softmax"),
        ("optimizers", None, PlotArgs(settings=["training.lr=1"]), "--set: not supported for"),
        ("positions", None, PlotArgs(run=Path("x")), "RUN: not supported for figure positions"),
        ("schedule", None, PlotArgs(run=Path("nowhere")), "no such model folder"),
        ("schedule", None, PlotArgs(settings=["training.lr=fast"]), r"training\.lr"),
        ("schedule", None, PlotArgs(["step"], Path("x")), "--kind cannot be combined with RUN"),
        ("search", None, PlotArgs(text="abc"), "RUN and --text require each other"),
        ("search", None, PlotArgs(run=Path("x")), "RUN and --text require each other"),
        ("search", None, PlotArgs(run=Path("nowhere"), text="a"), "no such model folder"),
        ("positions", None, PlotArgs(beam=3), "--beam: not supported for figure positions"),
        ("schedule", "no/such/a.png", PlotArgs(kinds=["step"]), "cannot write"),
    ],
)
def test_misuse(what: str, out: str | None, args: PlotArgs, message: str) -> None:
    with pytest.raises(UserError, match=message):
        plot_command(what, Path(out) if out else None, args)


def test_without_matplotlib(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The list is there; a picture says what to install."""
    whole = builtins.__import__

    def without(name: str, *rest: Any) -> Any:
        if name.split(".")[0] == "matplotlib":
            raise ImportError(name)
        return whole(name, *rest)

    monkeypatch.setattr(builtins, "__import__", without)
    plot_command(None, None, PlotArgs())
    with pytest.raises(UserError, match=r"pip install 'regard\[plots\]'"):
        plot_command("positions", tmp_path / "a.png", PlotArgs())


DRAWN = [
    (name, causal)
    for name, kind in patterns.KINDS.items()
    for causal in (False, True)
    if name != "reformer" and (kind.supports.causal or not causal)
]


@pytest.mark.parametrize(("name", "causal"), DRAWN)
def test_a_pattern_is_the_matrix_of_the_kernel(name: str, causal: bool) -> None:
    """What gradients of the fast path show is what `weights` computes."""
    options = patterns.KINDS[name](**patterns.SIZES.get(name, {}))
    found, _ = patterns.attention_matrix(options, causal)
    torch.manual_seed(3)
    again = options.build(Shape(patterns.HEAD_WIDTH, 1, causal))
    shape = (1, 1, patterns.LENGTH, patterns.HEAD_WIDTH)
    q, k, v, *extra = torch.randn(3 + len(again.extra), *shape)
    weights = again.weights(q, k, v, AttentionMask(Position(), 1), None, *extra)[0][0, 0]
    torch.testing.assert_close(found, weights, atol=1e-5, rtol=1e-5)
    if causal:
        assert not found.triu(1).any()


def test_patterns_label_implied_matrices() -> None:
    with styled():
        figure = patterns.plot_patterns(PlotArgs(kinds=["local", "linear", "nystrom"]))
    shown = [
        (axes.get_title(loc="left"), [text.get_text() for text in axes.texts])
        for axes in figure.axes
    ]
    assert shown == [
        ("local", ["window 3"]),
        ("linear", ["implied matrix"]),
        ("nystrom", ["implied matrix"]),
        ("local, causal", ["window 3"]),
        ("linear, causal", ["implied matrix"]),
        ("nystrom, causal", ["not causal"]),
    ]
    local = figure.axes[0].collections[0].get_array()
    band = (torch.arange(24)[:, None] - torch.arange(24)).abs() <= 3
    assert torch.equal(torch.tensor(local[::-1].copy()) > 0, band)


def test_the_pattern_command(tmp_path: Path) -> None:
    out = tmp_path / "a.png"
    plot_command("attention-pattern", out, PlotArgs(kinds=["topk"]))
    assert out.read_bytes().startswith(b"\x89PNG")
    with pytest.raises(UserError, match="--kind tokp: expected one of softmax, local"):
        plot_command("attention-pattern", out, PlotArgs(kinds=["tokp"]))


def test_the_performer_figure(monkeypatch: Any) -> None:
    """Three maps, and a line of errors with its slope for each size of inputs."""
    monkeypatch.setattr(attention_ideas, "DRAWS", 1)
    with styled():
        *maps, error = attention_ideas.plot_performer(PlotArgs()).axes
    assert [axes.get_title(loc="left") for axes in maps] == [
        *("softmax", "32 features", "1024 features")
    ]
    measured = [line for line in error.get_lines() if len(line.get_xdata()) == 9]
    assert len(measured) == 2 * len(attention_ideas.INPUT_SIZES)


def test_heads_with_one_shift_each_are_a_convolution() -> None:
    """Nine heads, each a shifted diagonal; weighed, they are a convolution of nine weights."""
    kernel = attention_ideas.shift_heads()
    x = torch.randn(1, 1, 20, 1).expand(-1, 9, -1, -1)
    maps = kernel.weights(x, x, x, AttentionMask(Position(), 1), None)[0][0]
    for head in range(9):
        expected = torch.diag(torch.ones(20 - abs(head - 4)), head - 4)
        torch.testing.assert_close(maps[head], expected)
    taps = torch.randn(9)
    heads = kernel(x, x, x, AttentionMask(Position(), 1), None)[0][0, :, :, 0]
    convolved = torch.nn.functional.conv1d(x[:, 0, :, 0][None], taps[None, None], padding=4)
    torch.testing.assert_close(taps @ heads, convolved[0, 0], atol=1e-5, rtol=1e-5)


def test_scores_have_variance_one_only_if_divided() -> None:
    """Random queries and keys: variance d without the scale, 1 with it (idea of sqrt(d))."""
    with styled():
        figure = attention_ideas.plot_scale(PlotArgs())
    plain, scaled, largest = figure.axes
    for axes, expected in ((plain, [4, 64, 512]), (scaled, [1, 1, 1])):
        texts = [text.get_text() for text in axes.get_legend().get_texts()]
        variances = [float(text.split()[-1]) for text in texts]
        assert variances == pytest.approx(expected, rel=0.1)
    without, with_scale = (line.get_ydata() for line in largest.get_lines())
    widths = list(attention_ideas.WIDTHS)
    for width, mean in ((4, 0.50), (64, 0.87), (512, 0.95)):
        assert without[widths.index(width)] == pytest.approx(mean, abs=0.02)
        assert with_scale[widths.index(width)] == pytest.approx(0.315, abs=0.02)


def test_the_error_of_random_features_falls_as_they_grow() -> None:
    """Sixteen times as many features: about a quarter of the error, for small inputs."""
    inputs = attention_ideas.random_inputs(0.25)
    few, many = (attention_ideas.feature_error(m, *inputs) for m in (16, 256))
    assert few / many == pytest.approx(4.0, rel=0.25)


def write_validations(folder: Path, losses: list[float], scores: list[float]) -> Path:
    """A run folder with these validations, and training steps with scheduled sampling."""
    folder.mkdir()
    config = TransduceConfig.model_validate(
        {"task": {"metric": "exact_match"}, "objective": {"kind": "scheduled", "passes": 2}}
    )
    (folder / "config.yaml").write_text(config.dump())
    lines = [
        {"kind": "dev", "step": 10 * n, "loss": loss, "scores": {"exact_match": score}}
        for n, (loss, score) in enumerate(zip(losses, scores, strict=True), 1)
    ]
    lines += [
        {"kind": "train", "step": 5 * n, "loss": 1.0, "own_inputs": 0.1 * n, "wrong_inputs": 0.05}
        for n in range(1, 4)
    ]
    (folder / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return folder


def test_validations_of_a_run(tmp_path: Path) -> None:
    """The lowest loss comes before the best metric."""
    run = write_validations(tmp_path / "run", [0.9, 0.5, 0.6], [40.0, 50.0, 60.0])
    out = tmp_path / "x.svg"
    plot_command("checkpoints", out, PlotArgs(run=run))
    assert xml.parse(out).getroot().tag.endswith("svg")
    (legend,) = checkpoints.plot_checkpoints(PlotArgs(run=run)).legends
    names = [text.get_text() for text in legend.get_texts()]
    assert names == ["lowest loss: step 20", "best metric: step 30"]
    with pytest.raises(UserError, match="expected a run folder"):
        plot_command("checkpoints", out, PlotArgs())
    few = write_validations(tmp_path / "few", [0.9], [40.0])
    with pytest.raises(UserError, match=r"at least 3 validations .* found 1"):
        checkpoints.plot_checkpoints(PlotArgs(run=few))


def test_own_inputs_of_a_run(tmp_path: Path) -> None:
    run = write_validations(tmp_path / "run", [0.9], [40.0])
    (axes,) = decay_plot.plot_decays(PlotArgs(run=run)).axes
    own, wrong = (line.get_ydata() for line in axes.get_lines())
    assert list(own) == pytest.approx([0.1, 0.2, 0.3]) and list(wrong) == [0.05] * 3
    (run / "metrics.jsonl").write_text("")
    with pytest.raises(UserError, match="has no scheduled sampling"):
        decay_plot.plot_decays(PlotArgs(run=run))
