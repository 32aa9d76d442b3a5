"""The command `regard inspect`."""

import json
import webbrowser
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from regard.cli.command_options import Debug, Model, Threshold
from regard.cli.output_files import INSPECTION, PAGE, PNG, SVG, Force, check_overwrite
from regard.cli.union_options import SampleFlag, SearchSettings, with_parameters, with_search
from regard.core.errors import UserError, info, note
from regard.core.files import write_text

VIEWS = (
    "steps, alignment, cross, decoder, encoder, pooling, saliency, gates, tree, passes, picture, "
    "filters, maps, sound, graph"
)
KINDS = {"--out": PAGE, "--json": INSPECTION, "--png": PNG, "--svg": SVG}
MORE = "All layers and heads, the search tree and the gradients: add --out page.html"


@with_parameters(with_search)
def inspect(
    model: Model,
    text: Annotated[
        str,
        typer.Argument(
            metavar="TEXT",
            help="Input text, as in a line of an input file, or the path of an image.",
        ),
    ],
    target: Annotated[
        str | None,
        typer.Option(help="Explain this output (forced decoding) instead of the model's own."),
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Write a self-contained HTML page.")] = None,
    json_file: Annotated[
        str | None,
        typer.Option("--json", metavar="FILE", help='Write everything as JSON ("-" for stdout).'),
    ] = None,
    png: Annotated[Path | None, typer.Option(help="Write a figure (PNG).")] = None,
    svg: Annotated[Path | None, typer.Option(help="Write a figure (SVG).")] = None,
    view: Annotated[str | None, typer.Option(help=f"What the figure shows: {VIEWS}.")] = None,
    layer: Annotated[int | None, typer.Option(help="Plot only this layer (0-based).")] = None,
    head: Annotated[int | None, typer.Option(help="Plot only this head (0-based).")] = None,
    browser: Annotated[bool, typer.Option("--open", help="Open the page in a browser.")] = False,
    max_tokens: Annotated[
        int, typer.Option(min=1, help="Maximum tokens of the source and of the target.")
    ] = 200,
    force: Force = False,
    debug: Debug = False,
    settings: SearchSettings = None,
    sample: SampleFlag = False,
    threshold: Threshold = None,
    **search: Any,
) -> None:
    """Show attention, alternatives, saliency and the search tree for one input.

    Example: regard inspect runs/g2p-1 attention --out page.html
    """
    figures = {kind: path for kind, path in (("png", png), ("svg", svg)) if path is not None}
    if browser and out is None:
        raise UserError("--open requires --out", help="add --out page.html")
    _check_figure_options(figures, {"view": view, "layer": layer, "head": head})
    files = {"--out": out, **{f"--{kind}": path for kind, path in figures.items()}}
    _check_files(files, json_file, force)
    from regard.exchange.engine_choice import load_predictor
    from regard.inference.prediction.predict_options import search_changes
    from regard.views.inspection.inspecting import inspect_with_options

    search |= {"kind": "sample" if sample else None, "threshold": threshold}
    predictor = load_predictor(model)
    changes = search_changes(search, settings)
    inspection = inspect_with_options(predictor, text, target, changes, max_tokens).as_dict()
    if json_file is not None:
        content = json.dumps(inspection, ensure_ascii=False, allow_nan=False)
        if json_file == "-":
            print(content)
        else:
            _write(Path(json_file), content + "\n")
    for path in figures.values():
        _plot(path, inspection, view, layer, head)
    if out is not None:
        from regard.views.inspection.inspection_page import inspection_page

        _write(out, inspection_page(inspection))
        if browser and not webbrowser.open(out.resolve().as_uri()):
            raise UserError(
                f"{out}: no browser could be opened", help="the file is written; open it yourself"
            )
    if json_file is None and not figures and out is None:
        from regard.views.inspection.terminal import print_summary

        print_summary(inspection, MORE)
        return
    for sentence in inspection["notes"]:
        note(sentence)


def _check_figure_options(figures: Mapping[str, Path], options: Mapping[str, Any]) -> None:
    """Raise UserError for figure options without --png or --svg, or with invalid values."""
    for name, value in options.items():
        if value is not None and not figures:
            raise UserError(f"--{name} {value} requires a figure", help="add --png or --svg")
    if options["view"] not in (None, *VIEWS.split(", ")):
        raise UserError(f"--view {options['view']}: expected one of {VIEWS}")
    for kind, path in figures.items():
        if path.suffix.lower() != f".{kind}":
            raise UserError(f"--{kind} {path}: expected a file name that ends in .{kind}")


def _check_files(files: Mapping[str, Path | None], json_file: str | None, force: bool) -> None:
    """Raise UserError if a file cannot be written, is of another kind, or is named twice."""
    json_path = None if json_file in (None, "-") else Path(json_file or "")
    options: dict[Path, str] = {}
    for option, file in {**files, "--json": json_path}.items():
        if file is None:
            continue
        if not file.name or file.is_dir():
            raise UserError(f"{option} {file}: expected a file name, found a folder")
        if not file.parent.is_dir():
            raise UserError(
                f"{file}: no such folder: {file.parent}", help=f"mkdir -p {file.parent}"
            )
        if (first := options.setdefault(file.resolve(), option)) != option:
            raise UserError(f"{option} {file}: same file as {first}", help="use another name")
        check_overwrite(option, file, KINDS[option], force)


def _plot(path: Path, inspection: dict[str, Any], *what: Any) -> None:
    from regard.views.figures.style import save, styled
    from regard.views.inspection.figures import plot_view

    with styled():
        save(plot_view(inspection, *what), path)
    info(f"written: {path}")


def _write(path: Path, text: str) -> None:
    write_text(path, text)
    info(f"written: {path}")
