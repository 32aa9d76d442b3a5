"""Fonts for any script: which installed fonts cover a text, and a warning if none does."""

import unicodedata
from collections.abc import Iterable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

BASE = "DejaVu Sans"  # bundled with matplotlib; covers Latin, Greek, Cyrillic, Hebrew and Arabic
MAX_LABEL = 24  # characters; longer labels are truncated
VISIBLE = {" ": "␣", "\n": "↵", "\r": "␍", "\t": "⇥", "": "∅"}  # for invisible characters
FALLBACK_FONT = "Last Resort"  # covers every character with a box, so it is excluded
NO_GLYPH = ("Cc", "Cs", "Cn", "Co")  # control, surrogate, unassigned, private use
INVISIBLE = ("Cf", "Zs", "Zl", "Zp")


@dataclass(frozen=True)
class FontSet:
    """Font families in order of preference, and the characters that none of them covers."""

    families: tuple[str, ...]
    missing: frozenset[str] = frozenset()
    warnings: tuple[str, ...] = ()

    def label(self, text: str, max_chars: int = MAX_LABEL) -> str:
        """Return a token as a label of at most `max_chars` characters.

        Visible signs replace a token of whitespace only. Code points replace characters without
        a glyph.
        """
        if len(text) > max_chars:
            text = text[: max_chars - 1] + "…"
        if not text.strip():
            text = "".join(VISIBLE.get(char, char) for char in text) or VISIBLE[""]
        return self.plain(text)

    def plain(self, text: str) -> str:
        """Return a text on one line, with code points for characters that no font covers."""
        text = "".join(VISIBLE[char] if char in "\n\r\t" else char for char in text)
        return "".join(_code_point(char) if char in self.missing else char for char in text)

    def style(self) -> AbstractContextManager[None]:
        """Use these fonts inside the block; `$` does not start math mode."""
        import matplotlib

        settings: Any = {"font.family": list(self.families), "text.parse_math": False}
        return matplotlib.rc_context(settings)


def fonts_for(texts: Iterable[str]) -> FontSet:
    """Return the fonts for these texts: matplotlib's default, and as few others as needed."""
    import matplotlib
    from matplotlib import ft2font

    chars = {char for text in texts for char in text} - VISIBLE.keys()
    no_glyph = {char for char in chars if unicodedata.category(char) in NO_GLYPH}
    visible = {char for char in chars if unicodedata.category(char) not in INVISIBLE}
    families, missing = _families(visible - no_glyph)
    warnings = []
    if missing:
        named = " ".join(map(_code_point, sorted(missing)[:8])) + (" …" if len(missing) > 8 else "")
        warnings.append(f"no installed font covers {named}; install one that does, such as Noto")
    if not hasattr(ft2font, "__libraqm_version__") and any(map(_is_right_to_left, chars)):
        warnings.append(
            f"matplotlib {matplotlib.__version__} does not shape right-to-left text; "
            "version 3.11 does: pip install -U matplotlib"
        )
    return FontSet(tuple(families), frozenset(missing | no_glyph), tuple(warnings))


def _families(chars: set[str]) -> tuple[list[str], set[str]]:
    """Return the font families for these characters, and the characters that none covers."""
    from matplotlib import font_manager

    families = [BASE]
    missing = chars - _open_font(font_manager.findfont(BASE), chars).covered
    paths = sorted(font_manager.findSystemFonts()) if missing else []
    fonts = [_open_font(path, missing) for path in paths]
    while missing:
        best = max(fonts, key=lambda font: (len(font.covered & missing), font.rank), default=None)
        if best is None or not best.covered & missing:
            break
        families.append(
            _register(best, [one.path for one in fonts if one.name == best.name], chars)
        )
        missing -= best.covered
    return families, missing


@dataclass(frozen=True)
class _Font:
    """A font file. rank: higher for regular sans-serif fonts. covered: needed characters."""

    path: str
    name: str = ""
    rank: int = 0
    covered: frozenset[str] = frozenset()


def _open_font(path: str, chars: set[str]) -> _Font:
    """Return a font with its coverage of these characters; an unusable font covers none."""
    from matplotlib.ft2font import FT2Font

    try:
        font = FT2Font(path)
        name, style = font.family_name, font.style_name
        if FALLBACK_FONT in name or not font.scalable:
            return _Font(path)
        covered = frozenset(char for char in chars if font.get_char_index(ord(char)))
    except (OSError, RuntimeError, TypeError, ValueError):
        return _Font(path)
    rank = 4 * ("Mono" not in name) + 2 * (style in ("Regular", "Book")) + ("Sans" in name)
    return _Font(path, name, rank, covered)


def _register(font: _Font, paths: list[str], chars: set[str]) -> str:
    """Register font files with matplotlib and return the family name.

    A font with Chinese, Japanese and Korean families gets the one that fits the characters.
    """
    from matplotlib.font_manager import fontManager

    for path in paths:  # fonts may be installed after matplotlib built its font list
        if not any(entry.fname == path for entry in fontManager.ttflist):
            fontManager.addfont(path)
    names = [entry.name for entry in fontManager.ttflist if entry.fname == font.path]
    words = {unicodedata.name(char, "").partition(" ")[0] for char in chars}
    language = "JP" if words & {"HIRAGANA", "KATAKANA"} else "KR" if "HANGUL" in words else "SC"
    return next((name for name in names if name.endswith(f" {language}")), names[0])


def _code_point(char: str) -> str:
    """Return the Unicode code point of a character."""
    return f"U+{ord(char):04X}"


def _is_right_to_left(char: str) -> bool:
    """Return whether a character is written from right to left."""
    return unicodedata.bidirectional(char) in ("R", "AL")
