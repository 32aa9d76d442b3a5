"""The frame of every page: head, style, script and footer in one file that needs no other."""

from html import escape
from importlib.resources import files
from pathlib import Path
from string import Template

from regard.core.files import write_bytes
from regard.views.pages import assets
from regard.views.pages.policy import policy

SHARED = ("dom.js", "words.js", "theme.js")  # of the look: the switches of theme and language
SCRIPTS = ("words.js", "page.js")


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
