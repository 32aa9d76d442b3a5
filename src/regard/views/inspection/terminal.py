"""An inspection as lines for a terminal: the answer token by token."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table
from rich.text import Text

SHOWN = 3  # runners-up in a line, and tokens that are looked at
LEAST = 0.005  # shares below are not worth a place in a line
WIDE = 1000  # a table is as wide as its rows: a narrow terminal folds it, a file does not


def show(inspection: dict[str, Any], more: str) -> None:
    """Prints what was answered and why, in short; more: how to get the rest."""
    console = Console(width=WIDE, highlight=False, markup=False, emoji=False, soft_wrap=True)
    model = inspection["model"]
    head = f"{model['name']}: {model['task']}, {model['parameters']:,} parameters"
    console.print(Text(head, "bold"))
    console.print(Text(model["description"], "dim"))
    for name in ("source", "target"):
        given = " (given)" if inspection[name].get("given") else ""
        console.print(Text(f"{name}{given}: ", "dim") + Text(_safe(inspection[name]["text"])))
    console.print(_table(inspection))
    for line in _lines(inspection):
        console.print(Text(_safe(line)))
    console.print(Text(more, "dim"))


def _safe(text: str) -> str:
    """A text as one line: what would move the cursor of a terminal is written out."""
    return "".join(sign if sign.isprintable() else repr(sign)[1:-1] for sign in text)


def _table(inspection: dict[str, Any]) -> Table:
    """A row for each token: its probability, what else was likely, what it attends to."""
    steps, columns = inspection["steps"], dict[str, list[str]]()
    if inspection["model"]["task"] == "tag":  # a tag for each word
        columns["word"] = inspection["source"]["tokens"]
    tokens = [step["token"] for step in steps]
    if "value" in steps[0]:
        columns["value"] = tokens
    else:
        columns |= {"token": tokens, "p": [f"{step['p']:.3f}" for step in steps]}
        columns["others"] = [_pairs(step["others"]) for step in steps]
    columns |= _attended(inspection)
    table = Table(*columns, box=None, pad_edge=False, header_style="dim")
    for row in zip(*columns.values(), strict=True):
        table.add_row(*map(Text, row))
    return table


def _attended(inspection: dict[str, Any]) -> dict[str, list[str]]:
    """For each token what it attends to most in the source, or else by gradients; by its name."""
    maps = [m for m in inspection["attention"] if m["part"] in ("cross", "pool")]
    columns, saliency = inspection["source"]["tokens"], inspection["saliency"]
    if maps:
        rows, name = np.mean(maps[-1]["heads"], 0), "looks at"
    elif saliency is not None:
        rows, name = np.asarray(saliency["values"]), "rests on (gradient)"
        rows = rows / np.where(rows.any(1), rows.sum(1), 1.0)[:, None]
        columns = inspection["inputs"] if saliency["columns"] == "inputs" else columns
    else:
        return {}
    best = [[(columns[n], row[n]) for n in np.argsort(-row, kind="stable")] for row in rows]
    return {name: [*map(_pairs, best * len(inspection["steps"]) if len(best) == 1 else best)]}


def _pairs(pairs: Sequence[Any]) -> str:
    return "  ".join(f"{token} {share:.2f}" for token, share in pairs[:SHOWN] if share >= LEAST)


def _lines(inspection: dict[str, Any]) -> list[str]:
    """The score, what greedy search would have said, what is odd, and notes."""
    lines, tree = [], inspection["tree"]
    if inspection["score"] is not None:
        lines.append(f"score {inspection['score']:.4f}")
    if tree is not None:
        scores = tree["scores"]
        if inspection["target"]["given"]:
            lines.append(f"the model itself says: {tree['best']} (score {scores['best']:.4f})")
        same = tree["best"] == tree["greedy"]
        said = "the same" if same else f"{tree['greedy']} (score {scores['greedy']:.4f})"
        lines.append(f"greedy search would have said: {said}")
    if inspection["cut"]:
        lines.append("the answer came to its limit of length and was ended there")
    if inspection["unknown"]:
        tokens = " ".join(map(repr, inspection["unknown"]))
        lines.append(f"tokens that training never saw: {tokens}")
    return lines + inspection["notes"]
