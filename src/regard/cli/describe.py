"""The command `regard describe`."""

import json
from pathlib import Path
from typing import Annotated

import typer

from regard.cli.command_options import Debug, Json
from regard.cli.output_files import SVG, Force, check_overwrite
from regard.core.errors import UserError, info


def describe(
    place: Annotated[
        str,
        typer.Argument(
            metavar="RUN|CONFIG|RECIPE", help="Run folder, configuration file or recipe."
        ),
    ],
    input: Annotated[
        str | None,
        typer.Option(
            help="Input size without a run: height,width,channels of images, such as 224,224,3, "
            "or the size of the source vocabulary."
        ),
    ] = None,
    outputs: Annotated[
        int | None,
        typer.Option(min=1, help="Number of labels, or size of the target vocabulary."),
    ] = None,
    svg: Annotated[
        Path | None, typer.Option(help="Draw the model to this file, .svg or .png.")
    ] = None,
    json_object: Json = False,
    force: Force = False,
    debug: Debug = False,
) -> None:
    """Describe a model part by part: sizes, receptive fields, parameters, operations.

    regard describe vgg-16 --svg vgg.svg
    """
    from regard.views.description.describe_model import describe as described
    from regard.views.description.table import as_record, table
    from regard.views.figures.style import check_suffix

    if svg is not None:
        check_suffix(svg)
        check_overwrite("--svg", svg, SVG, force)
    found = described(place, _sizes(input), outputs)
    if json_object:
        print(json.dumps(as_record(found), ensure_ascii=False))
    else:
        print(f"{found.name}: {found.task}, {found.input}")
        for line in table(found):
            print(line)
    for note in found.notes:
        info(f"note: assumed {note}")
    if svg is not None:
        from regard.views.description.diagram import draw
        from regard.views.figures.style import save, styled

        with styled():
            save(draw(found), svg)
        info(f"written: {svg}")


def _sizes(text: str | None) -> list[int] | None:
    """Return the numbers of `--input`; raise UserError if it has others."""
    if text is None:
        return None
    try:
        return [int(part) for part in text.replace("x", ",").split(",")]
    except ValueError:
        raise UserError(
            f"--input {text}: expected integers", help="--input 224,224,3, or --input 8000"
        ) from None
