"""Our Transformer's weights taken apart, for the formats of other systems.

Pre-norm, sinusoidal, one vocabulary for both sides, tied output layer: nothing else is translated.
"""

from torch import Tensor

from regard.data.tensors.special import BOS, EOS, PAD, SPECIALS, UNK
from regard.models.encoder_decoder import EncoderDecoder
from regard.tasks.transduce import TransduceTask

SIDES = ("encoder", "decoder")
LENGTH = 1024  # rows of a table of positions where a system wants one


class Parts:
    """A trained model taken apart: embeddings, final norms, and the parts of each layer."""

    def __init__(self, task: TransduceTask, model: EncoderDecoder) -> None:
        assert task.tokenizer is task.target and model.head.weight is model.target.weight
        self.weights = {name: x.detach().clone() for name, x in model.state_dict().items()}
        self.tokens = [task.target.token(id) for id in range(len(task.target))]
        self.embeddings = model.target.weight.detach().clone()  # (V, D)
        self.width = self.embeddings.shape[1]
        self.layers = len(model.encoder.layers), len(model.decoder.layers)
        self.heads = model.encoder.layers[0].attention.heads
        self.inner = model.encoder.layers[0].feedforward.widen.out_features

    def renamed(self, side: str, place: str, names: dict[str, str]) -> dict[str, Tensor]:
        """The layers of a side; `place` with the number of the layer stands before each name."""
        found = {}
        for i in range(self.layers[side == "decoder"]):
            for name, tensor in self._layer(f"{side}.layers.{i}.").items():
                part, _, kind = name.rpartition(".")
                found[f"{place.format(i)}.{names[part]}.{kind}"] = tensor.contiguous()
        return found

    def _layer(self, prefix: str) -> dict[str, Tensor]:
        """One layer by part, its joint projections cut into q, k and v."""
        found = {}
        for name, tensor in self.weights.items():
            if not name.startswith(prefix):
                continue
            part, _, kind = name.removeprefix(prefix).rpartition(".")
            block = part.partition(".")[0]
            if part == "cross.query":
                found[f"cross.q.{kind}"] = tensor
            elif part.endswith(".project"):
                letters = "qkv" if block == "attention" else "kv"
                pieces = zip(letters, tensor.chunk(len(letters)), strict=True)
                found |= {f"{block}.{letter}.{kind}": piece for letter, piece in pieces}
            else:
                found[f"{part}.{kind}"] = tensor
        return found

    def norms(self, names: dict[str, str]) -> dict[str, Tensor]:
        """The final norms of both sides under these names."""
        return {
            f"{name}.{kind}": self.weights[f"{side}.norm.{kind}"]
            for side, name in names.items()
            for kind in ("weight", "bias")
        }

    def reordered(self) -> tuple[list[str], Tensor]:
        """Tokens and embeddings as Eole and JoeyNMT want them: UNK PAD BOS EOS, then the rest."""
        order = [UNK, PAD, BOS, EOS, *range(len(SPECIALS), len(self.tokens))]
        return [self.tokens[id] for id in order[4:]], self.embeddings[order]
