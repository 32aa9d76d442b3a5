"""Graphs from tables: what is read, what is counted, what is an error; training and prediction."""

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import regard
from regard.config.defaults import fill_defaults
from regard.config.load import check_config
from regard.core.data_stats import DataStats
from regard.core.errors import UserError
from regard.data.checks.check_graph import check_nodes, component_sizes
from regard.data.reading.graph import Bags, NodeSet
from regard.data.reading.graphs import NodeColumns, Reading, read_graphs
from regard.data.reading.read import Pair
from regard.data.sources.communities import communities
from regard.data.sources.graphs import open_graphs, read_graph_pairs
from regard.data.sources.open import DataSpec
from regard.experiments.diagnose.losses import by_position
from regard.experiments.diagnose.rival import choose_rival
from regard.inference.predictor import Predictor

NODES = "a\tx\ttrain\t0 5\nb\ty\tval\t2\nc\tx\ttrain\t1 2 7\nd\t\trest\t\n"
EDGES = "a\tb\nb\tc\n"
COLUMNS = NodeColumns("1", "4", "2", "3")


def write(folder: Path, nodes: str = NODES, edges: str = EDGES) -> tuple[str, str]:
    for name, text in (("nodes.tsv", nodes), ("edges.tsv", edges)):
        (folder / name).write_text(text, "utf-8")
    return str(folder / "nodes.tsv"), str(folder / "edges.tsv")


def spec(folder: Path, **more: str) -> DataSpec:
    nodes, edges = write(folder)
    names = {"id_column": "1", "source_column": "4", "target_column": "2", "split_column": "3"}
    return DataSpec(nodes, edges=edges, **names | more)


def test_tables_become_a_graph(tmp_path: Path) -> None:
    data = read_graphs(*write(tmp_path), COLUMNS, Reading())
    (graph,) = data.graphs
    assert graph.nodes == ("a", "b", "c", "d")
    assert isinstance(graph.features, Bags)
    assert graph.features.flat.tolist() == [0, 5, 2, 1, 2, 7]
    assert graph.features.lengths.tolist() == [2, 1, 3, 0]
    assert graph.ends.T.tolist() == [[0, 1], [1, 2]]
    assert data.labels == ["x", "y", "x", ""] and graph.degrees.tolist() == [1, 2, 1, 0]
    assert "1 node without edges" in data.notes
    assert any("8 indices, 1.5 per node; 1 nodes have none" in note for note in data.notes)


def test_other_formats_read_the_same(tmp_path: Path) -> None:
    expected = read_graphs(*write(tmp_path), COLUMNS, Reading()).graphs[0].digest
    rows = [line.split("\t") for line in NODES.splitlines()]
    names = ("id", "label", "split", "features")
    records = [dict(zip(names, row, strict=True)) for row in rows]
    for record in records:
        record["features"] = [int(one) for one in record["features"].split()]
    lines = "\n".join(map(json.dumps, records))
    (tmp_path / "n.jsonl").write_text(lines, "utf-8")
    with gzip.open(tmp_path / "e.csv.gz", "wt") as file:
        file.write("source,target\n" + EDGES.replace("\t", ","))
    columns = NodeColumns(None, "features", None, "split")
    paths = str(tmp_path / "n.jsonl"), str(tmp_path / "e.csv.gz")
    found = read_graphs(*paths, columns, Reading()).graphs[0]
    assert found.digest == expected


def test_loops_and_repeated_edges_are_counted(tmp_path: Path) -> None:
    edges = EDGES + "b\ta\na\tb\nc\tc\n"
    data = read_graphs(*write(tmp_path, edges=edges), COLUMNS, Reading())
    assert len(data.graphs[0].kind) == 2
    assert any("1 edge from a node to itself (c)" in note for note in data.notes)
    assert any("2 edges that occur twice, or the other way round" in note for note in data.notes)
    directed = read_graphs(*write(tmp_path, edges=edges), COLUMNS, Reading(directed=True))
    assert directed.graphs[0].ends.T.tolist() == [[0, 1], [1, 2], [1, 0]]


def test_a_third_column_is_the_relation(tmp_path: Path) -> None:
    data = read_graphs(*write(tmp_path, edges="a\tb\tcites\nb\tc\tknows\n"), COLUMNS, Reading())
    assert data.graphs[0].relations == ("cites", "knows")
    assert data.graphs[0].kind.tolist() == [0, 1]


@pytest.mark.parametrize(
    ("nodes", "edges", "said"),
    [
        (NODES, "a\tz\n", "edges.tsv line 1: no node 'z' in the table of nodes"),
        (NODES, "", "the file is empty: expected a row per edge"),
        (NODES, "a\ta\n", "no edge between two nodes"),
        (NODES, "a\n", "expected two nodes and perhaps a relation, found 1"),
        (NODES, "a\tb\tr\tw\n", "found 4 columns"),
        (NODES + "a\tx\ttrain\t1\n", EDGES, "line 5: node 'a' occurs twice: also in line 1"),
        (NODES + "e\tx\ttrain\t-3 4\n", EDGES, "line 5: expected indices >= 0, found -3"),
        (NODES + "e\tx\ttrain\t99999999 4\n", EDGES, "indices up to 10,000,000"),
        (NODES + "e\tx\n", EDGES, "line 5: expected 4 columns, as in line 1, found 2"),
        (NODES + "\tx\ttrain\t4\n", EDGES, "line 5: expected the name of a node"),
        (
            "a\tx\ttrain\t1.5 2\nb\ty\tval\t2.5 1\nc\tx\ttrain\t1.5\n" * 1,
            EDGES,
            "expected 2 numbers",
        ),
    ],
)
def test_bad_tables_are_errors(tmp_path: Path, nodes: str, edges: str, said: str) -> None:
    with pytest.raises(UserError) as caught:
        read_graphs(*write(tmp_path, nodes, edges), COLUMNS, Reading())
    assert said in str(caught.value)


def test_graphs_of_a_column(tmp_path: Path) -> None:
    nodes = "g1\ta\tx\t0.5\ng2\tb\ty\t1.5\ng1\tc\tx\t2.5\ng2\td\ty\t0.1\n"
    columns = NodeColumns("2", "4", "3", None, "1")
    paths = write(tmp_path, nodes, "a\tc\nb\td\n")
    data = read_graphs(*paths, columns, Reading())
    assert [graph.nodes for graph in data.graphs] == [("a", "c"), ("b", "d")]
    assert [graph.ends.T.tolist() for graph in data.graphs] == [[[0, 1]], [[0, 1]]]
    assert data.graphs[0].features.tolist() == [[0.5], [2.5]]
    with pytest.raises(UserError, match="nodes 'a' and 'b' are in different graphs"):
        read_graphs(*write(tmp_path, nodes, "a\tb\n"), columns, Reading())
    with pytest.raises(UserError, match="graph 'g1' has labels x, z: expected one"):
        mixed = write(tmp_path, nodes.replace("c\tx", "c\tz"), "a\tc\n")
        found = DataSpec(
            mixed[0], None, None, "4", "3", edges=mixed[1], id_column="2", graph_column="1"
        )
        read_graph_pairs(found, Reading(), lambda cell: (cell,))


def test_usual_names_in_the_first_line_are_a_header(tmp_path: Path) -> None:
    """Features are texts, so no number tells the header from the nodes."""
    nodes = "name of node\ttopic\tsplit\twords\na\tx\ttrain\tred\nb\ty\tval\tblue\n"
    columns = NodeColumns("1", "4", "2", "3")
    data = read_graphs(*write(tmp_path, nodes, "a\tb\n"), columns, Reading())
    assert data.graphs[0].nodes == ("a", "b") and data.labels == ["x", "y"]
    assert any(note.startswith("first line is a header") for note in data.notes)
    labels = nodes.replace("split", "train").replace("topic", "label").replace("\tx", "\tlabel")
    data = read_graphs(*write(tmp_path, labels, "a\tb\n"), columns, Reading())
    assert len(data.graphs[0].nodes) == 3  # `label` occurs twice, so it is a label


def test_only_labels_are_split(tmp_path: Path) -> None:
    data = open_graphs(spec(tmp_path), DataSpec(), Reading(), None)
    (train,), (dev,) = data.train, data.dev
    assert train.source is dev.source and len(train.source) == 4
    assert train.target == ("x", None, "x", None) and dev.target == (None, "y", None, None)
    (pair,) = read_graph_pairs(spec(tmp_path, split="val"), Reading(), None).pairs
    assert pair.target == dev.target
    with pytest.raises(UserError, match=r"--split vall: no row has this split.*did you mean val"):
        read_graph_pairs(spec(tmp_path, split="vall"), Reading(), None)
    with pytest.raises(UserError, match="--dev: not supported for graphs"):
        open_graphs(spec(tmp_path), DataSpec("x"), Reading(), None)
    with pytest.raises(UserError, match="--edges without --graph-column"):
        open_graphs(spec(tmp_path), DataSpec(), Reading(), lambda cell: (cell,))


def test_statistics_of_a_graph_by_hand(tmp_path: Path) -> None:
    data = open_graphs(spec(tmp_path), DataSpec(), Reading(), None)
    found = check_nodes(data.train, data.dev, 8)
    assert (found.nodes, found.edges, found.isolated, found.components) == (4, 2, 1, 2)
    assert found.largest_component == 3 and found.homophily == 0.0
    assert found.labels == {"x": 2} and found.unseen_labels == {"y": 1}
    assert sorted(component_sizes(data.train[0].source).tolist()) == [1, 3]


def test_a_neighborhood() -> None:
    graph = communities().graphs[0]
    (start,) = graph.around([0], 0)
    near = set(graph.around([start], 1).tolist()) - {start}
    a, b = graph.ends
    assert near == {*b[a == start].tolist(), *a[b == start].tolist()}
    part = graph.take(np.array(sorted(near)))
    assert part.nodes == tuple(graph.nodes[i] for i in sorted(near))


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> regard.Tagger:
    """A GCN of the built-in graph."""
    data = communities()
    graph, out = data.graphs[0], tmp_path_factory.mktemp("graphs") / "run"
    parts = [
        [
            label if split == name else None
            for label, split in zip(data.labels, data.splits, strict=True)
        ]
        for name in ("train", "dev", "test")
    ]
    bags = np.split(graph.features.flat, graph.features.starts[1:])
    tagger = regard.Tagger(out=str(out), epochs=40, verbose=False)
    tagger.fit([bag.tolist() for bag in bags], parts[0], dev=parts[1], edges=graph.ends.T)
    tagger.test_ = parts[2]
    return tagger


def test_edges_make_it_better_than_words_alone(run: regard.Tagger) -> None:
    """Words alone: a node has 2 of its 6 from its own group, the rest says nothing."""
    assert run.evaluate(y=run.test_)["accuracy"] > 80
    assert run.config_.model.encoder.kind == "gcn"


def test_a_loaded_run_predicts_the_same_by_name(run: regard.Tagger) -> None:
    loaded = regard.load(run.folder_)
    assert loaded.predict() == run.predict() and loaded.predict([5, 3]) == run.predict([5, 3])
    task = loaded.predictor_.task
    (found,) = loaded.predictor_.predict([task.parse("5 3")])
    assert list(found.value) == run.predict([5, 3])
    with pytest.raises(UserError, match="'x': no such node in the training graph, which has 240"):
        task.parse("x")


def test_predictions_name_nodes(
    run: regard.Tagger, command: Callable[..., Any], tmp_path: Path
) -> None:
    """The lines of a table start with the node; those of a graph as JSON have only labels."""
    nodes, edges = write(tmp_path, "a\t0 3\nb\t5 1\n", "a\tb\n")
    columns = ("--id-column", "1", "--source-column", "2")
    said = command("predict", run.folder_, "--input", nodes, "--edges", edges, *columns)
    assert [line.split("\t")[0] for line in said.out.splitlines()] == ["a", "b"], said.err
    text = '{"nodes": [[0, 3], [5, 1]], "edges": [[0, 1]]}'
    (line,) = command("predict", run.folder_, text).out.splitlines()
    assert line.split() == [row.split("\t")[1] for row in said.out.splitlines()]
    found = json.loads(command("predict", run.folder_, text, "--json").out)
    assert found["source"] == text and found["prediction"] == line.split()


def test_graphs_have_rivals_that_read_them() -> None:
    """A diagnosis tries other kinds of networks; those of texts cannot read nodes."""
    stats = DataStats(1, 240, 4, True, labels=True, source="graph", edges=1504, budget=6.0)
    for kind, other in (("gcn", "gat"), ("gat", "gcn")):
        tree = {
            "task": {"kind": "tag", "source": {"kind": "graph"}},
            "model": {"encoder": {"kind": kind}},
        }
        config = fill_defaults(check_config(tree, "run"), stats)[0]
        found = choose_rival(config, stats)
        assert found is not None and found.config.model.encoder.kind == other


def test_labels_of_some_nodes_have_no_position(run: regard.Tagger) -> None:
    task, model = run.task_, run.predictor_.engine.torch_module()
    graph = task.source.graph
    pair = Pair(graph, tuple(run.test_), 1)
    batch = task.corpus([pair]).batch(np.zeros(1, np.int64))
    assert by_position(model, [batch]) is None


def test_nodes_of_one_graph_are_computed_once(run: regard.Tagger) -> None:
    predictor: Predictor = run.predictor_
    graph = predictor.task.source.graph
    sources = [NodeSet(graph, (i,)) for i in (7, 1, 200)]
    batches = predictor.task.rows(sources).batches(1, 10, 1)
    assert batches == [[0, 1, 2]]
    values = [found.value[0] for found in predictor.predict(sources)]
    assert values == run.predict([7, 1, 200])


def test_another_graph_as_json_and_as_arrays(run: regard.Tagger) -> None:
    nodes, edges = [[0, 3], [5], [1, 2]], [[0, 1], [1, 2]]
    source = run.task_.parse(json.dumps({"nodes": nodes, "edges": edges}))
    (found,) = run.predictor_.predict([source])
    assert list(found.value) == run.predict(nodes, edges=np.array(edges))
    for text, said in (
        ('{"nodes": []}', "at least one node"),
        ('{"nodes": [[1]], "edges": [[0, 4]]}', "edges.0: no node 4"),
        ('{"nodes": [[-1]]}', "expected indices from 0"),
        ('{"nodes": [["a"]]}', "expected a list of numbers"),
        ('{"nodes": [[500]]}', "node 0: index 500: expected less than"),
        ('{"edges": []}', "expected an object with the keys nodes and edges"),
        ("{", "invalid JSON"),
    ):
        with pytest.raises(UserError, match=said):
            run.predictor_.predict([run.task_.parse(text)])


def test_inspection_shows_the_neighborhood(run: regard.Tagger) -> None:
    found = regard.inspect(run, "5").as_dict()
    graph = run.task_.source.graph
    shown = found["graph"]
    assert shown["nodes"][0] == "5" == found["source"]["text"]
    assert set(shown["nodes"]) == {graph.nodes[i] for i in graph.around([5], 2)}
    assert found["target"]["tokens"] == run.predict([5])
    assert np.array(shown["positions"]).shape == (len(shown["nodes"]), 2)
    # saliency: zero beyond the two layers, here all shown; its own features count
    assert len(found["saliency"]["values"][0]) == len(shown["nodes"])
    assert found["saliency"]["values"][0][0] > 0


def test_a_corrupted_graph_is_an_error(run: regard.Tagger, tmp_path: Path) -> None:
    run.save(tmp_path / "copy")
    path = tmp_path / "copy" / "vocabulary" / "graph.json"
    tree = json.loads(path.read_text("utf-8"))
    tree["nodes"][0] = "other"
    path.write_text(json.dumps(tree), "utf-8")
    with pytest.raises(UserError, match="not the graph of the training data"):
        regard.load(tmp_path / "copy")


def test_crf_and_other_metrics_are_rejected_by_name() -> None:
    y = ["x", "y", "x", None]
    for settings, said in (
        ({"model.head": "crf"}, "model.head=crf: not supported for graphs"),
        ({"task.metric": "f1"}, "task.metric=f1: not available for this data"),
        ({"model.encoder.kind": "recurrent"}, "does not support the nodes"),
    ):
        with pytest.raises(UserError, match=said):
            regard.Tagger(verbose=False, epochs=1, settings=settings).fit(
                np.eye(4), y, dev=y, edges=[[0, 1]]
            )
    with pytest.raises(UserError, match=r"y: expected a label or None per node \(4\), found 2"):
        regard.Tagger().fit(np.eye(4), ["x", "y"], edges=[[0, 1]])


def test_graphs_with_one_label_each() -> None:
    graphs = [
        {"nodes": [[1.0, i % 3]] * 4, "edges": [[0, 1], [1, 2], [2, 3]] if i % 2 else [[0, 1]]}
        for i in range(12)
    ]
    labels = [i % 2 for i in range(12)]
    found = regard.Classifier(verbose=False, epochs=2).fit(graphs, labels)
    assert set(found.predict(graphs).tolist()) <= {0, 1}
    assert found.config_.model.encoder.kind == "gcn"


def test_edges_of_nodes_that_are_named_like_a_header_are_no_header(tmp_path: Path) -> None:
    nodes = "".join(f"{name}\tx\ttrain\t{i}\n" for i, name in enumerate("uvws"))
    paths = write(tmp_path, nodes, "v\tu\nv\tw\nv\ts\n")
    data = read_graphs(*paths, COLUMNS, Reading(directed=True))
    assert data.graphs[0].ends.T.tolist() == [[1, 0], [1, 2], [1, 3]]
    data = read_graphs(*write(tmp_path, nodes, "u\tv\tcites\n"), COLUMNS, Reading())
    assert data.graphs[0].relations == ("cites",)
    with pytest.raises(UserError, match="named source and target"):
        read_graphs(*write(tmp_path, nodes, "node1\tnode2\nu\tv\n"), COLUMNS, Reading())


def test_inspection_computes_all_nodes_that_attention_reaches() -> None:
    """Attention with a bias by distance also reads nodes that no path leads to."""
    encoder = {"kind": "transformer", "attention": "distances", "positions": "none", "layers": 1}
    settings = {f"model.encoder.{name}": value for name, value in encoder.items()}
    edges = [[0, 1], [2, 3], [3, 4], [4, 5], [5, 6]]
    y = ["x", "y", "x", "x", "y", "x", "y"]
    found = regard.Tagger(verbose=False, epochs=3, settings=settings)
    found.fit(np.eye(7), y, dev=y, edges=edges)
    task = found.task_
    (expected,) = found.predictor_.predict([task.parse("0")])
    seen = regard.inspect(found, "0").as_dict()
    assert seen["score"] == pytest.approx(expected.score, abs=1e-4)
    assert seen["saliency"]["values"]


def test_labels_as_floats_are_those_as_integers() -> None:
    features, edges = np.eye(6), [[i, i + 1] for i in range(5)]
    y = np.array([0, 1, 0, np.nan, 0, 1])
    tagger = regard.Tagger(verbose=False, epochs=1).fit(features, y, dev=y, edges=edges)
    assert set(tagger.predict()) <= {0, 1}
    whole = [0, 1, 0, None, 0, 1]
    assert tagger.evaluate(y=y)["accuracy"] == tagger.evaluate(y=whole)["accuracy"]
    assert sorted(tagger.task_.tags) == ["0", "1"]


def test_graphs_with_lists_of_indices_have_one_kind_of_features() -> None:
    graphs = [
        {"nodes": [[0], [1]], "edges": [(0, 1)]},
        {"nodes": [[0, 1], [2], [1]], "edges": [(0, 1), (1, 2)]},
    ]
    for some in (graphs, graphs[::-1]):
        found = regard.Classifier(verbose=False, epochs=1).fit(some * 6, [0, 1] * 6)
        assert found.task_.source.features == "bag"
        assert len(found.predict(some[:1])) == 1
    with pytest.raises(UserError, match="features of nodes are text in a graph: expected bag"):
        words = {"nodes": ["a b", "b a"], "edges": [(0, 1)]}
        regard.Classifier(verbose=False, epochs=1).fit([*graphs, words] * 4, [0, 1, 0] * 4)


def test_new_graphs_need_no_labels_and_splits_count_graphs(
    command: Callable[..., Any], tmp_path: Path
) -> None:
    rows = [
        f"g{g}\tn{g}{i}\t{g % 3 + i}.5\t{'xy'[g % 2]}\t{('train', 'dev', 'test')[g % 3]}"
        for g in range(9)
        for i in range(3)
    ]
    nodes, edges = write(
        tmp_path,
        "\n".join([*rows, ""]),
        "".join(f"n{g}{i}\tn{g}{i + 1}\n" for g in range(9) for i in range(2)),
    )
    columns = ["--graph-column", "1", "--id-column", "2", "--source-column", "3"]
    columns += ["--target-column", "4", "--split-column", "5"]
    out = tmp_path / "run"
    words = ("train", nodes, "--edges", edges, "--task", "classify", *columns)
    said = command(*words, "--epochs", "1", "--out", out)
    assert said.code == 0, said.err
    assert "3 graphs for training, 3 for validation; labels not used: test (3)" in said.err
    said = command("evaluate", out, nodes, "--edges", edges, "--split", "test")
    assert "split test: 3 of 9 graphs" in said.err, said.err
    new = tmp_path / "new.tsv"
    new.write_text("".join("\t".join(row.split("\t")[:3]) + "\n" for row in rows[:3]), "utf-8")
    said = command("predict", out, "--input", new, "--edges", edges)
    assert said.code == 2 and "no node 'n10'" in said.err  # the edges of other graphs
    few = tmp_path / "few.tsv"
    few.write_text("n00\tn01\nn01\tn02\n", "utf-8")
    said = command("predict", out, "--input", new, "--edges", few)
    assert said.code == 0 and said.out.startswith("g0\t"), said.err
