"""The tensors of a Marian model, under the names of regard. A side is the encoder or the decoder.

Shapes: D width, F inner width of a feed-forward network.
"""

from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from regard.core.errors import UserError
from regard.exchange.importing.marian_tokens import MarianTokens
from regard.exchange.importing.torch_checkpoint import Metadata
from regard.nn.positions.sinusoidal import sinusoids

DISABLED_LOGIT = -1000.0  # bias of a token that must never be output: e^-1000 is 0
SIDES = ("encoder", "decoder")


class Tensors:
    """The tensors of a checkpoint. One error reports all missing, wrong and unused tensors."""

    def __init__(self, tensors: dict[str, Tensor]) -> None:
        self.left = dict(tensors)
        self.problems: list[str] = []

    def take(self, name: str, *shape: int) -> Tensor:
        """Remove and return a tensor as float32. Note a problem if it is missing or wrong."""
        if name not in self.left:
            self.problems.append(f"{name}: missing")
            return torch.zeros(shape)
        found = self.left.pop(name)
        if found.shape != shape or not found.is_floating_point():
            kind = str(found.dtype).removeprefix("torch.")
            self.problems.append(f"{name}: expected floats {shape}, found {kind} {(*found.shape,)}")
            return torch.zeros(shape)
        return found.float()

    def same(self, names: list[str], *shape: int) -> Tensor:
        """Return a tied tensor, which the checkpoint stores under one or more of these names."""
        names_found = [name for name in names if name in self.left]
        found = [self.take(name, *shape) for name in names_found or names[:1]]
        for name, other in zip(names_found[1:], found[1:], strict=True):
            if not torch.equal(other, found[0]):
                self.problems.append(f"{name}: differs from {names_found[0]}, to which it is tied")
        return found[0]

    def done(self, where: Path) -> None:
        """Raise UserError if tensors are missing, wrong or unused."""
        problems = self.problems + [f"{name}: unexpected" for name in sorted(self.left)]
        if problems:
            shown = "\n".join(f"  {problem}" for problem in problems[:10])
            more = f"\n  and {len(problems) - 10} more" if len(problems) > 10 else ""
            raise UserError(f"{where}: the tensors do not match config.json\n{shown}{more}")


def linear(tensors: Tensors, ours: str, theirs: list[str], rows: int, width: int) -> Metadata:
    """Return the linear layer `ours`: the Marian layers `theirs`, each (rows, width), stacked."""
    weights = [tensors.take(f"{name}.weight", rows, width) for name in theirs]
    biases = [tensors.take(f"{name}.bias", rows) for name in theirs]
    return {f"{ours}.weight": torch.cat(weights), f"{ours}.bias": torch.cat(biases)}


def norm(tensors: Tensors, ours: str, theirs: str, width: int) -> Metadata:
    """Return the weights of a layer norm."""
    return {
        f"{ours}.norm.{name}": tensors.take(f"{theirs}.{name}", width)
        for name in ("weight", "bias")
    }


def side_weights(tensors: Tensors, side: str, options: Any) -> Metadata:
    """Return the weights of all layers of the encoder or the decoder."""
    D, F = options.width, options.feedforward_width
    found: Metadata = {}
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
    tensors: Tensors,
    config: Metadata,
    source: MarianTokens,
    target: MarianTokens,
    disabled: list[int],
) -> Metadata:
    """Return the embeddings and the output layer, with rows in the order of our ids.

    disabled: further ids that must never be output. Shared tables appear once: `target.weight` is
    missing if both sides share embeddings, `head.weight` if the output layer is tied.
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
    return found | {"head.bias": _bias(tensors, target, disabled)}


def _bias(tensors: Tensors, target: MarianTokens, disabled: list[int]) -> Tensor:
    """Return the output bias: zeros if it is missing, as in transformers."""
    bias = torch.zeros(1, _rows(target))
    if "final_logits_bias" in tensors.left:
        bias = tensors.take("final_logits_bias", *bias.shape)
    ours = target.of(bias[0])
    ours[[*target.disabled, *disabled]] = DISABLED_LOGIT
    return ours


def position_table(tensors: Tensors, side: str, width: int) -> Tensor | None:
    """Return the learned positions of a side; None if they are missing or sinusoidal."""
    name = f"model.{side}.embed_positions.weight"
    if name not in tensors.left:
        return None
    table = tensors.take(name, len(tensors.left[name]), width)
    sinusoidal = sinusoids(len(table), width, "halves")
    return None if torch.allclose(table, sinusoidal, atol=1e-3) else table


def _rows(tokens: MarianTokens) -> int:
    """Return the number of rows in the embedding table of the Marian model."""
    return max(tokens.rows) + 1
