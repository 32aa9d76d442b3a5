"""Models of graphs against formulas: GCN, GAT, attention along edges, relations, distances."""

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from regard.config.load import check_config
from regard.core.errors import UserError
from regard.data.corpus.graph_rows import connect
from regard.data.reading.graph import Graph
from regard.data.tensors.padded import Edges, Padded
from regard.inputs.frontend import Frontend
from regard.models.graph_attention import GatEncoderOptions
from regard.models.graph_convolution import GcnEncoderOptions
from regard.models.transformer_options import TransformerEncoderOptions
from regard.nn.kernels.distances import Distances, shortest_paths
from regard.nn.kernels.edges import EdgeAttention
from regard.nn.kernels.kernel import AttentionMask, Shape
from regard.nn.kernels.softmax import SoftmaxAttention
from regard.nn.neighbors import (
    Neighbors,
    edge_products,
    edge_sums,
    neighbor_softmax,
    weighted_sum,
)
from regard.nn.positions import Position

N, D = 6, 8
PATH = [(0, 1), (1, 2), (2, 3), (1, 3)]  # nodes 4 and 5 have no edges


class Same(Frontend):
    """A frontend that returns its input."""

    def __init__(self, relations: int = 0) -> None:
        super().__init__()
        self.width, self.relations = D, relations

    def forward(self, source: Padded) -> Padded:
        return source


def graph_of(pairs: list[tuple[int, ...]], count: int = N) -> Graph:
    array = np.array(pairs, np.int64).reshape(len(pairs), -1)
    kind = array[:, 2] if array.shape[1] == 3 else np.zeros(len(array), np.int64)
    names = tuple(map(str, range(count)))
    return Graph("g", names, np.zeros((count, 1)), array[:, :2].T, kind)


def edges_of(pairs: list[tuple[int, ...]], count: int = N, directed: bool = False) -> Edges:
    ends, kind, order = connect(graph_of(pairs, count), directed)
    row = np.zeros((1, len(kind)), np.int64)
    parts = (np.concatenate([row, ends]), kind, order)
    return Edges(*(torch.from_numpy(part) for part in parts))


def source(pairs: list[tuple[int, ...]], x: Tensor, directed: bool = False) -> Padded:
    mask = torch.ones(1, len(x), dtype=torch.bool)
    return Padded(x[None], mask, edges=edges_of(pairs, len(x), directed))


def adjacency(pairs: list[tuple[int, ...]], count: int = N) -> Tensor:
    """A + I."""
    found = torch.eye(count)
    for a, b, *_ in pairs:
        found[a, b] = found[b, a] = 1
    return found


def close(one: Tensor, other: Tensor) -> None:
    torch.testing.assert_close(one, other, atol=1e-5, rtol=1e-5)


def built(options: object, relations: int = 0) -> torch.nn.Module:
    torch.manual_seed(0)
    model = options.build_for(Same(relations)).eval()  # type: ignore[attr-defined]
    for weight in model.parameters():
        weight.data += 0.3 * torch.randn_like(weight)
    return model


def test_gradients_of_sums_over_neighbors() -> None:
    """Against finite differences."""
    torch.manual_seed(1)
    graph = Neighbors.of(edges_of(PATH), N, 1)
    count, kind = len(graph.kind), {"dtype": torch.float64, "requires_grad": True}
    x, q = (torch.randn(N, 2, 3, **kind) for _ in range(2))
    weights, a, b = torch.randn(count, 2, **kind), *(torch.randn(N, 2, **kind) for _ in range(2))
    assert torch.autograd.gradcheck(lambda w, x: weighted_sum(w, x, graph), (weights, x))
    assert torch.autograd.gradcheck(lambda q, x: edge_products(q, x, graph), (q, x))
    assert torch.autograd.gradcheck(lambda a, b: edge_sums(a, b, graph), (a, b))
    assert torch.autograd.gradcheck(lambda w: neighbor_softmax(w, graph), (weights,))


def test_edges_in_any_order_are_the_same_graph() -> None:
    edges = edges_of(PATH)
    mixed = torch.randperm(len(edges.kind), generator=torch.Generator().manual_seed(0))
    other = Neighbors.of(Edges(edges.ends[:, mixed], edges.kind[mixed]), N, 1)
    one, x = Neighbors.of(edges, N, 1), torch.randn(N, 1, D)
    close(
        weighted_sum(torch.ones(len(one.kind), 1), x, one),
        weighted_sum(torch.ones(len(one.kind), 1), x, other),
    )


def test_gcn_is_the_formula_of_the_paper() -> None:
    """A' relu(A' x + b), with A' = D^-1/2 (A + I) D^-1/2 (Kipf and Welling 2017, eq. 9)."""
    model = built(GcnEncoderOptions(layers=2, width=D, dropout=0.0))
    x = torch.randn(N, D)
    root = adjacency(PATH).sum(1).rsqrt()
    normalized = root[:, None] * adjacency(PATH) * root
    expected = normalized @ torch.relu(normalized @ x + model.biases[0])
    close(model(source(PATH, x)).data[0], expected)


def test_gcn_with_relations_mixes_matrices() -> None:
    """sum over relations r of A_r x W_r, where W_r mixes the bases (Schlichtkrull et al. 2018)."""
    pairs = [(0, 1, 0), (1, 2, 1), (2, 3, 0)]
    model = built(GcnEncoderOptions(layers=1, width=D, dropout=0.0, bases=2), relations=5)
    x = torch.randn(N, D)
    root = adjacency(pairs).sum(1).rsqrt()
    (layer,) = model.layers
    bases = layer.matrix.weight.view(2, D, D)
    expected = torch.zeros(N, D)
    kinds = [(i, i, 0) for i in range(N)]
    kinds += [(a, b, 2 * kind + 1) for a, b, kind in pairs]  # along
    kinds += [(b, a, 2 * kind + 2) for a, b, kind in pairs]  # against
    for start, end, kind in kinds:
        matrix = (layer.mixture[kind][:, None, None] * bases).sum(0)
        expected[end] += root[start] * root[end] * (matrix @ x[start])
    close(model(source(pairs, x, directed=True)).data[0], expected)


def test_gat_is_the_formula_of_the_paper() -> None:
    """alpha = softmax of LeakyReLU(a . [h_i, h_j]) over neighbors (Velickovic et al. 2018)."""
    model = built(GatEncoderOptions(layers=2, width=D, heads=2, dropout=0.0))
    x = torch.randn(N, D)

    def attend(layer: torch.nn.Module, h: Tensor) -> Tensor:
        """h: (H, N, K)."""
        own, other = (torch.einsum("hnk,hk->hn", h, w) for w in (layer.own, layer.other))
        scores = F.leaky_relu(own[:, :, None] + other[:, None, :], 0.2)
        masked = scores.masked_fill(adjacency(PATH) == 0, float("-inf"))
        return (masked.softmax(-1) @ h).transpose(0, 1).flatten(1)

    h = F.elu(attend(model.layers[0], x.view(N, 2, -1).transpose(0, 1)) + model.biases[0])
    close(model(source(PATH, x)).data[0], attend(model.layers[1], h[None]))


def test_relations_shift_the_scores_of_gat() -> None:
    """With a score of its own that is very low, a kind of edge is as good as none."""
    pairs = [(0, 1, 0), (1, 2, 1), (2, 3, 0)]
    model = built(GatEncoderOptions(layers=1, width=D, heads=1, dropout=0.0), relations=3)
    x = torch.randn(N, D)
    model.layers[0].relation.data[2] = -1e4
    cut = model(source([pair for pair in pairs if pair[2] == 0], x)).data
    close(model(source(pairs, x)).data, cut)


def mask_of(edges: Edges | None, kernel: EdgeAttention) -> AttentionMask:
    real = torch.ones(1, N, dtype=torch.bool)
    return AttentionMask(Position(), 1, real, structure=kernel.structure(edges, real))


def test_self_attention_is_attention_on_the_complete_graph() -> None:
    """Dot products along all edges, or without a graph: torch's own attention."""
    torch.manual_seed(0)
    q, k, v = (torch.randn(1, 2, N, D) for _ in range(3))
    complete = edges_of([(a, b) for a in range(N) for b in range(a + 1, N)])
    expected = F.scaled_dot_product_attention(q, k, v)
    kernel = EdgeAttention(2, 0)
    for edges in (complete, None):
        mask = mask_of(edges, kernel)
        close(kernel(q, k, v, mask, None)[0], expected)
    plain = SoftmaxAttention(causal=False)
    close(
        kernel(q, k, v, mask_of(complete, kernel), None)[0],
        plain(q, k, v, mask_of(None, kernel), None)[0],
    )


def test_weights_are_zero_without_an_edge() -> None:
    torch.manual_seed(0)
    q, k, v = (torch.randn(1, 2, N, D) for _ in range(3))
    kernel = EdgeAttention(2, 0)
    mask = mask_of(edges_of(PATH), kernel)
    weights, _ = kernel.weights(q, k, v, mask, None)
    assert torch.equal(weights[0] > 0, (adjacency(PATH) > 0).expand(2, N, N))
    close(weights.sum(-1), torch.ones(1, 2, N))
    masked = F.scaled_dot_product_attention(q, k, v, adjacency(PATH) > 0)
    close(kernel(q, k, v, mask, None)[0], masked)


def test_shortest_paths() -> None:
    """Of a path with a triangle, counted by hand; 4 is: too long, or no path."""
    graph = Neighbors.of(edges_of(PATH), N, 1)
    expected = [
        [0, 1, 2, 2, 4, 4],
        [1, 0, 1, 1, 4, 4],
        [2, 1, 0, 1, 4, 4],
        [2, 1, 1, 0, 4, 4],
        [4, 4, 4, 4, 0, 4],
        [4, 4, 4, 4, 4, 0],
    ]
    assert shortest_paths(graph, 1, 3)[0].tolist() == expected
    assert shortest_paths(graph, 1, 1)[0, 0].tolist() == [0, 1, 2, 2, 2, 2]


def test_distances_are_a_bias_of_each_head() -> None:
    torch.manual_seed(0)
    q, k, v = (torch.randn(1, 2, N, D) for _ in range(3))
    kernel = Distances(longest=3).build(Shape(2 * D, 2, causal=False))
    kernel.table.data.normal_()
    edges = edges_of(PATH)
    distances = shortest_paths(Neighbors.of(edges, N, 1), 1, 3)
    bias = kernel.table[distances].permute(0, 3, 1, 2)
    expected = F.scaled_dot_product_attention(q, k, v, bias)
    close(kernel(q, k, v, mask_of(edges, kernel), None)[0], expected)


MODELS = [
    GcnEncoderOptions(layers=2, width=D, dropout=0.0),
    GatEncoderOptions(layers=2, width=D, heads=2, dropout=0.0),
    *(
        TransformerEncoderOptions.model_validate(
            {
                "attention": kind,
                "positions": "none",
                "layers": 1,
                "width": D,
                "heads": 2,
                "feedforward_width": 8,
                "dropout": 0.0,
            }
        )
        for kind in ("edges", "distances")
    ),
]


@pytest.mark.parametrize("options", MODELS, ids=["gcn", "gat", "edges", "distances"])
def test_renumbering_the_nodes_changes_no_output(options: object) -> None:
    model, x = built(options), torch.randn(N, D)
    now = [3, 0, 5, 1, 4, 2]  # node i gets the number now[i]
    turned = torch.empty_like(x)
    turned[now] = x
    moved = [(now[a], now[b]) for a, b in PATH]
    close(model(source(moved, turned)).data[0][now], model(source(PATH, x)).data[0])


@pytest.mark.parametrize("options", MODELS[:3], ids=["gcn", "gat", "edges"])
def test_a_node_sees_as_far_as_there_are_layers(options: object) -> None:
    """A chain of 6 nodes: the last is changed, and only those near it change."""
    chain, layers = [(i, i + 1) for i in range(N - 1)], options.layers  # type: ignore[attr-defined]
    model, x = built(options), torch.randn(N, D)
    other = x.clone()
    other[-1] += 1
    changed = (model(source(chain, x)).data - model(source(chain, other)).data).abs().sum(-1)[0] > 0
    assert changed.tolist() == [N - 1 - i <= layers for i in range(N)]


@pytest.mark.parametrize(
    ("tree", "said"),
    [
        ({"encoder": {"kind": "gcn"}, "frontend": {"kind": "nodes"}}, "gcn reads edges"),
        ({"encoder": {"kind": "recurrent"}, "frontend": {"kind": "graph"}}, "support the edges"),
        ({"encoder": {"kind": "recurrent"}, "frontend": {"kind": "nodes"}}, "support the nodes"),
        ({"encoder": {"kind": "transformer", "attention": "edges"}}, "use positions none"),
        ({"encoder": {"kind": "gat", "width": 10, "heads": 4}}, "not a multiple of heads"),
    ],
)
def test_what_does_not_fit_is_rejected_by_name(tree: dict, said: str) -> None:
    with pytest.raises(UserError, match=said):
        check_config({"task": {"kind": "tag"}, "model": tree}, "test")
