"""Plot of the search tree of an inspection, in the style of `regard plot search`."""

from typing import TYPE_CHECKING, Any

from regard.views.figures.fonts import FontSet
from regard.views.figures.style import FAINT
from regard.views.figures.tree_plot import Colors, Key, plot_tree

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MAX_LEAVES = 30


def plot_search_tree(title: str, tree: dict[str, Any], fonts: FontSet) -> "Figure":
    """Return a figure of the search tree, with the best path and the greedy path in color."""
    nodes, num_omitted = _select_nodes(tree["nodes"])
    keys = _keys(nodes)
    by_key = {keys[node["id"]]: node for node in nodes}
    notes = {
        key: f"{node['score']:.3f}"
        for key, node in by_key.items()
        if node["status"] == "finished" and node["score"] is not None
    }
    paths: dict[str, tuple[Key, str]] = {}
    for name, color in (("greedy", Colors.greedy), ("best", Colors.best)):
        path = [key for key, node in by_key.items() if node[name]]
        if path:
            score = tree["scores"].get(name)
            label = name if name == "greedy" else f"best of beam {tree['beam']}"
            label = f"{label}: {score:.3f}" if score is not None else label
            paths[label] = (max(path, key=len), color)
    figure = plot_tree(
        title,
        {key: fonts.label(node["token"], 12) for key, node in by_key.items()},
        {key: node["probability"] for key, node in by_key.items()},
        {key: node["status"] for key, node in by_key.items()},
        notes,
        paths,
    )
    if num_omitted:
        text = f"{num_omitted} of the least probable pruned branches are omitted"
        figure.axes[0].set_title(text, fontsize=8, fontweight="normal", color=FAINT)
    return figure


def _select_nodes(nodes: list[dict[str, Any]]) -> tuple[list[dict[str, Any]], int]:
    """Return the nodes that fit into a figure, and the number of omitted pruned nodes."""
    kept = [node for node in nodes if node["status"] != "pruned" or node["best"] or node["greedy"]]
    pruned = [node for node in nodes if node not in kept]
    pruned.sort(key=lambda node: -node["total"])
    parents = {node["parent"] for node in kept}
    room = max(0, MAX_LEAVES - sum(node["id"] not in parents for node in kept))
    shown = {node["id"] for node in [*kept, *pruned[:room]]}
    return [node for node in nodes if node["id"] in shown], len(pruned) - len(pruned[:room])


def _keys(nodes: list[dict[str, Any]]) -> dict[int, Key]:
    """Return the key of each node by node id: the ids on the path from the root."""
    parents = {node["id"]: node["parent"] for node in nodes}
    keys: dict[int, Key] = {}
    for id in parents:
        path = [id]
        while parents.get(path[-1]) is not None:
            path.append(parents[path[-1]])
        keys[id] = tuple(reversed(path))
    return keys
