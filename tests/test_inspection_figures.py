"""Figures of an inspection: what stands where, read back from what was drawn."""

import warnings
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy
import pytest
import torch

from regard.cli import inspect
from regard.config.configs import TransduceConfig
from regard.core.errors import UserError
from regard.exchange import engine_choice
from regard.nn.capture import MapKind
from regard.views.figures.fonts import fonts_for
from regard.views.figures.style import save, styled
from regard.views.inspection import figures, inspecting, terminal
from regard.views.inspection.figure_maps import plot_large
from regard.views.inspection.figure_views import Heatmap, attention_maps
from regard.views.inspection.figures import VIEWS, available_views, plot_view
from regard.views.inspection.internals import hidden_columns

SOURCE, TARGET = ["c", "a", "t", "</s>"], ["K", "AE", "</s>"]


def weights(seed: int, rows: int, columns: int) -> list[list[float]]:
    """Rows that sum to 1."""
    drawn = numpy.random.default_rng(seed).random((rows, columns))
    return (drawn / drawn.sum(1, keepdims=True)).tolist()


def attention(part: str, rows: str, columns: str, sizes: tuple[int, int]) -> list[dict[str, Any]]:
    """Two layers of three heads."""
    return [
        {
            "name": f"{part}.layers.{layer}",
            "part": part,
            "layer": layer,
            "rows": rows,
            "columns": columns,
            "heads": [weights(10 * layer + head + len(part), *sizes) for head in range(3)],
            "entropy": [1.0] * 3,
            "ablation_delta": [0.0] * 3,
        }
        for layer in range(2)
    ]


def gate(name: str, part: str, rows: str, length: int, direction: str) -> dict[str, Any]:
    units = numpy.random.default_rng(len(name)).random((length, 5))
    about = {"name": f"{part}.{direction}", "part": part, "layer": 0, "direction": direction}
    return {**about, "gate": name, "rows": rows, "mean": units.mean(1).tolist(), "units": units}


def node(id: int, parent: int | None, token: str, p: float, status: str, **marks: Any) -> Any:
    about = {"total": -0.5 * id, "score": None, "best": False, "greedy": False}
    return {
        "id": id,
        "parent": parent,
        "token": token,
        "probability": p,
        "status": status,
        **about,
        **marks,
    }


def sample() -> dict[str, Any]:
    """An inspection of everything."""
    nodes = [
        node(0, None, "K", 0.6, "kept", greedy=True),
        node(1, None, "G", 0.4, "kept", best=True),
        node(2, 0, "</s>", 0.5, "finished", greedy=True, score=-1.25),
        node(3, 1, "</s>", 0.9, "finished", best=True, score=-1.0),
        node(4, 0, "AA", 0.1, "pruned"),
    ]
    before = {"rows": "target", "columns": "inputs", "values": weights(8, 3, 3)}
    saliency = {"rows": "target", "columns": "source", "values": weights(7, 3, 4)}
    others = [["G", 0.2], ["T", 0.1]]
    return {
        "format": 1,
        "version": "0.1.0",
        "model": {"name": "g2p", "task": "transduce", "description": "", "parameters": 1},
        "source": {"text": "cat", "tokens": SOURCE},
        "target": {"text": "K AE", "tokens": TARGET, "forced": False},
        "inputs": ["<s>", "K", "AE"],
        "score": -0.3,
        "truncated": False,
        "unknown_tokens": [],
        "steps": [
            {"token": one, "probability": 0.7 - 0.1 * n, "alternatives": others}
            for n, one in enumerate(TARGET)
        ],
        "attention": [
            *attention("encoder", "source", "source", (4, 4)),
            *attention("decoder", "target", "inputs", (3, 3)),
            *attention("cross", "target", "source", (3, 4)),
        ],
        "saliency": {**saliency, "decoder_inputs": before},
        "gates": [
            *(gate(name, "encoder", "source", 4, "forward") for name in ("reset", "update", "new")),
            *(
                gate(name, "encoder", "source", 4, "backward")
                for name in ("reset", "update", "new")
            ),
        ],
        "tree": {
            "beam": 2,
            "nodes": nodes,
            "best": "G",
            "greedy": "K",
            "scores": {"best": -1.0, "greedy": -1.25},
        },
        "notes": ["A note of why."],
    }


def maps_of(figure: Any) -> list[Any]:
    """The panels that hold a map."""
    return [axes for axes in figure.axes if axes.get_images()]


def ticks(axes: Any, which: str) -> list[str]:
    labels = axes.get_xticklabels() if which == "x" else axes.get_yticklabels()
    return [label.get_text() for label in labels]


def values(axes: Any) -> Any:
    return numpy.asarray(axes.get_images()[0].get_array())


def texts(figure: Any) -> set[str]:
    from matplotlib.text import Text

    return {found.get_text() for found in figure.findobj(Text)}


def written(figure: Any, path: Path) -> bytes:
    """The file, drawn without a warning: no sign is without a font."""
    with warnings.catch_warnings(), styled():
        warnings.simplefilter("error")
        save(figure, path)
    return path.read_bytes()


@pytest.mark.parametrize("part", ["cross", "decoder", "encoder"])
def test_the_grid_has_every_head_in_its_place(part: str) -> None:
    """A row a layer; tokens stand at the left and at the bottom only; all have one scale."""
    inspection = sample()
    entries = [one for one in inspection["attention"] if one["part"] == part]
    found = maps_of(plot_view(inspection, part))
    assert len(found) == 6
    names = {"source": SOURCE, "target": TARGET, "inputs": ["<s>", "K", "AE"]}
    for n, axes in enumerate(found):
        layer, head = divmod(n, 3)
        assert axes.get_title(loc="left") == f"layer {layer}, head {head}"
        assert numpy.array_equal(values(axes), numpy.asarray(entries[layer]["heads"][head]))
        assert ticks(axes, "y") == (names[entries[0]["rows"]] if head == 0 else [])
        assert ticks(axes, "x") == (names[entries[0]["columns"]] if layer == 1 else [])
        top = max(max(map(max, weights)) for entry in entries for weights in entry["heads"])
        assert axes.get_images()[0].get_clim() == (0, top)


def test_one_layer_one_head_and_one_map() -> None:
    inspection = sample()
    cross = [one["heads"] for one in inspection["attention"] if one["part"] == "cross"]
    assert [axes.get_title(loc="left") for axes in maps_of(plot_view(inspection, layer=1))] == [
        f"layer 1, head {head}" for head in range(3)
    ]
    found = maps_of(plot_view(inspection, "cross", head=2))
    assert [values(axes).tolist() for axes in found] == [cross[0][2], cross[1][2]]
    (axes,) = maps_of(plot_view(inspection, layer=1, head=2))
    assert values(axes).tolist() == cross[1][2]
    assert (ticks(axes, "x"), ticks(axes, "y")) == (SOURCE, TARGET)
    said = [text.get_text() for text in axes.texts]
    assert said == [f"{x:.2f}".lstrip("0") for row in cross[1][2] for x in row if x >= 0.005]


def test_many_heads_of_one_layer_stand_in_rows() -> None:
    inspection = sample()
    entry = inspection["attention"][-1]
    entry["heads"] = [weights(seed, 3, 4) for seed in range(7)]
    inspection["attention"] = [entry]
    found = maps_of(plot_view(inspection, "cross"))
    assert [values(axes).tolist() for axes in found] == entry["heads"]
    rows = {axes.get_subplotspec().rowspan.start for axes in found}
    assert rows == {0, 1} and all(ticks(axes, "x") == SOURCE for axes in found[-4:])


def test_alignment_is_the_mean_of_the_last_layer() -> None:
    inspection = sample()
    (axes,) = maps_of(plot_view(inspection, "alignment"))
    expected = numpy.mean(inspection["attention"][-1]["heads"], axis=0)
    assert numpy.allclose(values(axes), expected)


def test_the_default_is_the_output_and_its_attention() -> None:
    """Of cross attention if there is, else the decoder's, else the encoder's; else saliency."""
    inspection = sample()
    for part in ("cross", "decoder", "encoder"):
        figure = plot_view(inspection)
        assert len(maps_of(figure)) == 6 and f"{part} attention" in texts(figure)
        (steps,) = [axes for axes in figure.axes if axes.patches]
        assert ticks(steps, "x") == TARGET
        inspection["attention"] = [one for one in inspection["attention"] if one["part"] != part]
    assert len(maps_of(plot_view(inspection))) == 2
    inspection["saliency"] = None
    figure = plot_view(inspection)
    assert not maps_of(figure) and [ticks(axes, "x") for axes in figure.axes] == [TARGET]
    assert figure.get_suptitle() == "cat → K AE"


def test_steps_are_bars_with_what_else_might_have_come() -> None:
    (axes,) = plot_view(sample(), "steps").axes
    heights = [round(bar.get_height(), 6) for bar in axes.patches]
    assert heights == [0.7, 0.2, 0.1, 0.6, 0.2, 0.1, 0.5, 0.2, 0.1]
    feet = [round(bar.get_y(), 6) for bar in axes.patches]
    assert feet == [0, 0.7, 0.9, 0, 0.6, 0.8, 0, 0.5, 0.7]
    assert [text.get_text() for text in axes.texts][:3] == ["0.70", "G", "T"]
    inspection = sample()
    inspection["steps"] *= 11  # 33 tokens take two rows
    first, second = plot_view(inspection, "steps").axes
    assert len(ticks(first, "x")) + len(ticks(second, "x")) == 33
    inspection["steps"] = [{"token": "good", "probability": 0.8, "alternatives": [["bad", 0.2]]}]
    (axes,) = plot_view(inspection, "steps").axes
    assert ticks(axes, "y") == ["good", "bad"]
    assert [round(bar.get_width(), 6) for bar in axes.patches] == [0.8, 0.2]


def test_saliency_is_in_shares_of_all_that_was_read() -> None:
    inspection = sample()
    left, right = maps_of(plot_view(inspection, "saliency"))
    raw = numpy.asarray(inspection["saliency"]["values"])
    assert numpy.allclose(values(left).sum(1) + values(right).sum(1), 1)
    assert numpy.allclose(values(left) / values(left).sum(1, keepdims=True), raw)
    assert ticks(right, "x") == ["<s>", "K", "AE"]


def test_gates_have_a_row_a_direction_and_a_column_a_gate() -> None:
    inspection = sample()
    figure = plot_view(inspection, "gates", layer=0)
    titles = [axes.get_title(loc="left") for axes in figure.axes]
    assert titles == ["reset", "update", "new"] * 2
    for axes, entry in zip(figure.axes, inspection["gates"], strict=True):
        assert axes.get_lines()[0].get_ydata().tolist() == entry["mean"]
        assert ticks(axes, "x") == SOURCE
        assert axes.get_ylim()[0] < -1 or entry["gate"] != "new"
        assert len(axes.collections) == 1  # the band
    inspection["gates"][0]["units"] = []
    assert not plot_view(inspection, "gates").axes[0].collections


def test_the_tree_has_both_paths() -> None:
    inspection = sample()
    said = texts(plot_view(inspection, "tree"))
    assert {"K", "G", "AA", "0.60", "0.40", "greedy: -1.250", "best of beam 2: -1.000"} <= said
    nodes = inspection["tree"]["nodes"]
    nodes += [node(5 + n, 1, f"x{n}", 0.001, "pruned") for n in range(90)]
    said = texts(plot_view(inspection, "tree"))
    assert {"K", "AA", "x0"} <= said and "x89" not in said
    (omitted,) = [text for text in said if "are omitted" in text]
    assert omitted.startswith(f"{91 - sum(f'x{n}' in said for n in range(90)) - ('AA' in said)} ")


def test_characters_without_a_glyph_are_code_points(tmp_path: Path) -> None:
    """No sign without ink: it is in a font of the figure, or stands there as its number."""
    inspection = sample()
    inspection["source"]["tokens"] = ["你", "سلام", "$a$", "\n"]
    inspection["target"]["tokens"] = ["\ud800", "\U000e0fff", " "]
    inspection["source"]["text"] = "你 $a$\x07"
    figure = plot_view(inspection)
    found = maps_of(figure)
    assert ticks(found[-1], "x")[2:] == ["$a$", "↵"]
    assert ticks(found[0], "y") == ["U+D800", "U+E0FFF", "␣"]
    known = fonts_for(["你"])
    assert ("你" in ticks(found[-1], "x")) == (not known.missing)
    assert any("no installed font covers" in text for text in texts(figure)) == bool(known.missing)
    assert written(figure, tmp_path / "a.png").startswith(b"\x89PNG")
    assert b"</svg>" in written(figure, tmp_path / "a.svg")


def test_fonts_are_selected_from_those_installed(monkeypatch: Any) -> None:
    """Where there is none but matplotlib's own, the signs it lacks are named."""
    from matplotlib import font_manager

    monkeypatch.setattr(font_manager, "findSystemFonts", lambda: [])
    alone = fonts_for(["a你"])
    assert alone.families == ("DejaVu Sans",) and alone.missing == {"你"}
    assert alone.label("a你") == "aU+4F60" and "U+4F60" in alone.warnings[0]
    assert fonts_for(["aжשل→"]).missing == frozenset()


def test_what_one_must_know_stands_under_the_figure() -> None:
    inspection = {**sample(), "truncated": True, "unknown_tokens": ["ж"]}
    (under,) = [
        text for text in texts(plot_view(inspection, "steps")) if "output truncated" in text
    ]
    assert under.endswith("unknown tokens: ж")


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({"view": "heads"}, "--view heads: expected one of steps, alignment, cross"),
        (
            {"view": "pooling"},
            "--view pooling: not available for this model; available: steps, align",
        ),
        (
            {"view": "cross", "layer": 2},
            r"--layer 2: expected a layer of cross attention \(0-based\): 0, 1",
        ),
        ({"head": -1}, r"--head -1: expected a head of cross attention \(0-based\): 0, 1, 2"),
        ({"view": "tree", "head": 1}, "--head 1: not supported for --view tree"),
        ({"view": "steps", "layer": 1}, "--layer 1: not supported for --view steps"),
        ({"view": "gates", "layer": 3}, r"--layer 3: expected a layer with gates \(0-based\): 0"),
    ],
)
def test_unavailable_views_are_errors(settings: dict[str, Any], expected: str) -> None:
    with pytest.raises(UserError, match=expected):
        plot_view(sample(), **settings)


def test_a_model_without_attention_says_what_there_is() -> None:
    inspection = {**sample(), "attention": [], "tree": None}
    assert available_views(inspection) == ["steps", "saliency", "gates"]
    for settings in ({"view": "alignment"}, {"view": "tree"}, {"layer": 0}):
        with pytest.raises(
            UserError, match=r"available: steps, saliency, gates\nnote: A note of why"
        ):
            plot_view(inspection, **settings)  # type: ignore[arg-type]
    inspection |= {"saliency": None, "gates": [], "steps": [{"token": "", "value": 3.5}]}
    with pytest.raises(UserError, match="available: none"):
        plot_view(inspection)


def test_a_number_has_no_bars_but_its_saliency_is_plotted() -> None:
    inspection = {**sample(), "attention": [], "gates": [], "tree": None}
    inspection["steps"] = [{"token": "3.5", "value": 3.5}]
    inspection["saliency"] = {"rows": "one", "columns": "source", "values": [[1, 2, 3, 4]]}
    assert available_views(inspection) == ["saliency"]
    (axes,) = maps_of(plot_view(inspection))
    assert numpy.allclose(values(axes), [[0.1, 0.2, 0.3, 0.4]])


def test_the_command_plots_the_requested_view(tmp_path: Path, monkeypatch: Any) -> None:
    """--view, --layer and --head reach the figure; without a figure they are an error."""

    class Found:
        as_dict = staticmethod(sample)

    assert ", ".join(VIEWS) == inspect.VIEWS
    load = lambda folder: SimpleNamespace(config=TransduceConfig())  # noqa: E731
    monkeypatch.setattr(engine_choice, "load_predictor", load)
    monkeypatch.setattr(inspecting, "inspect_with_options", lambda *given: Found())
    path = tmp_path / "a.svg"
    drawn: list[tuple[Any, ...]] = []
    spy = lambda *args: drawn.append(args) or plot_view(*args)  # type: ignore[func-returns-value]  # noqa: E731
    monkeypatch.setattr(figures, "plot_view", spy)
    command = partial(inspect.inspect, model="m", text="cat")
    command(svg=path, view="cross", layer=1, head=2)
    assert drawn[0][1:] == ("cross", 1, 2) and path.stat().st_size > 5000
    for settings in ({"view": "tree"}, {"layer": 0}, {"head": 0}):
        with pytest.raises(UserError, match="requires a figure\nhelp: add --png or --svg"):
            command(**settings)
    with pytest.raises(UserError, match="--view trees: expected one of steps"):
        command(svg=path, view="trees")


def test_cells_that_no_head_can_attend_to_are_hatched() -> None:
    """Of a sparse kernel those with weight 0 in all heads, of a causal one later positions."""
    heads = torch.tensor([[[1.0, 0.0, 0.0], [0.5, 0.5, 0.0]], [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]])
    assert hidden_columns(heads, MapKind(sparse=True)) == ("011", "001")
    assert hidden_columns(heads, MapKind()) == ()  # zeros of others are small weights
    assert hidden_columns(torch.ones(1, 2, 2), MapKind(causal=True)) == ("01", "00")
    one = Heatmap("x", heads[0].numpy(), ["a", "b"], list("abc"), "rows", "columns", ("011", "001"))
    (panel,) = [axes for axes in plot_large("title", [one]).axes if axes.get_title() == "x"]
    (hatched,) = [part for part in panel.collections if part.get_hatch()]
    assert len(hatched.get_paths()) == 3
    found = sample()
    found["attention"] = [entry | {"implied": True} for entry in found["attention"]]
    titles = [
        one.title
        for row in attention_maps(found, "encoder", None, None, fonts_for(["a"]))
        for one in row
    ]
    assert all(title.startswith("encoder attention (implied), layer") for title in titles)


def test_negative_weights_have_colors_and_values_of_their_own() -> None:
    """As the weights of Linformer and Nyström may be; 0 is in the middle of the scale."""
    one = Heatmap("x", numpy.array([[-0.25, -0.05]]), ["a"], ["b", "c"], "rows", "columns")
    (panel,) = [axes for axes in plot_large("title", [one]).axes if axes.get_title() == "x"]
    assert panel.images[0].get_clim() == (-0.25, 0.25)
    assert [text.get_text() for text in panel.texts] == ["-.25", "-.05"]
    assert terminal._pairs([("b", -0.25), ("c", 0.001)]) == "b -0.25"
