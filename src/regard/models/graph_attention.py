"""Graph attention networks: each node attends to its neighbors.

B graphs of a batch with S nodes each, N = B * S, E edges, D width, H heads, K head width, R kinds
of edges.
"""

from typing import Any, ClassVar, Literal

import torch
import torch.nn.functional as F
from pydantic import Field, model_validator
from torch import Tensor, nn
from typing_extensions import Self

from regard.core.data_stats import DataStats
from regard.data.tensors.padded import Padded
from regard.inputs.frontend import Frontend
from regard.models.graph_convolution import GraphEncoderOptions
from regard.nn.ablation import zero_ablated
from regard.nn.capture import MapKind
from regard.nn.capture_hooks import padding_mask, record_attention, record_hidden
from regard.nn.dropout import Dropout
from regard.nn.neighbors import Neighbors, edge_sums, neighbor_softmax, weighted_sum

SLOPE = 0.2  # of LeakyReLU, as in the paper


class GraphAttention(nn.Module):
    """Attention along the edges of a graph (Velickovic et al. 2018, eq. 3-5).

    The score of an edge is LeakyReLU(a . [W h_i, W h_j]), plus a learned number per kind of edge.
    matrix: None if the vectors are projected already. shared: whether all heads attend with the
    entire vector instead of a part of it.
    """

    def __init__(
        self,
        matrix: nn.Module | None,
        heads: int,
        width: int,
        relations: int,
        shared: bool,
        dropout: float,
    ) -> None:
        super().__init__()
        self.matrix, self.heads, self.shared = matrix, heads, shared
        self.own, self.other = (nn.Parameter(torch.empty(heads, width)) for _ in range(2))
        for weight in (self.own, self.other):
            nn.init.xavier_uniform_(weight)
        self.relation = nn.Parameter(torch.zeros(relations, heads)) if relations else None
        self.dropout = Dropout(dropout)

    def forward(self, x: Tensor, graph: Neighbors, rows: int) -> Tensor:
        """Return the weighted sums (N, H * K) of the neighbors' vectors."""
        x = x if self.matrix is None else self.matrix(x)
        if self.shared:
            x = x.unsqueeze(1).expand(-1, self.heads, -1)
        else:
            x = x.unflatten(1, (self.heads, -1))
        scores = edge_sums((x * self.other).sum(-1), (x * self.own).sum(-1), graph)  # (E, H)
        if self.relation is not None:
            scores = scores + self.relation.index_select(0, graph.kind)
        weights = neighbor_softmax(F.leaky_relu(scores, SLOPE), graph)
        kind = MapKind(sparse=True)
        record_attention(self, lambda: graph.dense(weights, rows), at="itself", kind=kind)
        out = weighted_sum(self.dropout(weights), x, graph)  # (N, H, K)
        heads = out.unflatten(0, (rows, -1)).transpose(1, 2)  # (B, H, S, K)
        return zero_ablated(self, heads, rows).transpose(1, 2).flatten(0, 1).flatten(1)


class GatEncoder(nn.Module):
    """A graph attention network (Velickovic et al. 2018).

    The frontend is the first matrix. The heads of the last layer read the entire vector, and the
    linear output layer sums over them, which is the mean of the paper.
    """

    def __init__(self, layers: list[GraphAttention], width: int, dropout: float) -> None:
        super().__init__()
        self.layers = nn.ModuleList(layers)
        self.biases = nn.ParameterList(nn.Parameter(torch.zeros(width)) for _ in layers[1:])
        self.dropout = Dropout(dropout)

    def forward(self, source: Padded) -> Padded:
        """Return the vectors (B, S, D) of the nodes after all layers."""
        assert source.edges is not None
        rows, length = source.mask.shape
        graph = Neighbors.of(source.edges, length, rows)
        x = source.data.flatten(0, 1)
        with padding_mask(source.mask):
            for number, layer in enumerate(self.layers):
                x = layer(self.dropout(x) if number else x, graph, rows)
                if number < len(self.biases):
                    x = F.elu(x + self.biases[number])
                record_hidden(layer, x.unflatten(0, (rows, length)))
        return Padded(x.unflatten(0, (rows, length)), source.mask)


class GatEncoderOptions(GraphEncoderOptions):
    """Options of a graph attention network. Defaults are those of Velickovic et al. (2018)."""

    default_lr: ClassVar[float | None] = 0.005
    usual_dropout: ClassVar[float] = 0.6
    usual_width: ClassVar[int] = 64
    kind: Literal["gat"] = "gat"
    layers: int | None = Field(None, gt=0, description="number of attention layers")
    width: int | None = Field(None, gt=0, description="hidden size, of all heads together")
    heads: int | None = Field(None, gt=0, description="heads of a layer; must divide the width")
    output_heads: int = Field(1, gt=0, description="heads of the last layer")
    dropout: float | None = Field(
        None, ge=0, lt=1, description="dropout rate of features, hidden vectors and coefficients"
    )

    @model_validator(mode="after")
    def _heads_divide_width(self) -> Self:
        if self.width and self.heads and self.width % self.heads:
            raise ValueError(f"width {self.width} is not a multiple of heads {self.heads}")
        return self

    def default_sizes(self, stats: DataStats, width: int) -> dict[str, Any]:
        size = self.width or self.usual_width
        heads = next(heads for heads in (8, 4, 2, 1) if size % heads == 0)
        return super().default_sizes(stats, width) | {"heads": heads}

    def output_for(self, frontend: Frontend) -> int:
        assert self.width
        return self.width * self.output_heads

    def build_for(self, frontend: Frontend) -> GatEncoder:
        assert self.width and self.layers and self.heads and self.dropout is not None
        layers = []
        for number in range(self.layers):
            is_last, matrix = number == self.layers - 1, None
            if 0 < number < self.layers - 1:
                matrix = nn.Linear(self.width, self.width, bias=False)
                for block in matrix.weight.data.chunk(self.heads):
                    nn.init.xavier_uniform_(block)
            heads = self.output_heads if is_last else self.heads
            width = self.width if is_last else self.width // self.heads
            layers.append(
                GraphAttention(matrix, heads, width, frontend.relations, is_last, self.dropout)
            )
        return GatEncoder(layers, self.width, self.dropout)
