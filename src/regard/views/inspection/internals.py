"""Internals of a model: attention, head ablation, saliency and gates.

An output part is one output token, tag, label or number.
"""

import re
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from regard.inference.model_capture import ablate, capture
from regard.nn.capture import Capture, MapKind
from regard.tasks.inspection.forced_pass import ForcedPass, TokenAxis, TokenizedText
from regard.tasks.inspection.notes import Note
from regard.views.inspection.picture import image_grid, inspect_picture, position_names
from regard.views.inspection.sound_view import sound_view
from regard.views.inspection.value import (
    AttentionMap,
    Direction,
    Gate,
    Inspection,
    ModulePart,
    Saliency,
)

AXES: dict[ModulePart, tuple[TokenAxis, TokenAxis]] = {
    "encoder": ("source", "source"),
    "decoder": ("target", "inputs"),
    "cross": ("target", "source"),
    "pooling": ("one", "source"),
}
INPUT_MODULES = ("frontend", "frontend.tokens", "target")  # token embeddings
MAX_GATE_VALUES = 400_000  # with more values in total, only the means of the gates are kept


def inspect_internals(forced_pass: ForcedPass, model: dict[str, Any]) -> Inspection:
    """Return the inspection with all views that the model supports.

    model: the description from `describe_model`.
    """
    assert forced_pass.output is not None
    views, notes = forced_pass.supported_views, list[Note]()
    internals: dict[str, Any] = {}
    output = vars(forced_pass.output)
    if views & {"attention", "gates"}:
        with torch.inference_mode(), capture(forced_pass.request.model) as captured:
            forced_pass.forward()
        too_many = 0
        if (grid := image_grid(captured)) is not None:
            source = TokenizedText(forced_pass.output.source.text, position_names(grid))
            output, limit = output | {"source": source}, forced_pass.request.max_tokens
            too_many = grid.positions if grid.positions > limit else 0
        if too_many:
            captured.attention.calls.clear()
            notes.append(Note("positions.many", count=too_many, limit=limit))
        internals = {
            "attention": attention_maps(forced_pass, captured),
            "gates": gate_activations(captured),
        }
        if "picture" in views:
            internals["picture"] = inspect_picture(forced_pass, captured)
            notes += internals["picture"].notes
        if "sound" in views:
            internals["sound"] = sound_view(forced_pass.request)
        if too_many:
            pass
        elif not internals["attention"]:
            notes.append(Note("attention.none"))
        elif not internals["attention"][0].ablation_delta:
            notes.append(Note("heads.skipped", tokens=forced_pass.lengths()[1]))
        if internals["gates"] and internals["gates"][0].units is None:
            notes.append(Note("gates.means", limit=MAX_GATE_VALUES))
    if "saliency" in views:
        internals["saliency"] = compute_saliency(forced_pass)
    output |= {"notes": forced_pass.notes(notes)}
    return Inspection(model=model, **output, **internals)


def attention_maps(forced_pass: ForcedPass, captured: Capture) -> tuple[AttentionMap, ...]:
    """Return the attention of all layers, with the entropy and ablation delta of each head."""
    heads = {name: weights.shape[1] for name, weights in captured.attention.items()}
    deltas: dict[str, tuple[float, ...]] = {}
    if not forced_pass.too_expensive(sum(heads.values())):
        deltas = ablation_deltas(forced_pass, heads)
    entropies, maps = captured.entropy(), []
    for name, weights in captured.attention.items():
        part, entropy = module_part(name), tuple(entropies[name][0].tolist())
        about = (name, part, layer_index(name), *AXES[part])
        kept, kind = forced_pass.kept, captured.map_kinds[name]
        values = weights[0][:, :kept, :kept].float().cpu()
        hidden = hidden_columns(values, kind)
        maps.append(
            AttentionMap(*about, values, entropy, deltas.get(name, ()), kind.implied, hidden)
        )
    return tuple(maps)


def hidden_columns(heads: Tensor, kind: MapKind) -> tuple[str, ...]:
    """Return, for each row of maps (H, rows, columns), "1" for columns it cannot attend to."""
    hidden = (heads == 0).all(0) & kind.sparse
    if kind.causal:
        hidden |= torch.ones_like(hidden).triu(1)
    if not hidden.any():
        return ()
    return tuple("".join("1" if one else "0" for one in row) for row in hidden.tolist())


@torch.inference_mode()
def ablation_deltas(forced_pass: ForcedPass, heads: dict[str, int]) -> dict[str, tuple[float, ...]]:
    """Return the change of the total score when a head is ablated, for each head of each module.

    heads: number of heads by module name.
    """
    if not heads:
        return {}
    baseline = forced_pass.total_score(1)
    all_heads = [(name, head) for name, count in heads.items() for head in range(count)]
    deltas: dict[str, list[float]] = {name: [] for name in heads}
    for start in range(0, len(all_heads), forced_pass.max_total_copies()):
        forced_pass.request.on_step()
        chunk = all_heads[
            start : start + forced_pass.max_total_copies()
        ]  # one copy of the input per head
        masks = {name: torch.zeros(len(chunk), count).bool() for name, count in heads.items()}
        for copy, (name, head) in enumerate(chunk):
            masks[name][copy, head] = True
        with ablate(forced_pass.request.model, masks):
            changes = forced_pass.total_score(len(chunk)) - baseline
        for (name, _), change in zip(chunk, changes.tolist(), strict=True):
            deltas[name].append(change)
    return {name: tuple(changes) for name, changes in deltas.items()}


def compute_saliency(forced_pass: ForcedPass) -> Saliency | None:
    """Return the norm of the gradient of each output part's score, for each input token."""
    parts, rows = list(range(forced_pass.lengths()[0])), forced_pass.row_axis
    values: dict[str, list[Tensor]] = {}
    # cuDNN cannot differentiate recurrent layers in evaluation mode.
    with torch.enable_grad(), torch.backends.cudnn.flags(enabled=False):
        for start in range(0, len(parts), forced_pass.max_copies()):
            forced_pass.request.on_step()
            chunk = parts[start : start + forced_pass.max_copies()]
            with capture(forced_pass.request.model) as captured:
                score = forced_pass.output_scores(chunk).sum()
            for name, one in forced_pass.saliency(captured, score).items():
                # Character embeddings of words have other positions; images, see `Picture`.
                if name in INPUT_MODULES and one.dim() == 2:
                    shown = one[:, : forced_pass.kept].detach().float().cpu()
                    values.setdefault(name, []).append(shown)
    joined = {name: torch.cat(some) for name, some in values.items()}
    source = joined.get("frontend", joined.get("frontend.tokens"))
    if source is not None:
        source = sum_groups(source, forced_pass.request.stride)
    target = joined.get("target")
    decoder_inputs = None if target is None else Saliency(rows, "inputs", target)
    return decoder_inputs if source is None else Saliency(rows, "source", source, decoder_inputs)


def sum_groups(values: Tensor, size: int) -> Tensor:
    """Return the sum of each group of `size` values, (n, S / size) for values (n, S)."""
    padded = F.pad(values, (0, -values.shape[1] % size))
    return padded.unflatten(1, (-1, size)).sum(-1)


def gate_activations(captured: Capture) -> tuple[Gate, ...]:
    """Return the gates and the outputs of all recurrent layers over time."""
    layers = [name for name in captured.hidden if name in captured.gates]
    layers = [name for name in layers if name.startswith(("encoder", "decoder"))]
    values = {name: {**captured.gates[name], "hidden": captured.hidden[name]} for name in layers}
    total = sum(one.numel() for gates in values.values() for one in gates.values())
    found = []
    for name, gates in values.items():
        part = module_part(name)
        rows: TokenAxis = "source" if part == "encoder" else "inputs"
        direction: Direction = "backward" if ".backwards." in name else "forward"
        for gate, one in gates.items():
            units = one[0].float().cpu()
            mean, kept = tuple(units.mean(-1).tolist()), units if total <= MAX_GATE_VALUES else None
            found.append(Gate(name, part, layer_index(name), direction, gate, rows, mean, kept))
    return tuple(found)


def module_part(name: str) -> ModulePart:
    """Return the part of the model that a module path belongs to."""
    if name.endswith((".cross", ".score")):
        return "cross"
    if name in ("pool", "pooling"):
        return "pooling"
    return "encoder" if name.startswith("encoder") else "decoder"


def layer_index(name: str) -> int:
    """Return the first layer index in a module path, or 0."""
    found = re.search(r"\.(\d+)(\.|$)", name)
    return int(found[1]) if found else 0
