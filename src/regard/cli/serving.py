"""The command that answers over HTTP."""

from pathlib import Path
from typing import Annotated

import typer

from regard.cli.shared_options import Debug, EngineName, Quantize
from regard.core.errors import UserError

app = typer.Typer()
GATHERING = "Requests that run together"
LIMITS = "Limits"
ACCESS = "Who may ask"


@app.command()
def serve(
    models: Annotated[
        list[str], typer.Argument(metavar="MODEL", help="Run folders, or NAME=FOLDER.")
    ],
    host: Annotated[str, typer.Option(help="Address; 0.0.0.0: all of them.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="0: one that is free.")] = 8000,
    engine: EngineName = None,
    quantize: Quantize = None,
    wait: Annotated[
        float, typer.Option(help="Milliseconds in which others join.", rich_help_panel=GATHERING)
    ] = 5.0,
    batch: Annotated[
        int, typer.Option(help="Texts that run together, at most.", rich_help_panel=GATHERING)
    ] = 64,
    threads: Annotated[
        int | None,
        typer.Option(
            help="Processors that run models; else half of them.", rich_help_panel=GATHERING
        ),
    ] = None,
    connections: Annotated[
        int, typer.Option(help="Connections that are open.", rich_help_panel=LIMITS)
    ] = 512,
    queue: Annotated[int, typer.Option(help="Texts that wait.", rich_help_panel=LIMITS)] = 1024,
    seconds: Annotated[
        float, typer.Option(help="Time of a request.", rich_help_panel=LIMITS)
    ] = 30.0,
    characters: Annotated[
        int, typer.Option(help="Characters of a text.", rich_help_panel=LIMITS)
    ] = 5_000,
    texts: Annotated[int, typer.Option(help="Texts of a request.", rich_help_panel=LIMITS)] = 256,
    body: Annotated[
        float, typer.Option(help="Megabytes of a request.", rich_help_panel=LIMITS)
    ] = 4.0,
    beam: Annotated[int, typer.Option(help="Width of a beam.", rich_help_panel=LIMITS)] = 32,
    symbols: Annotated[
        int, typer.Option(help="Symbols a side of what is inspected.", rich_help_panel=LIMITS)
    ] = 200,
    token_file: Annotated[
        Path | None,
        typer.Option(help="File with the token that clients must send.", rich_help_panel=ACCESS),
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
) -> None:
    """Answer over HTTP, with a page in the browser: regard serve runs/g2p-1."""
    try:
        from regard.serve.server import given_settings, read_token, serve_command
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] == "regard":
            raise
        raise UserError(
            f"the package {error.name} is not there; pip install 'regard[serve]'"
        ) from error

    settings = given_settings(
        host,
        names or [],
        **{"wait": wait, "batch": batch, "queue": queue, "seconds": seconds},
        threads=threads,
        **{"characters": characters, "texts": texts, "body": body, "beam": beam},
        **{"symbols": symbols, "connections": connections},
        **{"token": read_token(token_file), "cors": tuple(cors or ())},
    )
    serve_command(models, host, port, settings, engine=engine, quantize=quantize)
