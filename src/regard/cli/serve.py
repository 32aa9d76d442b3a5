"""The command `regard serve`."""

from inspect import Parameter
from pathlib import Path
from typing import Annotated, Any

import typer

from regard.cli.command_options import Debug, EngineName, Quantize, check_model_folders
from regard.cli.union_options import option, with_parameters
from regard.core.errors import UserError

PANELS = {
    "Batching": ("batch_wait_ms", "max_batch_size", "threads"),
    "Limits": (
        "max_connections",
        "max_queue",
        "timeout",
        "max_chars",
        "max_file_values",
        "max_texts",
        "max_body_mb",
        "max_beam",
        "max_work",
        "max_inspect_tokens",
    ),
}
ACCESS = "Access"


def _with_settings(own: list[Parameter]) -> list[Parameter]:
    """Return the command's own parameters plus one per server setting listed in PANELS."""
    from regard.serve.settings import ServeSettings

    fields = ServeSettings.model_fields
    options = [
        option(name, fields[name], panel, default=fields[name].default)
        for panel, names in PANELS.items()
        for name in names
    ]
    index = [parameter.name for parameter in own].index("api_key_file")
    return [*own[:index], *options, *own[index:]]


@with_parameters(_with_settings)
def serve(
    models: Annotated[
        list[str],
        typer.Argument(
            metavar="MODEL", help="Run folders, or NAME=FOLDER.", callback=check_model_folders
        ),
    ],
    host: Annotated[
        str, typer.Option(help="Address to bind (0.0.0.0 = all interfaces).")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port (0 = any free port).")] = 8000,
    engine: EngineName = None,
    quantize: Quantize = None,
    api_key_file: Annotated[
        Path | None,
        typer.Option(
            help="File with the API key that clients must send as a bearer token.",
            rich_help_panel=ACCESS,
        ),
    ] = None,
    cors_origin: Annotated[
        list[str] | None,
        typer.Option(
            metavar="ORIGIN",
            help="Origin allowed to call the API from a browser (repeatable).",
            rich_help_panel=ACCESS,
        ),
    ] = None,
    allowed_host: Annotated[
        list[str] | None,
        typer.Option(
            metavar="HOST",
            help="Additional host name to accept in the Host header (repeatable).",
            rich_help_panel=ACCESS,
        ),
    ] = None,
    debug: Debug = False,
    **settings: Any,
) -> None:
    """Serve models over HTTP, with a web UI: regard serve runs/g2p-1."""
    try:
        from regard.serve.server import build_settings, read_api_key, serve_command
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] == "regard":
            raise
        raise UserError(
            f"package {error.name} is not installed", help="pip install 'regard[serve]'"
        ) from error

    access = {"api_key": read_api_key(api_key_file), "cors_origins": tuple(cors_origin or ())}
    serve_settings = build_settings(host, allowed_host or [], **settings, **access)
    serve_command(models, host, port, serve_settings, engine=engine, quantize=quantize)
