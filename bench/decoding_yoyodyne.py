"""yoyodyne's models as a system of the decoding bench; runs in yoyodyne's environment.

The Transformer has our weights (written by peer_yoyodyne.py). The LSTM attends in another way than
ours, so it is trained with yoyodyne itself. Batches are cut in the order of the words, as
yoyodyne's own loader does, and no Trainer stands around the model.
"""

import json
from collections.abc import Callable
from pathlib import Path

import lightning
import torch
from yoyodyne import data, special
from yoyodyne.models import SoftAttentionLSTMModel, TransformerModel, modules

SIZES = {"layers": 4, "attention_heads": 4, "hidden_size": 1024}
Run = Callable[[int, int, slice], list[list[str]]]


def transformer(folder: Path, longest: int) -> tuple[torch.nn.Module, list[str]]:
    """Our weights, and all symbols by their numbers."""
    symbols = json.loads((folder / "symbols.json").read_text(encoding="utf-8"))
    weights = torch.load(folder / "weights.pt", weights_only=True)
    model = TransformerModel(
        source_encoder=modules.TransformerEncoder(embedding_size=256, dropout=0.1, **SIZES),
        embedding_size=256,
        vocab_size=len(symbols),
        target_vocab_size=len(weights["classifier.bias"]),
        max_target_length=longest,
        **{f"decoder_{name}": size for name, size in SIZES.items()},
    )
    positions = [name for name in model.state_dict() if name.endswith("positional_encoding")]
    kept = {name: model.state_dict()[name] for name in positions}  # the same table as ours
    model.load_state_dict(weights | kept)
    return model, symbols


def lstm(folder: Path, longest: int) -> tuple[torch.nn.Module, list[str]]:
    """A model that yoyodyne trained: FOLDER/out/yoyo_lstm.ckpt and its index."""
    index = data.indexes.Index.read(str(folder / "out" / "yoyo_lstm"))
    model = SoftAttentionLSTMModel(
        source_encoder=modules.LSTMEncoder(
            bidirectional=True, dropout=0.2, embedding_size=256, hidden_size=512, layers=1
        ),
        embedding_size=256,
        decoder_hidden_size=512,
        decoder_layers=1,
        vocab_size=index.vocab_size,
        target_vocab_size=index.target_vocab_size,
        max_target_length=longest,
    )
    saved = torch.load(folder / "out" / "yoyo_lstm.ckpt", weights_only=False)
    model.load_state_dict(saved["state_dict"])
    return model, [index.get_symbol(id) for id in range(len(index))]


def load(kind: str, folder: str, words: list[str], longest: int, threads: int) -> Run:
    """The run function of one kind."""
    torch.set_num_threads(threads)
    model, symbols = (transformer if kind == "transformer" else lstm)(Path(folder), longest)
    model.eval()
    model.trainer = lightning.Trainer(accelerator="cpu", logger=False, enable_progress_bar=False)
    numbers = {symbol: id for id, symbol in enumerate(symbols)}
    # The weights of ours have never seen a start symbol before a source.
    first = [] if kind == "transformer" else [special.START_IDX]

    def encode(word: str) -> torch.Tensor:
        ids = [numbers.get(f"{{{letter}}}", special.UNK_IDX) for letter in word]
        return torch.tensor([*first, *ids, special.END_IDX])

    def decode(row: list[int]) -> list[str]:
        end = row.index(special.END_IDX) if special.END_IDX in row else len(row)
        return [symbols[id] for id in row[:end] if not special.isspecial(id)]

    @torch.inference_mode()
    def run(beam: int, batch: int, which: slice) -> list[list[str]]:
        model.beam_width = beam
        found, chosen = [], words[which]
        for at in range(0, len(chosen), batch):
            rows = [encode(word) for word in chosen[at : at + batch]]
            source = data.batches.PaddedTensor(rows)
            outputs = model.predict_step(data.Batch(source), 0)
            best = outputs[0][:, 0] if beam > 1 else outputs  # of (B, beam, T)
            found += [decode(row) for row in best.tolist()]
        return found

    return run
