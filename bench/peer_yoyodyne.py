"""Our Transformer's weights for yoyodyne, whose layers are those of torch.nn with norms before.

One table of embeddings holds both sides there: six special tokens, target tokens, source
tokens in braces.
"""

import json
from pathlib import Path

import torch
from torch import Tensor

from regard.data.tensors.special import BOS, EOS, SPECIALS
from regard.models.encoder_decoder import EncoderDecoder
from regard.tasks.transduce import TransduceTask

START, END, COUNT = 2, 3, 6  # of yoyodyne's special tokens, and how many they are
NEVER = -1e9  # the bias of a token that is no output
NAMES = {
    "attend.norm": "norm1",
    "attention.project": "self_attn.in_proj",
    "attention.join": "self_attn.out_proj",
    "cross.join": "multihead_attn.out_proj",
    "feedforward.widen": "linear1",
    "feedforward.narrow": "linear2",
}


def write_yoyodyne(task: TransduceTask, model: EncoderDecoder, folder: Path) -> None:
    """Weights and tokens, as decoding_yoyodyne.py reads them."""
    first = len(SPECIALS)
    source, target = (
        [side.token(id) for id in range(first, len(side))] for side in (task.source, task.target)
    )
    tokens = [*(f"<{i}>" for i in range(COUNT)), *target, *(f"{{{letter}}}" for letter in source)]
    inputs = model.frontend.tokens.weight.detach()
    outputs, head = model.target.weight.detach(), model.head.weight.detach()
    embeddings = torch.zeros(len(tokens), inputs.shape[1])
    embeddings[START], embeddings[END] = outputs[BOS], inputs[EOS]
    embeddings[COUNT : COUNT + len(target)] = outputs[first:]
    embeddings[COUNT + len(target) :] = inputs[first:]
    weight = torch.zeros(COUNT + len(target), head.shape[1])
    weight[END], weight[COUNT:] = head[EOS], head[first:]
    bias = torch.full((COUNT,), NEVER).scatter(0, torch.tensor(END), 0.0)
    weights = {
        "embeddings.weight": embeddings,
        "classifier.weight": weight,
        "classifier.bias": torch.cat([bias, torch.zeros(len(target))]),
        **_side(model.encoder.state_dict(), "source_encoder.module.", "norm2"),
        **_side(model.decoder.state_dict(), "decoder.module.", "norm3"),
    }
    folder.mkdir(parents=True, exist_ok=True)
    torch.save(weights, folder / "weights.pt")
    (folder / "tokens.json").write_text(json.dumps(tokens), encoding="utf-8")


def _side(weights: dict[str, Tensor], place: str, last: str) -> dict[str, Tensor]:
    """The layers of one side under their names in torch.nn; `last`: the norm before the network."""
    names = NAMES | {"look.norm": "norm2", "feed.norm": last}
    found: dict[str, Tensor] = {}
    for name, tensor in weights.items():
        layer, _, rest = name.removeprefix("layers.").partition(".")
        part, _, kind = rest.rpartition(".")
        if not name.startswith("layers."):
            found[place + name] = tensor
        elif part == "cross.query":
            key = tensor, weights[f"layers.{layer}.cross.project.{kind}"]
            found[f"{place}layers.{layer}.multihead_attn.in_proj_{kind}"] = torch.cat(key)
        elif part != "cross.project":
            other = names[part]
            joint = "_" if other.endswith("in_proj") else "."
            found[f"{place}layers.{layer}.{other}{joint}{kind}"] = tensor
    return {name: tensor.detach().clone() for name, tensor in found.items()}
