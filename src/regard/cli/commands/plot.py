"""What `regard plot` does, without the parsing of its words."""

from pathlib import Path

from regard.core.errors import UserError, say
from regard.core.suggest import nearest
from regard.views.figures.style import check_ending, save, styled
from regard.views.plots import PICTURES
from regard.views.plots.plot_args import PlotArgs


def plot_command(what: str | None, out: Path | None, wish: PlotArgs) -> None:
    """Draws a picture, or lists what there is."""
    if what is None:
        width = 2 + max(map(len, PICTURES))
        for name, picture in PICTURES.items():
            print(f"{name:<{width}}{picture.about}")
        return
    if what not in PICTURES:
        raise UserError(f"no picture {what!r}{nearest(what, PICTURES)}")
    given = {"kinds": "--kind", "run": "RUN", "settings": "--set"}
    given |= {"text": "--text", "beam": "--beam"}
    unread = [given[name] for name in given if getattr(wish, name)]
    unread = [word for word in unread if word not in map(given.get, PICTURES[what].reads)]
    if unread:
        raise UserError(f"{unread[0]}: means nothing for {what}; leave it out")
    path = out or Path(f"{what}.png")
    check_ending(path)
    with styled():
        save(PICTURES[what].draw(wish), path)
    say(f"drawn: {path}")
