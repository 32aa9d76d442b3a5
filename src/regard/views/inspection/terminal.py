"""An inspection as lines for a terminal: the answer symbol by symbol."""

from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

SHOWN = 3  # runners-up in a line, and symbols that are looked at
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
    """A row for each symbol: its probability, what else was likely, what it looks at."""
    words = _words(inspection)
    looks, name = _looks(inspection)
    columns = [*(["word"] if words else []), "symbol", "p", "others", *([name] if looks else [])]
    if inspection["steps"] and "value" in inspection["steps"][0]:
        columns = ["value", *([name] if looks else [])]
    table = Table(*columns, box=None, pad_edge=False, header_style="dim")
    for place, step in enumerate(inspection["steps"]):
        row = [step["symbol"]] if "value" in step else [step["symbol"], f"{step['p']:.3f}"]
        if "p" in step:
            row.append(_pairs(step["others"]))
        row = [words[place], *row] if words else row
        table.add_row(*map(Text, [*row, *([_pairs(looks[place])] if looks else [])]))
    return table


def _words(inspection: dict[str, Any]) -> list[str]:
    """The words of a sentence that has a tag for each."""
    tagged = inspection["model"]["task"] == "tag"
    return inspection["source"]["symbols"] if tagged else []


def _looks(inspection: dict[str, Any]) -> tuple[list[list[Any]], str]:
    """For each symbol what it looks at most: by attention to the source, or else by gradients."""
    maps = [m for m in inspection["attention"] if m["part"] in ("cross", "pool")]
    if maps:
        heads = maps[-1]["heads"]
        rows = [_means(row) for row in zip(*heads, strict=True)]
        columns, name = inspection["source"]["symbols"], "looks at"
    elif inspection["saliency"] is not None:
        saliency = inspection["saliency"]
        axis = saliency["columns"]
        columns = inspection["inputs"] if axis == "inputs" else inspection["source"]["symbols"]
        rows, name = [_shares(row) for row in saliency["values"]], "rests on (gradient)"
    else:
        return [], ""
    rows = rows * len(inspection["steps"]) if len(rows) == 1 else rows
    return [_most(row, columns) for row in rows], name


def _means(row: tuple[list[float], ...]) -> list[float]:
    """The mean over the heads of what each place has of a row."""
    return [sum(column) / len(row) for column in zip(*row, strict=True)]


def _shares(row: list[float]) -> list[float]:
    return [value / (sum(row) or 1.0) for value in row]


def _most(row: list[float], columns: list[str]) -> list[Any]:
    places = sorted(range(len(row)), key=lambda place: -row[place])
    return [[columns[place], row[place]] for place in places if row[place] > 0]


def _pairs(pairs: list[Any]) -> str:
    return "  ".join(f"{symbol} {share:.2f}" for symbol, share in pairs[:SHOWN] if share >= LEAST)


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
        symbols = " ".join(map(repr, inspection["unknown"]))
        lines.append(f"symbols that training never saw: {symbols}")
    return lines + inspection["notes"]
