"""Letters of any script: which installed fonts have them, and what is said where none has."""

import unicodedata
from collections.abc import Iterable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

BASE = "DejaVu Sans"  # comes with matplotlib; has Latin, Greek, Cyrillic, Hebrew and Arabic
LONGEST = 24  # signs of a label; of what is longer the rest is three dots
NAMED = {" ": "␣", "\n": "↵", "\r": "␍", "\t": "⇥", "": "∅"}  # what leaves no ink
BOXES = "Last Resort"  # has a box for every sign, which is what we want to avoid
UNWRITABLE = ("Cc", "Cs", "Cn", "Co")  # control, half of a pair, nobody's, private
INKLESS = ("Cf", "Zs", "Zl", "Zp")


@dataclass(frozen=True)
class FontSet:
    """The fonts to write with, first to last, and the signs that none of them has."""

    families: tuple[str, ...]
    missing: frozenset[str] = frozenset()
    warnings: tuple[str, ...] = ()

    def label(self, text: str, longest: int = LONGEST) -> str:
        """A token as it can be written: signs without ink by one that has, others by number."""
        if len(text) > longest:
            text = text[: longest - 1] + "…"
        if not text.strip():
            text = "".join(NAMED.get(sign, sign) for sign in text) or NAMED[""]
        return self.plain(text)

    def plain(self, text: str) -> str:
        """A text on one line, the signs that no font has by number."""
        text = "".join(NAMED[sign] if sign in "\n\r\t" else sign for sign in text)
        return "".join(_number(sign) if sign in self.missing else sign for sign in text)

    def style(self) -> AbstractContextManager[None]:
        """Within it, text is written in these fonts, and a dollar is a dollar."""
        import matplotlib

        wanted: Any = {"font.family": list(self.families), "text.parse_math": False}
        return matplotlib.rc_context(wanted)


def letters(texts: Iterable[str]) -> FontSet:
    """The fonts for these texts: matplotlib's own, and of the installed ones as few as needed."""
    import matplotlib
    from matplotlib import ft2font

    signs = {sign for text in texts for sign in text} - NAMED.keys()
    unwritable = {sign for sign in signs if unicodedata.category(sign) in UNWRITABLE}
    inked = {sign for sign in signs if unicodedata.category(sign) not in INKLESS}
    families, missing = _families(inked - unwritable)
    warnings = []
    if missing:
        named = " ".join(map(_number, sorted(missing)[:8])) + (" …" if len(missing) > 8 else "")
        warnings.append(f"no installed font has {named}; install one that has, Noto for example")
    if not hasattr(ft2font, "__libraqm_version__") and any(map(_leftward, signs)):
        warnings.append(
            f"matplotlib {matplotlib.__version__} does not join letters that run from right to "
            "left; 3.11 does: pip install -U matplotlib"
        )
    return FontSet(tuple(families), frozenset(missing | unwritable), tuple(warnings))


def _families(signs: set[str]) -> tuple[list[str], set[str]]:
    """The families that have these signs, and the signs that none has."""
    from matplotlib import font_manager

    families = [BASE]
    missing = signs - _opened(font_manager.findfont(BASE), signs).held
    paths = sorted(font_manager.findSystemFonts()) if missing else []
    fonts = [_opened(path, missing) for path in paths]
    while missing:
        best = max(fonts, key=lambda font: (len(font.held & missing), font.plain), default=None)
        if best is None or not best.held & missing:
            break
        families.append(_known(best, [one.path for one in fonts if one.name == best.name], signs))
        missing -= best.held
    return families, missing


@dataclass(frozen=True)
class _Font:
    """A font file: its family, how plain it is, and which signs it has of those wanted."""

    path: str
    name: str = ""
    plain: int = 0
    held: frozenset[str] = frozenset()


def _opened(path: str, signs: set[str]) -> _Font:
    """A font; one that cannot be drawn with has no signs."""
    from matplotlib.ft2font import FT2Font

    try:
        font = FT2Font(path)
        name, style = font.family_name, font.style_name
        if BOXES in name or not font.scalable:
            return _Font(path)
        held = frozenset(sign for sign in signs if font.get_char_index(ord(sign)))
    except (OSError, RuntimeError, TypeError, ValueError):
        return _Font(path)
    plain = 4 * ("Mono" not in name) + 2 * (style in ("Regular", "Book")) + ("Sans" in name)
    return _Font(path, name, plain, held)


def _known(font: _Font, paths: list[str], signs: set[str]) -> str:
    """The family of a font, made known to matplotlib; of several languages in a file, the one."""
    from matplotlib.font_manager import fontManager

    for path in paths:  # regular, bold: installed perhaps after matplotlib looked for fonts
        if not any(entry.fname == path for entry in fontManager.ttflist):
            fontManager.addfont(path)
    names = [entry.name for entry in fontManager.ttflist if entry.fname == font.path]
    words = {unicodedata.name(sign, "").partition(" ")[0] for sign in signs}
    wanted = "JP" if words & {"HIRAGANA", "KATAKANA"} else "KR" if "HANGUL" in words else "SC"
    return next((name for name in names if name.endswith(f" {wanted}")), names[0])


def _number(sign: str) -> str:
    """A sign by its number in Unicode."""
    return f"U+{ord(sign):04X}"


def _leftward(sign: str) -> bool:
    """Whether a sign is written from right to left."""
    return unicodedata.bidirectional(sign) in ("R", "AL")
