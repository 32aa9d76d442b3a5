"""Symbols of texts as they are shown, and how many of them can be."""

from collections.abc import Sequence

from regard.core.errors import UserError
from regard.data.tensors.special import UNK
from regard.data.vocabulary.display_names import printable
from regard.data.vocabulary.vocabulary import Vocabulary
from regard.views.inspection.notes import Note

MOST = 200  # symbols of a side


def names_of(vocabulary: Vocabulary, text: str) -> tuple[list[int], list[str]]:
    """The ids of a text and the names of its symbols; those that are not known keep theirs."""
    ids = vocabulary.encode(text)
    cut = vocabulary.symbols(text)
    return ids, [
        printable(symbol) if id == UNK else vocabulary.name(id)
        for id, symbol in zip(ids, cut, strict=True)
    ]


def unknown_in(vocabulary: Vocabulary, text: str) -> tuple[str, ...]:
    """The symbols of a text that training never saw."""
    ids = vocabulary.encode(text)
    if UNK not in ids:
        return ()
    cut = vocabulary.symbols(text)
    return tuple(symbol for symbol, id in zip(cut, ids, strict=True) if id == UNK)


def unknown_notes(unknown: Sequence[str]) -> list[Note]:
    """What p means of symbols that the model is held to and that training never saw."""
    return [Note("unknown.p")] if unknown else []


def refuse_halves(what: str, text: str) -> None:
    """Refuses half surrogate pairs, which no file can hold: so arrives what was no UTF-8."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        raise UserError(f"{what}: {text!r}: no UTF-8, which is expected") from None


class TooLong(UserError):
    """A side of more symbols than are shown. said: without how the limit is raised, which differs
    between a command and a server."""

    def __init__(self, what: str, count: int, said: str) -> None:
        super().__init__(f"{said}, or raise the limit: --most {count}")
        self.what, self.count, self.said = what, count, said


def refuse_longer(what: str, count: int, most: int, how: str) -> None:
    """Refuses a side of so many symbols: a map of it would be too large to look at."""
    if count > most:
        raise TooLong(
            what,
            count,
            f"{what}: {count:,} symbols, but maps of more than {most:,} a side are too large to "
            f"look at; {how}",
        )
