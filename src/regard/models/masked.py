"""The encoder that fills gaps: tokens are masked and predicted from both sides (BERT).

B rows, S length, D width, V vocabulary, N masked tokens.
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
    """Frontend and encoder, as taggers and classifiers have them, and a head over all tokens."""

    scores_targets: ClassVar[bool] = False  # the objective samples the tokens that it predicts

    def __init__(self, frontend: Frontend, encoder: nn.Module, width: int) -> None:
        super().__init__()
        self.frontend = frontend
        self.encoder = encoder
        assert frontend.table is not None
        tokens = frontend.table.weight
        self.narrow = nn.Linear(width, tokens.shape[1])
        self.norm = nn.LayerNorm(tokens.shape[1])
        self.head = OutputLayer(tokens, bias=True)

    def forward(self, batch: Batch, chosen: Tensor) -> Outputs:
        """Logits (N, V) of the tokens at the chosen positions (B, S)."""
        h = self.encoder(self.frontend(batch.source)).data[chosen]  # (N, D)
        return Outputs(self.head(self.norm(F.gelu(self.narrow(h)))))


class MaskedOptions(TextModelOptions, SourceModelOptions):
    """An encoder that is trained to fill gaps; `--init-from` starts other models from it."""

    gives: ClassVar[str] = "masked"
    kind: Literal["masked"] = "masked"

    def build(self, shape: InputShape) -> MaskedModel:
        """The model of such sources."""
        encoder: Any = self.encoder  # sizes must be filled
        frontend = build_frontend(self.frontend, encoder, shape)
        if frontend.table is None:
            raise UserError(f"model.kind=masked: no tokens to be masked in {shape.kind}")
        return MaskedModel(frontend, encoder.build(frontend.width), encoder.width)
