"""The command that looks into a model: inspect."""

from pathlib import Path
from typing import Annotated

import typer

from regard.cli import search_options as option
from regard.cli.shared_options import Debug, Model

app = typer.Typer()
SHOWS = "steps, alignment, cross, decoder, encoder, pool, saliency, gates, tree"
Most = Annotated[int, typer.Option(min=1, help="Symbols of a side, at most.")]


@app.command()
def inspect(
    model: Model,
    text: Annotated[str, typer.Argument(metavar="TEXT", help="As a line of a file has it.")],
    target: Annotated[
        str | None, typer.Option(help="An answer the model is held to, not its own.")
    ] = None,
    out: Annotated[Path | None, typer.Option(help="One HTML page with all of it.")] = None,
    json_file: Annotated[
        str | None, typer.Option("--json", metavar="FILE", help="All of it as JSON; - stdout.")
    ] = None,
    png: Annotated[Path | None, typer.Option(help="A picture.")] = None,
    svg: Annotated[Path | None, typer.Option(help="A picture.")] = None,
    show: Annotated[str | None, typer.Option(help=f"Of the picture: {SHOWS}.")] = None,
    layer: Annotated[int | None, typer.Option(help="Of the picture: one layer, from 0.")] = None,
    head: Annotated[int | None, typer.Option(help="Of the picture: one head, from 0.")] = None,
    browser: Annotated[bool, typer.Option("--open", help="Open the page in a browser.")] = False,
    most: Most = 200,
    debug: Debug = False,
    beam: option.Width = None,
    alpha: option.Alpha = None,
    normalise: option.Normalise = None,
    coverage: option.Coverage = None,
    stop: option.Stop = None,
    groups: option.Groups = None,
    diversity: option.Diversity = None,
    min_length: option.MinLength = None,
    max_length: option.MaxLength = None,
    no_repeat: option.NoRepeat = None,
    settings: option.SearchSettings = None,
    sample: option.Sampled = False,
    temperature: option.Temperature = None,
    top_k: option.TopK = None,
    top_p: option.TopP = None,
    min_p: option.MinP = None,
    length: option.Length = None,
    seed: option.Seed = None,
    threshold: Annotated[float | None, typer.Option(help="Several labels: give from here.")] = None,
) -> None:
    """Look into a model while it answers: regard inspect runs/g2p-1 attention --out page.html."""
    from regard.cli.commands.inspect import Outputs, inspect_command
    from regard.inference.prediction.predict_options import Wanted

    search = {
        **{"kind": "sample" if sample else None, "beam": beam, "alpha": alpha},
        **{"normalise": normalise, "coverage": coverage, "stop": stop, "groups": groups},
        **{"diversity": diversity, "min_length": min_length, "max_length": max_length},
        **{"no_repeat": no_repeat, "temperature": temperature, "top_k": top_k, "top_p": top_p},
        **{"min_p": min_p, "length": length, "seed": seed, "threshold": threshold},
    }
    pictures = {kind: path for kind, path in (("png", png), ("svg", svg)) if path is not None}
    wanted = Wanted(model=model, search=search, settings=tuple(settings or ()))
    outputs = Outputs(out, json_file, pictures, browser, show, layer, head)
    inspect_command(wanted, text, target, most, outputs)
