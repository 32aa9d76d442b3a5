"""Masked language models, in which an encoder predicts masked tokens (BERT).

B rows (sequences of the batch), S length, D width, V vocabulary, N masked tokens.
"""

from typing import Any, ClassVar, Literal

import torch.nn.functional as F
from torch import Tensor, nn

from regard.core.errors import UserError
from regard.data.tensors.padded import Batch, Outputs
from regard.inputs.frontend import Frontend
from regard.inputs.input import InputShape
from regard.models.contracts import build_frontend
from regard.models.encoders import SourceModelOptions
from regard.models.model_options import TextModelOptions
from regard.models.output_layer import OutputLayer


class MaskedModel(nn.Module):
    """A frontend and an encoder, as in taggers and classifiers, and an output layer over tokens."""

    scores_targets: ClassVar[bool] = False  # the tokens to predict are sampled

    def __init__(self, frontend: Frontend, encoder: nn.Module, width: int) -> None:
        super().__init__()
        self.frontend = frontend
        self.encoder = encoder
        assert frontend.table is not None
        tokens = frontend.table.weight
        self.narrow = nn.Linear(width, tokens.shape[1])
        self.norm = nn.LayerNorm(tokens.shape[1])
        self.head = OutputLayer(tokens, bias=True)

    def forward(self, batch: Batch, positions: Tensor) -> Outputs:
        """Return the logits (N, V) of the masked tokens. positions: where they are (B, S)."""
        h = self.encoder(self.frontend(batch.source)).data[positions]  # (N, D)
        return Outputs(self.head(self.norm(F.gelu(self.narrow(h)))))


class MaskedOptions(TextModelOptions, SourceModelOptions):
    """Options of a masked language model, from which --init-from initializes other models."""

    gives: ClassVar[str] = "masked"
    kind: Literal["masked"] = "masked"

    def build(self, shape: InputShape) -> MaskedModel:
        """Return the model for inputs of this shape."""
        encoder: Any = self.encoder  # sizes must be set
        frontend = build_frontend(self.frontend, encoder, shape)
        if frontend.table is None:
            raise UserError(f"model.kind=masked: input kind {shape.kind} has no tokens to mask")
        return MaskedModel(frontend, encoder.build(frontend.width), encoder.width)
