"""Arguments of `regard plot`."""

from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True)
class PlotArgs:
    """Arguments of a figure.

    kinds: kinds to plot (default: all). run: folder of a run to plot. settings: settings of a
    schedule to plot. text, beam: input and beam size for the model of the run.
    """

    kinds: list[str] = field(default_factory=list)
    run: Path | None = None
    settings: list[str] = field(default_factory=list)
    text: str | None = None
    beam: int | None = None
