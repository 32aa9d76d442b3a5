"""The command that answers over HTTP."""

from inspect import Parameter
from pathlib import Path
from typing import Annotated, Any

import typer

from regard.cli.command_options import Debug, EngineName, Quantize
from regard.cli.union_options import made_by, option
from regard.core.errors import UserError

PANELS = {
    "Requests that run together": ("wait", "batch", "threads"),
    "Limits": (
        *(
            "connections",
            "queue",
            "seconds",
            "characters",
            "texts",
            "body",
            "beam",
            "max_inspect_tokens",
        ),
    ),
}
ACCESS = "Who may ask"


def _with_settings(own: list[Parameter]) -> list[Parameter]:
    """The parameters of the command, and one for each setting of the server in a panel."""
    from regard.serve.settings import ServeSettings

    fields = ServeSettings.model_fields
    made = [
        option(name, fields[name], panel, default=fields[name].default)
        for panel, names in PANELS.items()
        for name in names
    ]
    place = [one.name for one in own].index("api_key_file")
    return [*own[:place], *made, *own[place:]]


@made_by(_with_settings)
def serve(
    models: Annotated[
        list[str], typer.Argument(metavar="MODEL", help="Run folders, or NAME=FOLDER.")
    ],
    host: Annotated[str, typer.Option(help="Address; 0.0.0.0: all of them.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="0: one that is free.")] = 8000,
    engine: EngineName = None,
    quantize: Quantize = None,
    api_key_file: Annotated[
        Path | None,
        typer.Option(help="File with the API key that clients must send.", rich_help_panel=ACCESS),
    ] = None,
    cors: Annotated[
        list[str] | None,
        typer.Option(
            metavar="ORIGIN", help="A page that may ask; repeat it.", rich_help_panel=ACCESS
        ),
    ] = None,
    names: Annotated[
        list[str] | None,
        typer.Option(
            "--name",
            metavar="HOST",
            help="A name that the server is called by, other than localhost; repeat it.",
            rich_help_panel=ACCESS,
        ),
    ] = None,
    debug: Debug = False,
    **settings: Any,
) -> None:
    """Answer over HTTP, with a page in the browser: regard serve runs/g2p-1."""
    try:
        from regard.serve.server import given_settings, read_api_key, serve_command
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] == "regard":
            raise
        raise UserError(
            f"the package {error.name} is not there; pip install 'regard[serve]'"
        ) from error

    access = {"api_key": read_api_key(api_key_file), "cors": tuple(cors or ())}
    given = given_settings(host, names or [], **settings, **access)
    serve_command(models, host, port, given, engine=engine, quantize=quantize)
