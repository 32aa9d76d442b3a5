"""The fast path of models of vectors: a fixed number of rows per forward pass.

A matrix product picks another kernel for few rows, which sums in another order. The rounding of a
row, about 1e-7, would thus depend on the other rows of its batch.
B rows, F numbers per vector, C outputs.
"""

import torch
from torch import nn

from regard.data.tensors.padded import Batch, Outputs, Padded
from regard.nn.ablation import is_ablating
from regard.nn.capture_hooks import is_recording

ROWS = 64  # a multiple of the tiles of matrix kernels, so that no row is in a partial tile


class FixedRows:
    """A model of vectors whose outputs for a row do not depend on the batch, not even by rounding.

    While internals are recorded or heads are ablated, the model runs on the batch itself.
    """

    def __init__(self, model: nn.Module) -> None:
        self.model = model

    def __call__(self, batch: Batch) -> Outputs:
        """Return the outputs (B, C) of vectors (B, 1, F)."""
        if is_recording() or is_ablating():
            return self.model(batch)
        assert batch.source is not None
        vectors = batch.source.data
        count = len(vectors)
        padding = vectors.new_zeros(-count % ROWS, *vectors.shape[1:])
        mask = batch.source.mask.new_ones(ROWS, 1)
        blocks = torch.cat([vectors, padding]).split(ROWS)
        found = [self.model(Batch(Padded(block, mask))).logits for block in blocks]
        return Outputs(torch.cat(found)[:count])
