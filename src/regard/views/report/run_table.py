"""Runs as lines of text: a table where it fits, blocks where it does not."""

import textwrap
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.cells import cell_len
from rich.text import Text

from regard.views.report.overview import Summary, plain
from regard.views.report.score_table import shown

GAP = 2  # spaces between columns
STYLES = {"finished": "green", "running": "cyan", "stopped": "yellow", "damaged": "red"}
RIGHT = {"step", "min", "params"}  # columns of numbers


@dataclass(frozen=True)
class RunRow:
    """A run as text: `settings` set it apart from runs like it, `others` also from the rest."""

    cells: dict[str, str]
    settings: dict[str, str]
    others: dict[str, str]


def row(run: Summary, apart: list[str], names: dict[str, str], inside: Path | None) -> RunRow:
    """A run as text. `names` are short ones of settings; `inside` is a folder left unsaid."""
    cells = {
        "run": _name(run.folder, inside),
        "task": run.task or "?",
        "data": printable(run.data) or "-",
        "state": run.state,
        "best": _best(run),
        "step": _step(run),
        "min": _number(run.most("seconds"), lambda seconds: f"{seconds / 60:.1f}"),
        "params": _number(run.parameters, in_short),
    }
    known = {key: printable(plain(run.settings[key])) for key in names if key in run.settings}
    settings = {names[key]: known[key] for key in apart}
    return RunRow(cells, settings, {names[key]: value for key, value in known.items()})


def in_short(count: float) -> str:
    """A large number in few letters: 950, 437k, 1.73M."""
    for size, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if count >= size:
            return f"{count / size:.3g}{letter}"
    return f"{count:g}"


def table(rows: Sequence[RunRow], width: int | None) -> list[Text]:
    """Lines of at most `width`: settings as columns, else below each run, else all in blocks."""
    names = list(dict.fromkeys(name for row in rows for name in row.settings))
    main = list(rows[0].cells)
    wide = [{**row.cells, **{n: row.others.get(n, "-") for n in names}} for row in rows]
    cells = [row.cells for row in rows]
    if width is None or _width([*main, *names], wide) <= width:
        return _lines([*main, *names], wide)
    same = [n for n in ("task", "data") if len({row.cells[n] for row in rows}) == 1]
    out: list[Text] = []
    narrow = main if _width(main, cells) <= width else [name for name in main if name not in same]
    if _width(narrow, cells) > width:
        blocks = [_block(row, width) for row in rows]
    else:
        if narrow != main:
            out.append(Text("all: " + ", ".join(cells[0][name] for name in same), style="dim"))
        top, *single = _lines(narrow, cells)
        out.append(top)
        blocks = [[line] for line in single]
    for row, block in zip(rows, blocks, strict=True):
        settings = "  ".join(f"{name}={value}" for name, value in row.settings.items())
        below = textwrap.wrap(settings, width - 4, break_on_hyphens=False)
        out += [*block, *(Text(f"    {part}", style="dim") for part in below)]
    return out


def _block(row: RunRow, width: int) -> list[Text]:
    """A run in a few lines."""
    cells = row.cells
    words = [cells["task"], cells["data"], cells["state"], cells["best"], f"step {cells['step']}"]
    text = ", ".join([*words, f"{cells['min']} min", f"{cells['params']} parameters"])
    parts = textwrap.wrap(text, width - 2, break_on_hyphens=False)
    return [Text(cells["run"], style="bold"), *(Text(f"  {part}") for part in parts)]


def _width(names: Sequence[str], rows: Sequence[dict[str, str]]) -> int:
    return sum(_widths(names, rows)) + GAP * (len(names) - 1)


def _widths(names: Sequence[str], rows: Sequence[dict[str, str]]) -> list[int]:
    return [max(cell_len(name), *(cell_len(row[name]) for row in rows)) for name in names]


def _lines(names: Sequence[str], rows: Sequence[dict[str, str]]) -> list[Text]:
    """A head and a line for each row."""
    widths = _widths(names, rows)
    lines: list[Text] = []
    for row in [{name: name for name in names}, *rows]:
        line = Text()
        for name, width in zip(names, widths, strict=True):
            space = " " * (width - cell_len(row[name]))
            style = STYLES.get(row[name], "") if name == "state" else ""
            gap = " " * GAP if line else ""
            line.append(gap + (space if name in RIGHT else ""))
            line.append(row[name], style="dim" if not lines else style)
            line.append("" if name in RIGHT else space)
        line.rstrip()
        lines.append(line)
    return lines


def _name(folder: Path, inside: Path | None) -> str:
    relative = folder if inside in (None, folder) else folder.relative_to(inside)
    return printable(str(relative))


def printable(text: str) -> str:
    """The text without signs that would steer a terminal."""
    return "".join(sign if sign.isprintable() else "\ufffd" for sign in text)


def _best(run: Summary) -> str:
    if run.best is None:
        return "-"
    return f"{printable(run.best.metric)} {shown(run.best.metric, run.best.value, 2)}"


def _step(run: Summary) -> str:
    last = run.most("step")
    if last is None:
        return "-"
    best = run.best.step if run.best else None
    return f"{last:.0f}" if best is None else f"{best:.0f}/{last:.0f}"


def _number(value: float | None, form: Callable[[float], str]) -> str:
    return "-" if value is None else form(value)
