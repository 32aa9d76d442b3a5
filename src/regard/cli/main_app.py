"""The command line: a thin layer over the library.

Results are printed to stdout, messages to stderr.
"""

import errno
import os
import sys
from collections.abc import Callable
from typing import Annotated

import typer

from regard.cli.check import check
from regard.cli.crossover import crossover
from regard.cli.describe import describe
from regard.cli.diagnose import diagnose
from regard.cli.distill import distill
from regard.cli.evaluate import evaluate
from regard.cli.export import export
from regard.cli.import_model import import_model
from regard.cli.inspect import inspect
from regard.cli.make_shortlist import shortlist
from regard.cli.plot import plot
from regard.cli.predict import predict
from regard.cli.recipes import recipes
from regard.cli.report import report
from regard.cli.runs import runs
from regard.cli.score import score
from regard.cli.serve import serve
from regard.cli.streams import fix_std_streams
from regard.cli.train import train
from regard.cli.union_options import CommandGroup
from regard.core.errors import UserError, print_error
from regard.core.version import __version__

COMMANDS: dict[str, Callable[..., None]] = {  # in the order of the help
    **{"train": train, "evaluate": evaluate, "check": check, "predict": predict, "score": score},
    **{"export": export, "recipes": recipes, "describe": describe, "runs": runs, "report": report},
    **{"diagnose": diagnose, "plot": plot, "inspect": inspect, "import": import_model},
    **{"distill": distill, "shortlist": shortlist, "serve": serve, "crossover": crossover},
}
app = typer.Typer(
    cls=CommandGroup,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
for name, command in COMMANDS.items():
    app.command(name)(command)


def main() -> None:
    """Run a command and exit; the exit code is 2 after an error that the user can fix."""
    try:
        _run(debug="--debug" in sys.argv)
    except SystemExit as end:
        if os.environ.get("WORLD_SIZE", "1") != "1" and isinstance(end.code, int):
            _exit_at_once(end.code)
        raise


def _run(debug: bool) -> None:
    try:
        fix_std_streams()
        app()
    except UserError as error:
        if debug:
            raise
        print_error(error)
        sys.exit(2)
    except OSError as error:
        if debug:
            raise
        full = error.errno in (errno.ENOSPC, errno.EDQUOT)
        where = "disk full" if full else "system error"
        print_error(f"{error.filename or where}: {error.strerror or error}")
        sys.exit(2)


def _exit_at_once(code: int) -> None:
    """Exit without finalizing the interpreter.

    Threads of gloo, the CPU backend of torch.distributed, may release Python objects during
    finalization. This aborts a finished process ("terminate called without an active exception"),
    and torchrun reports a failure.
    """
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def _print_version(is_set: bool) -> None:
    if is_set:
        print(__version__)
        raise typer.Exit


@app.callback()
def about(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Print the version and exit."
        ),
    ] = False,
) -> None:
    """Train, decode, inspect and serve sequence models from scratch, on your own data."""
