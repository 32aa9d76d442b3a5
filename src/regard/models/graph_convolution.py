"""Graph convolutional networks: each node reads the mean of its neighbors.

B graphs of a batch with S nodes each, N = B * S, E edges, D width, R kinds of edges, V bases.
"""

from typing import Any, ClassVar, Literal

import torch
from pydantic import Field
from torch import Tensor, nn

from regard.core.data_stats import DataStats
from regard.data.tensors.padded import Padded
from regard.inputs.frontend import Frontend
from regard.models.contracts import EncoderOptions
from regard.nn.capture_hooks import record_hidden
from regard.nn.dropout import Dropout
from regard.nn.neighbors import Neighbors, weighted_sum


class GraphConvolution(nn.Module):
    """One convolution: the sum of the neighbors' vectors, divided by sqrt(d_i d_j).

    That is eq. 8 of Kipf and Welling (2017). Edges with a kind have a matrix per kind, a mixture of
    V shared matrices (Schlichtkrull et al. 2018, eq. 3).
    matrix: None for the first convolution, since the frontend has projected the features.
    """

    def __init__(self, matrix: nn.Module | None, mixture: nn.Parameter | None, bases: int) -> None:
        super().__init__()
        self.matrix, self.mixture, self.bases = matrix, mixture, bases

    def forward(self, x: Tensor, graph: Neighbors, norm: Tensor) -> Tensor:
        """Return the sums (N, D) for vectors x (N, D). norm: (E,), 1 / sqrt(d_i d_j)."""
        if self.matrix is not None:
            x = self.matrix(x)
        weights = norm[:, None]
        if self.mixture is not None:
            weights = weights * self.mixture.index_select(0, graph.kind)  # (E, V)
        return weighted_sum(weights, x.unflatten(1, (self.bases, -1)), graph).sum(1)


class GcnEncoder(nn.Module):
    """A graph convolutional network (Kipf and Welling 2017, eq. 9).

    The frontend is the first matrix and the output layer the last: two convolutions and a linear
    output layer compute A relu(A X W0) W1.
    """

    def __init__(self, layers: list[GraphConvolution], width: int, dropout: float) -> None:
        super().__init__()
        self.layers = nn.ModuleList(layers)
        self.biases = nn.ParameterList(nn.Parameter(torch.zeros(width)) for _ in layers[1:])
        self.dropout = Dropout(dropout)

    def forward(self, source: Padded) -> Padded:
        """Return the vectors (B, S, D) of the nodes after all convolutions."""
        assert source.edges is not None
        rows, length = source.mask.shape
        graph = Neighbors.of(source.edges, length, rows)
        root = graph.degrees().clamp(min=1).to(source.data.dtype).rsqrt()
        norm = root[graph.end] * root[graph.start]
        x = source.data.flatten(0, 1)
        for number, layer in enumerate(self.layers):
            x = layer(self.dropout(x) if number else x, graph, norm)
            if number < len(self.biases):
                x = torch.relu(x + self.biases[number])
            record_hidden(layer, x.unflatten(0, (rows, length)))
        return Padded(x.unflatten(0, (rows, length)), source.mask)


class GraphEncoderOptions(EncoderOptions):
    """Base class of options of encoders that read the edges of a graph."""

    is_special: ClassVar[bool] = True
    default_layers: ClassVar[int] = 2
    default_epochs: ClassVar[float | None] = 200
    default_optimizer: ClassVar[dict[str, Any] | None] = {
        "kind": "adam",
        "betas": [0.9, 0.999],
        "eps": 1e-8,
        "weight_decay": 5e-4,
    }
    usual_dropout: ClassVar[float]
    usual_width: ClassVar[int]

    @property
    def scale(self) -> float:
        return 1.0

    @property
    def uses(self) -> frozenset[str]:
        return frozenset({"edges"})

    @property
    def needs(self) -> frozenset[str]:
        return frozenset({"edges"})

    def default_sizes(self, stats: DataStats, width: int) -> dict[str, Any]:
        return {"width": self.usual_width, "layers": self.default_layers}

    def default_dropout(self, stats: DataStats, config: Any) -> float:
        return self.usual_dropout


class GcnEncoderOptions(GraphEncoderOptions):
    """Options of a graph convolutional network. Defaults are those of Kipf and Welling (2017)."""

    default_lr: ClassVar[float | None] = 0.01
    usual_dropout: ClassVar[float] = 0.5
    usual_width: ClassVar[int] = 16
    kind: Literal["gcn"] = "gcn"
    layers: int | None = Field(None, gt=0, description="number of convolutions")
    width: int | None = Field(None, gt=0, description="hidden size")
    dropout: float | None = Field(
        None, ge=0, lt=1, description="dropout rate of features and hidden vectors"
    )
    bases: int = Field(
        2, gt=0, description="matrices that the relations of edges share; 1 without relations"
    )

    def build_for(self, frontend: Frontend) -> GcnEncoder:
        assert self.width and self.layers and self.dropout is not None
        bases = self.bases if frontend.relations else 1
        layers = []
        for number in range(self.layers):
            mixture, matrix = None, None
            if frontend.relations:
                mixture = nn.Parameter(torch.empty(frontend.relations, bases))
                nn.init.xavier_uniform_(mixture)
            inner = 0 < number < self.layers - 1
            if inner or frontend.relations:
                matrix = nn.Linear(self.width, bases * self.width, bias=False)
                for block in matrix.weight.data.chunk(bases):
                    nn.init.xavier_uniform_(block)
            layers.append(GraphConvolution(matrix, mixture, bases))
        return GcnEncoder(layers, self.width, self.dropout)
