"""What `regard inspect` does, without the parsing of its words."""

import json
import webbrowser
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from regard.core.errors import UserError, say
from regard.core.files import write_text
from regard.estimators import load
from regard.inference.prediction.predict_options import Wanted
from regard.views.inspection.figures import SHOWS
from regard.views.inspection.inspecting import inspected

MORE = "All layers and heads, the tree and the gradients: add --out page.html"


@dataclass(frozen=True)
class Outputs:
    """Where an inspection goes; nowhere: to the terminal, in short. json: also - for stdout."""

    page: Path | None = None
    json: str | None = None
    pictures: dict[str, Path] = field(default_factory=dict)  # by png or svg
    browser: bool = False
    show: str | None = None  # what the pictures show, of which layer and head
    layer: int | None = None
    head: int | None = None

    def check(self) -> None:
        """Refuses what cannot be written, before anything is computed."""
        if self.browser and self.page is None:
            raise UserError("--open shows the page in the browser: give --out page.html too")
        for name in ("show", "layer", "head"):
            value = getattr(self, name)
            if value is not None and not self.pictures:
                raise UserError(f"--{name} {value}: is for a picture; give --png or --svg too")
        if self.show not in (None, *SHOWS):
            raise UserError(f"--show {self.show}: none of {', '.join(SHOWS)}")
        for kind, path in self.pictures.items():
            if path.suffix.lower() != f".{kind}":
                raise UserError(f"--{kind} {path}: a name that ends in .{kind} expected")
        self._check_files()

    def _check_files(self) -> None:
        """Refuses places where no file can be written, and two files in one place."""
        given = {"--out": self.page, **{f"--{kind}": path for kind, path in self.pictures.items()}}
        if self.json is not None and self.json != "-":
            given["--json"] = Path(self.json)
        taken: dict[Path, str] = {}
        for option, file in given.items():
            if file is None:
                continue
            if not file.name or file.is_dir():
                raise UserError(f"{option} {file}: is a folder; give the name of a file")
            if not file.parent.is_dir():
                raise UserError(f"{file}: there is no folder {file.parent}; make it first")
            if (other := taken.setdefault(file.resolve(), option)) != option:
                raise UserError(f"{option} {file}: {other} writes there too; give another name")


def inspect_command(
    wanted: Wanted, text: str, target: str | None, most: int, outputs: Outputs
) -> None:
    """Looks into a model while it answers a text, and writes what was seen."""
    outputs.check()
    estimator = load(wanted.model)
    found = inspected(estimator, text, target, wanted.changes(estimator), most).as_dict()
    if outputs.json is not None:
        _write_json(outputs.json, found)
    for path in outputs.pictures.values():
        _draw(path, found, outputs)
    if outputs.page is not None:
        _write_page(outputs.page, found, outputs.browser)
    if outputs == Outputs():
        from regard.views.inspection.terminal import show

        show(found, MORE)
        return
    for note in found["notes"]:
        say(note)


def _write_json(place: str, found: dict[str, Any]) -> None:
    text = json.dumps(found, ensure_ascii=False, allow_nan=False)
    if place == "-":
        print(text)
        return
    write_text(Path(place), text + "\n")
    say(f"written: {place}")


def _draw(path: Path, found: dict[str, Any], outputs: Outputs) -> None:
    from regard.views.figures.style import save, styled
    from regard.views.inspection.figures import draw

    with styled():
        save(draw(found, outputs.show, outputs.layer, outputs.head), path)
    say(f"drawn: {path}")


def _write_page(path: Path, found: dict[str, Any], browser: bool) -> None:
    from regard.views.inspection.inspection_page import inspection_page

    write_text(path, inspection_page(found))
    say(f"written: {path}")
    if browser and not webbrowser.open(path.resolve().as_uri()):
        raise UserError(f"{path}: is written, but no browser could be opened; open it by hand")
