"""What the user wants to see."""

from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True)
class PlotArgs:
    """kinds: only these; run, settings: the schedule of a run folder, or of settings; text, beam:
    what the model of a run is to search for, and how widely."""

    kinds: list[str] = field(default_factory=list)
    run: Path | None = None
    settings: list[str] = field(default_factory=list)
    text: str | None = None
    beam: int | None = None
