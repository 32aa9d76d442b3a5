"""HTML building blocks of reports: sections, notes, tables, figures, and the full page.

`style` is the CSS class of an element.
"""

from collections.abc import Callable, Iterable, Sequence
from html import escape
from importlib.resources import files
from pathlib import Path
from string import Template

from regard.core.files import write_bytes
from regard.views.pages import assets
from regard.views.pages.policy import policy

SHARED = ("dom.js", "words.js", "theme.js")  # theme and language switches
SCRIPTS = ("words.js", "page.js")
DASH = "&ndash;"  # for unknown values


def section(title: str, *parts: str, style: str = "") -> str:
    """Return a section with a title, or an empty string if all parts are empty."""
    content = "".join(parts)
    start = f'<section class="{style}">' if style else "<section>"
    return f"{start}<h2>{title}</h2>{content}</section>" if content else ""


def note(text: str) -> str:
    """Return a paragraph in small print, or an empty string if the text is empty."""
    return f'<p class="note">{text}</p>' if text else ""


def sentences(texts: Iterable[str]) -> str:
    """Return sentences, each as an element of its own, since it is translated as a whole."""
    return " ".join(f"<span>{escape(text)}</span>" for text in texts)


def table(style: str, head: str, rows: Iterable[str]) -> str:
    """Return a table. head: header cells (HTML). rows: table rows (HTML)."""
    top = f"<thead><tr>{head}</tr></thead>" if head else ""
    return f'<table class="{style}">{top}{"".join(rows)}</table>'


def cells(values: Sequence[str], tag: str = "td", style: str = "number") -> str:
    """Return table cells of one style, such as numbers. values: HTML."""
    return "".join(f'<{tag} class="{style}">{value}</{tag}>' for value in values)


def code(text: object) -> str:
    """Return a text as a code element."""
    return f"<code>{escape(str(text))}</code>"


def figure(
    style: str,
    title: str,
    size: tuple[float, float],
    description: str,
    shapes: Sequence[str],
    legend: str = "",
    after: str = "",
) -> str:
    """Return an SVG figure with a title.

    description: for screen readers. shapes: SVG elements. legend: HTML next to the title. after:
    HTML after the drawing.
    """
    return (
        f'<figure class="{style}"><figcaption><span>{title}</span>{legend}</figcaption>'
        f"{svg(size, description, shapes)}{after}</figure>"
    )


def svg(
    size: tuple[float, float],
    description: str,
    shapes: Sequence[str],
    before: str = "",
    after: str = "",
) -> str:
    """Return an SVG element. before, after: attributes before and after `viewBox`."""
    return (
        f'<svg {before}viewBox="0 0 {size[0]:.0f} {size[1]:.0f}" {after}role="img" '
        f'aria-label="{description}">{"".join(shapes)}</svg>'
    )


def level(left: float, right: float, y: float, name: str) -> str:
    """Return a horizontal grid line with a label to the left."""
    return (
        f'<path class="grid" d="M{left} {y:.1f}H{right}"/>'
        f'<text class="y" x="{left - 7}" y="{y + 4:.1f}">{name}</text>'
    )


def dot(style: str, x: float, y: float, radius: float = 3) -> str:
    """Return a circle."""
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
    """Return the complete page. `title` and `notes` are plain text, the others HTML.

    eyebrow: line above the heading. name: the heading. notes: lines of the footer. styles: names
    of style sheets.
    """
    style = "\n".join(["", assets(["base.css"]), *map(_asset, styles), ""])
    chinese = f"window.regard.chinese = {_asset('chinese.json')};".replace("\n", "")
    script = "\n".join(["", assets(SHARED), chinese, *map(_asset, SCRIPTS), ""])
    return Template(_asset("page.html")).substitute(
        policy=policy(script, style),
        title=escape(title),
        style=style,
        script=script,
        eyebrow=eyebrow,
        name=name,
        command=command,
        sections="\n".join(filter(None, sections)),
        footer="".join(f"<p>{escape(note)}</p>" for note in notes),
    )


def write_page(target: Path, page: str) -> Path:
    """Write a page and return its path."""
    # Lone surrogates cannot be encoded as UTF-8.
    write_bytes(target, page.encode("utf-8", errors="replace"))
    return target


def _asset(name: str) -> str:
    return files("regard.views.report").joinpath(name).read_text("utf-8").strip()


def unless_corrupted(name: str, make: Callable[[], str], notes: list[str]) -> str:
    """Return a section; add a note instead if values of the run have other types."""
    try:
        return make()
    except (AttributeError, IndexError, KeyError, OverflowError, TypeError, ValueError):
        notes.append(f"{name} could not be shown: corrupted values.")
        return ""
