"""Arguments of `regard plot`."""

from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True)
class PlotArgs:
    """Arguments of a figure. kinds: only these; run, settings: plot the schedule of a run or of
    settings; text, beam: input and beam size for the model of a run."""

    kinds: list[str] = field(default_factory=list)
    run: Path | None = None
    settings: list[str] = field(default_factory=list)
    text: str | None = None
    beam: int | None = None
