"""Summary of an inspection for the terminal: one row per output token."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table
from rich.text import Text

MAX_SHOWN = 3  # alternatives and attended tokens per row
MIN_SHOWN = 0.005  # smaller probabilities and weights are omitted
CONSOLE_WIDTH = 1000  # do not wrap rows here: the terminal wraps them


def print_summary(inspection: dict[str, Any], more: str) -> None:
    """Print the output with its probabilities and attention. more: a last line with a hint."""
    console = Console(
        width=CONSOLE_WIDTH, highlight=False, markup=False, emoji=False, soft_wrap=True
    )
    model = inspection["model"]
    title = f"{model['name']}: {model['task']}, {model['parameters']:,} parameters"
    console.print(Text(title, "bold"))
    console.print(Text(model["description"], "dim"))
    for side in ("source", "target"):
        forced = " (forced)" if inspection[side].get("forced") else ""
        console.print(Text(f"{side}{forced}: ", "dim") + Text(_escape(inspection[side]["text"])))
    console.print(_table(inspection))
    for line in _lines(inspection):
        console.print(Text(_escape(line)))
    console.print(Text(more, "dim"))


def _search_lines(search: dict[str, Any]) -> list[str]:
    """Return the lengths and passes of mask-predict, or the frames of CTC."""
    lines = [
        f"length {one['length']}: p {one['probability']:.3f}, {one['text']}"
        for one in search.get("lengths", [])
        if one["probability"] is not None
    ]
    for number, tokens in enumerate(search.get("passes", []), 1):
        shown = [f"[{one['token']}]" if one["written"] else one["token"] for one in tokens]
        lines.append(f"pass {number}: {' '.join(shown)}")
    return lines


def _escape(text: str) -> str:
    """Return a text on one line, with control characters escaped."""
    return "".join(char if char.isprintable() else repr(char)[1:-1] for char in text)


def _table(inspection: dict[str, Any]) -> Table:
    """Return a table with one row per output token: probability, alternatives and attention."""
    steps, columns = inspection["steps"], dict[str, list[str]]()
    if inspection.get("graph"):  # one label per explained node
        nodes = inspection["graph"]["nodes"]
        columns["node"] = nodes[: inspection["graph"]["explained"]]
    elif inspection["model"]["task"] == "tag":  # one tag per word
        columns["word"] = inspection["source"]["tokens"]
    tokens = [step["token"] for step in steps]
    if "value" in steps[0]:
        columns["value"] = tokens
    else:
        columns |= {"token": tokens, "p": [f"{step['probability']:.3f}" for step in steps]}
        columns["alternatives"] = [_pairs(step["alternatives"]) for step in steps]
        columns |= _own_columns(steps, inspection.get("own", []))
    columns |= _attention_column(inspection)
    table = Table(*columns, box=None, pad_edge=False, header_style="dim")
    for row in zip(*columns.values(), strict=True):
        table.add_row(*map(Text, row))
    return table


def _own_columns(steps: list[dict[str, Any]], own: list[dict[str, Any]]) -> dict[str, list[str]]:
    """Return the model's own tokens, marked where they differ, and p after its own prefix."""
    if not own:
        return {}
    pairs = list(zip(steps, own, strict=True))
    tokens = [f"{o['token']} *" if o["token"] != step["token"] else o["token"] for step, o in pairs]
    p = ["" if o["probability"] is None else f"{o['probability']:.3f}" for _, o in pairs]
    return {"own output": tokens, "p after it": p}


def _attention_column(inspection: dict[str, Any]) -> dict[str, list[str]]:
    """Return a column with the most attended source tokens, otherwise the most salient ones."""
    maps = [m for m in inspection["attention"] if m["part"] in ("cross", "pooling")]
    columns, saliency = inspection["source"]["tokens"], inspection["saliency"]
    if maps:
        rows, title = np.mean(maps[-1]["heads"], 0), "attends to"
    elif saliency is not None:
        rows, title = np.asarray(saliency["values"]), "depends on (gradient)"
        rows = rows / np.where(rows.any(1), rows.sum(1), 1.0)[:, None]
        columns = inspection["inputs"] if saliency["columns"] == "inputs" else columns
    else:
        return {}
    best = [[(columns[n], row[n]) for n in np.argsort(-abs(row), kind="stable")] for row in rows]
    return {title: [*map(_pairs, best * len(inspection["steps"]) if len(best) == 1 else best)]}


def _pairs(pairs: Sequence[Any]) -> str:
    shown = [(token, value) for token, value in pairs[:MAX_SHOWN] if abs(value) >= MIN_SHOWN]
    return "  ".join(f"{token} {value:.2f}" for token, value in shown)


def _lines(inspection: dict[str, Any]) -> list[str]:
    """Return the score, the greedy output, warnings and notes."""
    lines, tree = [], inspection["tree"]
    if inspection["score"] is not None:
        lines.append(f"score {inspection['score']:.4f}")
    if tree is not None:
        scores = tree["scores"]
        if inspection["target"]["forced"]:
            lines.append(f"model's own output: {tree['best']} (score {scores['best']:.4f})")
        same = tree["best"] == tree["greedy"]
        greedy = "same output" if same else f"{tree['greedy']} (score {scores['greedy']:.4f})"
        lines.append(f"greedy search: {greedy}")
    lines += _search_lines(inspection.get("search") or {})
    if inspection["truncated"]:
        lines.append("warning: output truncated at the length limit")
    if inspection["unknown_tokens"]:
        tokens = " ".join(map(repr, inspection["unknown_tokens"]))
        lines.append(f"warning: unknown tokens: {tokens}")
    return lines + [f"note: {note}" for note in inspection["notes"]]
