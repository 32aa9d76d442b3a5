"""The command `regard crossover`."""

import json
import sys
from pathlib import Path
from typing import Annotated

import typer

from regard.cli.command_options import Debug, Json
from regard.core.errors import UserError, info

INTERRUPTED = 130  # exit code after Ctrl-C
MAX_LENGTH = 1 << 20


def crossover(
    out: Annotated[Path, typer.Option(help="Folder for results; a second call continues there.")],
    lengths: Annotated[
        str | None,
        typer.Option(help="Lengths, separated by commas (default: 128,256,...,16384)."),
    ] = None,
    kernels: Annotated[
        str | None,
        typer.Option(help="Attention kernels, separated by commas (default: all)."),
    ] = None,
    threads: Annotated[
        int | None, typer.Option(min=1, max=1024, help="Threads of torch (default: all cores).")
    ] = None,
    json_object: Json = False,
    debug: Debug = False,
) -> None:
    """Measure from which length each attention kernel is faster than softmax on this machine."""
    import torch

    from regard.core.files import write_json
    from regard.experiments.crossover.attention_layer import KERNELS, check_kernels
    from regard.experiments.crossover.run_crossover import LENGTHS, run_crossover
    from regard.experiments.crossover.show import table_lines
    from regard.views.figures.style import save, styled
    from regard.views.plots.cost_plot import plot_costs

    chosen = check_kernels(_split(kernels) if kernels is not None else KERNELS)
    numbers = _lengths(lengths) if lengths is not None else list(LENGTHS)
    out.mkdir(parents=True, exist_ok=True)
    try:
        found = run_crossover(out, chosen, numbers, threads or torch.get_num_threads())
    except KeyboardInterrupt:
        info(f"interrupted: measured cells are kept in {out}; run the same command to continue")
        sys.exit(INTERRUPTED)
    write_json(out / "crossover.json", found.as_dict())
    with styled():
        save(plot_costs(found.as_dict()["rows"]), out / "crossover.png")
    if json_object:
        print(json.dumps(found.as_dict(), ensure_ascii=False))
    else:
        for line in table_lines(found):
            print(line)
    info(f"written: {out / 'crossover.json'}, {out / 'crossover.png'}")


def _split(text: str) -> list[str]:
    return [part.strip() for part in text.split(",")]


def _lengths(text: str) -> list[int]:
    """Return the lengths of an option; raise UserError if one is out of bounds."""
    for part in _split(text):
        if not part.isdecimal() or len(part) > 9 or not 0 < int(part) <= MAX_LENGTH:
            raise UserError(
                f"--lengths {text}: expected integers from 1 to {MAX_LENGTH:,}, found {part!r}",
                help="for example: --lengths 128,1024,8192",
            )
    return sorted({int(part) for part in _split(text)})
