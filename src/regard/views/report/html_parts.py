"""The pieces that pages are made of: sections, notes, tables and figures, and their frame: head,
style, script and footer in one file that needs no other."""

from collections.abc import Iterable, Sequence
from html import escape
from importlib.resources import files
from pathlib import Path
from string import Template

from regard.core.files import write_bytes
from regard.views.pages import assets
from regard.views.pages.policy import policy

SHARED = ("dom.js", "words.js", "theme.js")  # of the look: the switches of theme and language
SCRIPTS = ("words.js", "page.js")
DASH = "&ndash;"  # in place of what is not known


def section(title: str, *parts: str, style: str = "") -> str:
    """A section under a title; an empty text if nothing is in it."""
    inside = "".join(parts)
    start = f'<section class="{style}">' if style else "<section>"
    return f"{start}<h2>{title}</h2>{inside}</section>" if inside else ""


def note(text: str) -> str:
    """A remark in small letters; an empty text if it says nothing."""
    return f'<p class="note">{text}</p>' if text else ""


def table(style: str, head: str, rows: Iterable[str]) -> str:
    """A table of rows that are HTML already, with these cells at its top."""
    top = f"<thead><tr>{head}</tr></thead>" if head else ""
    return f'<table class="{style}">{top}{"".join(rows)}</table>'


def cells(values: Sequence[str], tag: str = "td", style: str = "number") -> str:
    """Cells of one kind, such as numbers."""
    return "".join(f'<{tag} class="{style}">{value}</{tag}>' for value in values)


def code(text: object) -> str:
    """Text of a program."""
    return f"<code>{escape(str(text))}</code>"


def figure(
    style: str,
    title: str,
    size: tuple[float, float],
    said: str,
    drawn: Sequence[str],
    legend: str = "",
    after: str = "",
) -> str:
    """An SVG drawing of this size under its title. said: the drawing in words, for who cannot see
    it; legend: HTML at the side of the title; after: HTML after the drawing."""
    return (
        f'<figure class="{style}"><figcaption><span>{title}</span>{legend}</figcaption>'
        f"{svg(size, said, drawn)}{after}</figure>"
    )


def svg(
    size: tuple[float, float], said: str, drawn: Sequence[str], before: str = "", after: str = ""
) -> str:
    """The drawing alone; before, after: further attributes."""
    return (
        f'<svg {before}viewBox="0 0 {size[0]:.0f} {size[1]:.0f}" {after}role="img" '
        f'aria-label="{said}">{"".join(drawn)}</svg>'
    )


def level(left: float, right: float, y: float, name: str) -> str:
    """A line of the grid at a height, and its name before it."""
    return (
        f'<path class="grid" d="M{left} {y:.1f}H{right}"/>'
        f'<text class="y" x="{left - 7}" y="{y + 4:.1f}">{name}</text>'
    )


def dot(style: str, x: float, y: float, radius: float = 3) -> str:
    """A point."""
    return f'<circle class="{style}" cx="{x:.1f}" cy="{y:.1f}" r="{radius}"/>'


def fill_page(
    title: str,
    eyebrow: str,
    name: str,
    command: str,
    sections: list[str],
    notes: list[str],
    styles: tuple[str, ...] = ("page.css",),
) -> str:
    """The whole page, of parts that are HTML already; `title`, `name` and `notes` are plain."""
    style = "\n".join(["", assets(["base.css"]), *map(_part, styles), ""])
    script = "\n".join(["", assets(SHARED), *map(_part, SCRIPTS), ""])
    return Template(_part("page.html")).substitute(
        policy=policy(script, style),
        title=escape(title),
        style=style,
        script=script,
        eyebrow=eyebrow,
        name=escape(name),
        command=command,
        sections="\n".join(filter(None, sections)),
        footer="".join(f"<p>{escape(note)}</p>" for note in notes),
    )


def write_page(target: Path, page: str) -> Path:
    """The path of the page, written whole."""
    # Lone surrogates cannot be written as UTF-8; everything else goes through untouched.
    write_bytes(target, page.encode("utf-8", errors="replace"))
    return target


def _part(name: str) -> str:
    return files("regard.views.report").joinpath(name).read_text("utf-8").strip()
