"""What `regard plot` does, without the parsing of its words."""

import difflib
from pathlib import Path

from regard.errors import UserError, say
from regard.plots import PICTURES
from regard.plots.style import check_ending, save, styled
from regard.plots.wish import Wish


def plot_command(what: str | None, out: Path | None, wish: Wish) -> None:
    """Draws a picture, or lists what there is."""
    if what is None:
        width = 2 + max(map(len, PICTURES))
        for name, picture in PICTURES.items():
            print(f"{name:<{width}}{picture.about}")
        return
    if what not in PICTURES:
        near = difflib.get_close_matches(what, PICTURES, 1)
        hint = f"; did you mean {near[0]}?" if near else ""
        raise UserError(f"no picture {what!r}{hint} There are: {', '.join(PICTURES)}")
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
