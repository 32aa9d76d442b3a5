"""Internals of a model: attention, head ablation, saliency and gates.

R parts of the answer, H heads, T rows, S columns, D width of a layer.
"""

import re
from typing import Any

import torch
from torch import Tensor

from regard.inference.model_capture import ablate, capture
from regard.nn.capture import Capture
from regard.tasks.questions.notes import Note
from regard.tasks.questions.question import Axis, Question
from regard.views.inspection.value import AttentionMap, Gate, Inspection, Part, Saliency, Way

AXES: dict[Part, tuple[Axis, Axis]] = {
    "encoder": ("source", "source"),
    "decoder": ("target", "inputs"),
    "cross": ("target", "source"),
    "pooling": ("one", "source"),
}
READ = ("frontend", "frontend.tokens", "target")  # where tokens become vectors
UNITS = 400_000  # numbers of gates that are kept one by one; of more only the means are


def inside(question: Question, about: dict[str, Any]) -> Inspection:
    """Return all that can be captured. about: the model."""
    assert question.facts is not None
    shows, notes = question.shows, list[Note]()
    found: dict[str, Any] = {}
    if shows & {"attention", "gates"}:
        with torch.inference_mode(), capture(question.asked.model) as captured:
            question.read()
        found = {"attention": maps_of(question, captured), "gates": gates_of(captured)}
        if not found["attention"]:
            notes.append(Note("attention.none"))
        elif not found["attention"][0].ablation_delta:
            notes.append(Note("heads.dear", tokens=question.lengths()[1]))
        if found["gates"] and found["gates"][0].units is None:
            notes.append(Note("gates.means", most=UNITS))
    if "saliency" in shows:
        found["saliency"] = saliency_of(question)
    facts = vars(question.facts) | {"notes": question.notes(notes)}
    return Inspection(model=about, **facts, **found)


def maps_of(question: Question, captured: Capture) -> tuple[AttentionMap, ...]:
    """The attention of all layers, and what each head is worth."""
    heads = {name: weights.shape[1] for name, weights in captured.attention.items()}
    worth = {} if question.dear(sum(heads.values())) else silenced(question, heads)
    spread, found = captured.entropy(), []
    for name, weights in captured.attention.items():
        part, entropy = part_of(name), tuple(spread[name][0].tolist())
        about = (name, part, layer_of(name), *AXES[part])
        found.append(AttentionMap(*about, weights[0].float().cpu(), entropy, worth.get(name, ())))
    return tuple(found)


@torch.inference_mode()
def silenced(question: Question, heads: dict[str, int]) -> dict[str, tuple[float, ...]]:
    """How the score of the whole answer changes when each head of each attention is silent."""
    if not heads:
        return {}
    before = question.totals(1)
    places = [(name, head) for name, count in heads.items() for head in range(count)]
    found: dict[str, list[float]] = {name: [] for name in heads}
    for first in range(0, len(places), question.totals_at_once()):
        question.asked.on_step()
        some = places[first : first + question.totals_at_once()]  # a copy for each
        masks = {name: torch.zeros(len(some), count).bool() for name, count in heads.items()}
        for copy, (name, head) in enumerate(some):
            masks[name][copy, head] = True
        with ablate(question.asked.model, masks):
            changes = question.totals(len(some)) - before
        for (name, _), change in zip(some, changes.tolist(), strict=True):
            found[name].append(change)
    return {name: tuple(changes) for name, changes in found.items()}


def saliency_of(question: Question) -> Saliency | None:
    """The norm of the gradient of each part of the answer by each token that was read."""
    parts, rows = list(range(question.lengths()[0])), question.rows
    found: dict[str, list[Tensor]] = {}
    with torch.enable_grad(), torch.backends.cudnn.flags(enabled=False):  # which has no such rows
        for first in range(0, len(parts), question.at_once()):
            question.asked.on_step()
            with capture(question.asked.model) as captured:
                score = question.each(parts[first : first + question.at_once()]).sum()
            for name, values in question.saliency(captured, score).items():
                if name in READ:  # letters of words have other rows, not the same in all passes
                    found.setdefault(name, []).append(values.detach().float().cpu())
    joined = {name: torch.cat(some) for name, some in found.items()}
    source = joined.get("frontend", joined.get("frontend.tokens"))
    read = joined.get("target")
    before = None if read is None else Saliency(rows, "inputs", read)
    return before if source is None else Saliency(rows, "source", source, before)


def gates_of(captured: Capture) -> tuple[Gate, ...]:
    """The gates of all recurrent layers over time, and what the layers give."""
    layers = [name for name in captured.hidden if name in captured.gates]
    layers = [name for name in layers if name.startswith(("encoder", "decoder"))]
    views = {name: {**captured.gates[name], "hidden": captured.hidden[name]} for name in layers}
    total = sum(view.numel() for gates in views.values() for view in gates.values())
    found = []
    for name, gates in views.items():
        part = part_of(name)
        rows: Axis = "source" if part == "encoder" else "inputs"
        way: Way = "backward" if ".backwards." in name else "forward"
        for gate, view in gates.items():
            units = view[0].float().cpu()
            mean, kept = tuple(units.mean(-1).tolist()), units if total <= UNITS else None
            found.append(Gate(name, part, layer_of(name), way, gate, rows, mean, kept))
    return tuple(found)


def part_of(name: str) -> Part:
    """Which part of a model the path of a module belongs to."""
    if name.endswith((".cross", ".score")):
        return "cross"
    return (
        "pooling"
        if name in ("pool", "pooling")
        else "encoder"
        if name.startswith("encoder")
        else "decoder"
    )


def layer_of(name: str) -> int:
    """The number of a layer in the path of a module, the first one; 0 where there is none."""
    found = re.search(r"\.(\d+)(\.|$)", name)
    return int(found[1]) if found else 0
