"""The search of an inspection as a tree, in the look of `regard plot search`."""

from typing import TYPE_CHECKING, Any

from regard.views.figures.fonts import FontSet
from regard.views.figures.style import FAINT
from regard.views.figures.tree_plot import Colors, Key, draw_tree

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LEAVES = 30  # ends of branches that a page has room for


def draw_search(title: str, tree: dict[str, Any], hand: FontSet) -> "Figure":
    """The tree with the best way and the greedy way in color, and what each came to."""
    nodes, left_out = _readable(tree["nodes"])
    keys = _keys(nodes)
    at = {keys[node["id"]]: node for node in nodes}
    ends = {key: node for key, node in at.items() if node["fate"] == "ends"}
    notes = {key: f"{node['score']:.3f}" for key, node in ends.items() if node["score"] is not None}
    ways: dict[str, tuple[Key, str]] = {}
    for name, color in (("greedy", Colors.greedy), ("best", Colors.best)):
        way = [key for key, node in at.items() if node[name]]
        if way:
            score = tree["scores"].get(name)
            said = name if name == "greedy" else f"best of a beam of {tree['beam']}"
            ways[f"{said}: {score:.3f}" if score is not None else said] = (
                max(way, key=len),
                color,
            )
    figure = draw_tree(
        title,
        {key: hand.label(node["token"], 12) for key, node in at.items()},
        {key: node["p"] for key, node in at.items()},
        {key: node["fate"] for key, node in at.items()},
        notes,
        ways,
    )
    if left_out:
        said = f"{left_out} dropped branches, the least probable, are not drawn"
        figure.axes[0].set_title(said, fontsize=8, fontweight="normal", color=FAINT)
    return figure


def _readable(nodes: list[dict[str, Any]]) -> tuple[list[dict[str, Any]], int]:
    """The nodes that a page has room for, and how many dropped ones it has not."""
    kept = [node for node in nodes if node["fate"] != "dropped" or node["best"] or node["greedy"]]
    rest = [node for node in nodes if node not in kept]
    rest.sort(key=lambda node: -node["total"])
    parents = {node["parent"] for node in kept}
    room = max(0, LEAVES - sum(node["id"] not in parents for node in kept))
    shown = {node["id"] for node in [*kept, *rest[:room]]}
    return [node for node in nodes if node["id"] in shown], len(rest) - len(rest[:room])


def _keys(nodes: list[dict[str, Any]]) -> dict[int, Key]:
    """For each node the way to it, as numbers of nodes."""
    parents = {node["id"]: node["parent"] for node in nodes}
    keys: dict[int, Key] = {}
    for number in parents:
        way = [number]
        while parents.get(way[-1]) is not None:
            way.append(parents[way[-1]])
        keys[number] = tuple(reversed(way))
    return keys
