"""The command that looks into a model."""

import json
import webbrowser
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from regard.cli.command_options import Debug, Model, Threshold
from regard.cli.union_options import Sampled, SearchSettings, made_by, with_search
from regard.core.errors import UserError, info
from regard.core.files import write_text

SHOWS = "steps, alignment, cross, decoder, encoder, pool, saliency, gates, tree"
MORE = "All layers and heads, the tree and the gradients: add --out page.html"


@made_by(with_search)
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
    most: Annotated[int, typer.Option(min=1, help="Tokens of a side, at most.")] = 200,
    debug: Debug = False,
    settings: SearchSettings = None,
    sample: Sampled = False,
    threshold: Threshold = None,
    **search: Any,
) -> None:
    """Look into a model while it answers: regard inspect runs/g2p-1 attention --out page.html."""
    pictures = {kind: path for kind, path in (("png", png), ("svg", svg)) if path is not None}
    if browser and out is None:
        raise UserError("--open shows the page in the browser: give --out page.html too")
    _check_picture(pictures, {"show": show, "layer": layer, "head": head})
    _check_files(
        {"--out": out, **{f"--{kind}": path for kind, path in pictures.items()}}, json_file
    )
    from regard.exchange.engine_choice import load_predictor
    from regard.inference.prediction.predict_options import search_changes
    from regard.views.inspection.inspecting import inspected

    search |= {"kind": "sample" if sample else None, "threshold": threshold}
    predictor = load_predictor(model)
    changes = search_changes(search, settings)
    found = inspected(predictor, text, target, changes, most).as_dict()
    if json_file is not None:
        content = json.dumps(found, ensure_ascii=False, allow_nan=False)
        if json_file == "-":
            print(content)
        else:
            _write(json_file, content + "\n")
    for path in pictures.values():
        _draw(path, found, show, layer, head)
    if out is not None:
        from regard.views.inspection.inspection_page import inspection_page

        _write(out, inspection_page(found))
        if browser and not webbrowser.open(out.resolve().as_uri()):
            raise UserError(f"{out}: is written, but no browser could be opened; open it by hand")
    if json_file is None and not pictures and out is None:
        from regard.views.inspection.terminal import show as show_in_short

        show_in_short(found, MORE)
        return
    for note in found["notes"]:
        info(note)


def _check_picture(pictures: Mapping[str, Path], asked: Mapping[str, Any]) -> None:
    """Refuses what is no picture, or for no picture, before anything is computed."""
    for name, value in asked.items():
        if value is not None and not pictures:
            raise UserError(f"--{name} {value}: is for a picture; give --png or --svg too")
    if asked["show"] not in (None, *SHOWS.split(", ")):
        raise UserError(f"--show {asked['show']}: none of {SHOWS}")
    for kind, path in pictures.items():
        if path.suffix.lower() != f".{kind}":
            raise UserError(f"--{kind} {path}: a name that ends in .{kind} expected")


def _check_files(files: Mapping[str, Path | None], json_file: str | None) -> None:
    """Refuses places where no file can be written, and two files in one place."""
    place = None if json_file in (None, "-") else Path(json_file or "")
    taken: dict[Path, str] = {}
    for option, file in {**files, "--json": place}.items():
        if file is None:
            continue
        if not file.name or file.is_dir():
            raise UserError(f"{option} {file}: is a folder; give the name of a file")
        if not file.parent.is_dir():
            raise UserError(f"{file}: there is no folder {file.parent}; make it first")
        if (other := taken.setdefault(file.resolve(), option)) != option:
            raise UserError(f"{option} {file}: {other} writes there too; give another name")


def _draw(path: Path, found: dict[str, Any], *what: Any) -> None:
    from regard.views.figures.style import save, styled
    from regard.views.inspection.figures import draw

    with styled():
        save(draw(found, *what), path)
    info(f"drawn: {path}")


def _write(place: str | Path, text: str) -> None:
    write_text(Path(place), text)
    info(f"written: {place}")
