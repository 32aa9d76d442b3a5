"""Texts that a speaker says, as sources of synthesis."""

from __future__ import annotations


class SpokenText(str):
    """A text with the name of its speaker; None: unknown. Equal to the same text without one."""

    speaker: str | None

    def __new__(cls, text: str, speaker: str | None = None) -> SpokenText:
        found = super().__new__(cls, text)
        found.speaker = speaker
        return found


def speaker_of(text: str) -> str | None:
    """Return the name of the speaker of a text, if it is known."""
    return getattr(text, "speaker", None)
