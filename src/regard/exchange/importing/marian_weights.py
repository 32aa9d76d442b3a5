"""The tensors of a Marian model under our names.

V rows of a table, D width, F inner size of a feed-forward network.
"""

from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from regard.core.errors import UserError
from regard.exchange.importing.marian_tokens import MarianTokens
from regard.exchange.importing.torch_checkpoint import Facts
from regard.nn.positions import sinusoids

SILENCE = -1000.0  # added to the score of a token that must never be: e^-1000 is 0
SIDES = ("encoder", "decoder")


class Tensors:
    """Tensors that are taken one by one; what is missing, wrong or left is said all at once."""

    def __init__(self, tensors: dict[str, Tensor]) -> None:
        self.left = dict(tensors)
        self.problems: list[str] = []

    def take(self, name: str, *shape: int) -> Tensor:
        """The tensor of this name, which must have this shape, in single precision."""
        if name not in self.left:
            self.problems.append(f"{name}: missing")
            return torch.zeros(shape)
        found = self.left.pop(name)
        if found.shape != shape or not found.is_floating_point():
            kind = str(found.dtype).removeprefix("torch.")
            self.problems.append(
                f"{name}: numbers {shape} expected, {kind} {(*found.shape,)} found"
            )
            return torch.zeros(shape)
        return found.float()

    def same(self, names: list[str], *shape: int) -> Tensor:
        """The tensor that has several names, at least one of which is there."""
        there = [name for name in names if name in self.left]
        found = [self.take(name, *shape) for name in there or names[:1]]
        for name, other in zip(there[1:], found[1:], strict=True):
            if not torch.equal(other, found[0]):
                self.problems.append(f"{name}: not equal to {there[0]}, to which it is tied")
        return found[0]

    def done(self, where: Path) -> None:
        """Refuses tensors that were missing, wrong or not used."""
        problems = self.problems + [f"{name}: not known" for name in sorted(self.left)]
        if problems:
            shown = "\n".join(f"  {problem}" for problem in problems[:10])
            more = f"\n  and {len(problems) - 10} more" if len(problems) > 10 else ""
            raise UserError(f"{where}: the tensors do not fit config.json\n{shown}{more}")


def linear(tensors: Tensors, ours: str, theirs: list[str], rows: int, width: int) -> Facts:
    """A linear layer of ours, of one or several of theirs below each other."""
    weights = [tensors.take(f"{name}.weight", rows, width) for name in theirs]
    biases = [tensors.take(f"{name}.bias", rows) for name in theirs]
    return {f"{ours}.weight": torch.cat(weights), f"{ours}.bias": torch.cat(biases)}


def norm(tensors: Tensors, ours: str, theirs: str, width: int) -> Facts:
    """A layer norm."""
    return {
        f"{ours}.norm.{name}": tensors.take(f"{theirs}.{name}", width)
        for name in ("weight", "bias")
    }


def side_weights(tensors: Tensors, side: str, options: Any) -> Facts:
    """The layers of an encoder or decoder of these options."""
    D, F = options.width, options.feedforward_width
    found: Facts = {}
    for layer in range(options.layers):
        ours, theirs = f"{side}.layers.{layer}", f"model.{side}.layers.{layer}"
        own = [f"{theirs}.self_attn.{x}_proj" for x in "qkv"]
        found |= linear(tensors, f"{ours}.attention.project", own, D, D)
        found |= linear(tensors, f"{ours}.attention.join", [f"{theirs}.self_attn.out_proj"], D, D)
        found |= norm(tensors, f"{ours}.attend", f"{theirs}.self_attn_layer_norm", D)
        if side == "decoder":
            cross = f"{theirs}.encoder_attn"
            both = [f"{cross}.{x}_proj" for x in "kv"]
            found |= linear(tensors, f"{ours}.cross.query", [f"{cross}.q_proj"], D, D)
            found |= linear(tensors, f"{ours}.cross.project", both, D, D)
            found |= linear(tensors, f"{ours}.cross.join", [f"{cross}.out_proj"], D, D)
            found |= norm(tensors, f"{ours}.look", f"{cross}_layer_norm", D)
        found |= linear(tensors, f"{ours}.feedforward.widen", [f"{theirs}.fc1"], F, D)
        found |= linear(tensors, f"{ours}.feedforward.narrow", [f"{theirs}.fc2"], D, F)
        found |= norm(tensors, f"{ours}.feed", f"{theirs}.final_layer_norm", D)
    return found


def tables(
    tensors: Tensors, config: Facts, source: MarianTokens, target: MarianTokens, silent: list[int]
) -> Facts:
    """Embeddings and output layer, their rows in our order. silent: more ids that never count.

    What one table serves is there once: no `target.weight` where both sides have the same
    vectors, no `head.weight` where the output layer is tied to those of the target.
    """
    D, both = config["d_model"], "model.shared.weight"
    shared = config.get("share_encoder_decoder_embeddings", True)
    tied = config.get("tie_word_embeddings", True)
    read, write = (f"model.{side}.embed_tokens.weight" for side in SIDES)
    sizes = (_rows(source), D), (_rows(target), D)
    if tied:
        names = [*([both, read] if shared else []), write, "lm_head.weight"]
        output = tensors.same(names, *sizes[1])
        table = output if shared else tensors.take(read, *sizes[0])
    else:
        common = tensors.take(both, *sizes[0]) if shared and both in tensors.left else None
        table, output = (
            common if common is not None and name not in tensors.left else tensors.take(name, *size)
            for name, size in zip((read, write), sizes, strict=True)
        )
    found = {"frontend.tokens.weight": source.of(table)}
    if not shared or not torch.equal(table, output):
        found["target.weight"] = target.of(output)
    if not tied:
        found["head.weight"] = target.of(tensors.take("lm_head.weight", *sizes[1]))
    return found | {"head.bias": _bias(tensors, target, silent)}


def _bias(tensors: Tensors, target: MarianTokens, silent: list[int]) -> Tensor:
    """What is added to the score of each token: zero where it is missing, as in transformers."""
    bias = torch.zeros(1, _rows(target))
    if "final_logits_bias" in tensors.left:
        bias = tensors.take("final_logits_bias", *bias.shape)
    ours = target.of(bias[0])
    ours[[*target.silent, *silent]] = SILENCE
    return ours


def places(tensors: Tensors, side: str, width: int) -> Tensor | None:
    """The table of positions of a side, unless it holds the usual sines and cosines."""
    name = f"model.{side}.embed_positions.weight"
    if name not in tensors.left:
        return None
    table = tensors.take(name, len(tensors.left[name]), width)
    usual = sinusoids(len(table), width, "halves")
    return None if torch.allclose(table, usual, atol=1e-3) else table


def _rows(tokens: MarianTokens) -> int:
    """How many rows the tables of the other model have."""
    return max(tokens.rows) + 1
