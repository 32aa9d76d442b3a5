"""yoyodyne's models as a system of the decoding bench; runs in yoyodyne's environment.

The Transformer has our weights (written by peer_yoyodyne.py). The LSTM attends in another way than
ours, so it has random weights, and its outputs are forced to the number of tokens of the word
has letters, less one: so long are ours in the mean. The work of a step is that of a trained model.
Batches are cut in the order of the words, as yoyodyne's own loader does, and no Trainer stands
around the model.
"""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import lightning
import torch
from torch import Tensor
from yoyodyne import data, special
from yoyodyne.models import SoftAttentionLSTMModel, TransformerModel, modules

SIZES = {"layers": 4, "attention_heads": 4, "hidden_size": 1024}
Run = Callable[[int, int, slice], list[list[str]]]


def transformer(folder: Path, longest: int) -> tuple[torch.nn.Module, list[str]]:
    """Our weights, and all tokens by their numbers."""
    tokens = json.loads((folder / "tokens.json").read_text(encoding="utf-8"))
    weights = torch.load(folder / "weights.pt", weights_only=True)
    model = TransformerModel(
        source_encoder=modules.TransformerEncoder(embedding_size=256, dropout=0.1, **SIZES),
        embedding_size=256,
        vocab_size=len(tokens),
        target_vocab_size=len(weights["classifier.bias"]),
        max_target_length=longest,
        **{f"decoder_{name}": size for name, size in SIZES.items()},
    )
    positions = [name for name in model.state_dict() if name.endswith("positional_encoding")]
    kept = {name: model.state_dict()[name] for name in positions}  # the same table as ours
    model.load_state_dict(weights | kept)
    return model, tokens


class WithFinalFactor(SoftAttentionLSTMModel):
    """Ends each output where its length, which the word decides, is reached. steps: so far."""

    steps = 0

    def decode_step(
        self, token: Tensor, context: Tensor, mask: Tensor, state: Any
    ) -> tuple[Tensor, Any]:
        logits, state = super().decode_step(token, context, mask, state)  # (B, 1, V)
        letters = (~mask).sum(1) - 2  # without the tokens at both ends
        done = self.steps >= (letters - 1).clamp(min=1)
        logits[:, 0, : len(special.SPECIAL)] = -1e9  # no outputs
        logits[:, 0, special.END_IDX] = torch.where(done, 1e9, -1e9)
        self.steps += 1
        return logits, state


def lstm(folder: Path, longest: int) -> tuple[torch.nn.Module, list[str]]:
    """Random weights, and all tokens by their numbers."""
    tokens = json.loads((folder / "tokens.json").read_text(encoding="utf-8"))
    targets = sum(not token.startswith("{") for token in tokens)
    torch.manual_seed(1)
    model = WithFinalFactor(
        source_encoder=modules.LSTMEncoder(
            bidirectional=True, dropout=0.2, embedding_size=256, hidden_size=512, layers=1
        ),
        embedding_size=256,
        decoder_hidden_size=512,
        decoder_layers=1,
        vocab_size=len(tokens),
        target_vocab_size=targets,
        max_target_length=longest,
    )
    return model, tokens


def load(kind: str, folder: str, words: list[str], longest: int, threads: int) -> Run:
    """The run function of one kind."""
    torch.set_num_threads(threads)
    model, tokens = (transformer if kind == "transformer" else lstm)(Path(folder), longest)
    model.eval()
    model.trainer = lightning.Trainer(accelerator="cpu", logger=False, enable_progress_bar=False)
    numbers = {token: id for id, token in enumerate(tokens)}
    # The weights of ours have never seen a start token before a source.
    first = [] if kind == "transformer" else [special.START_IDX]

    def encode(word: str) -> torch.Tensor:
        ids = [numbers.get(f"{{{letter}}}", special.UNK_IDX) for letter in word]
        return torch.tensor([*first, *ids, special.END_IDX])

    def decode(row: list[int]) -> list[str]:
        end = row.index(special.END_IDX) if special.END_IDX in row else len(row)
        return [tokens[id] for id in row[:end] if not special.isspecial(id)]

    @torch.inference_mode()
    def run(beam: int, batch: int, which: slice) -> list[list[str]]:
        model.beam_width = beam
        found, chosen = [], words[which]
        for at in range(0, len(chosen), batch):
            rows = [encode(word) for word in chosen[at : at + batch]]
            source = data.batches.PaddedTensor(rows)
            model.steps = 0
            outputs = model.predict_step(data.Batch(source), 0)
            best = outputs[0][:, 0] if beam > 1 else outputs  # of (B, beam, T)
            found += [decode(row) for row in best.tolist()]
        return found

    return run
