"""The tree of a search as a list of nodes."""

from collections.abc import Callable
from typing import Any

from regard.data.tensors.special import EOS
from regard.data.vocabulary.vocabulary import Vocabulary
from regard.search.explore import Key, SearchTree


def tree_of(found: SearchTree, vocabulary: Vocabulary) -> dict[str, Any]:
    """The nodes from the first symbol on, the best and the greedy answer with their scores."""
    keys = sorted(found.nodes, key=lambda key: (len(key), -found.nodes[key].total, key))
    places = {key: place for place, key in enumerate(keys)}
    return {
        "beam": found.beam,
        "nodes": [_node(found, key, places, vocabulary.name) for key in keys],
        "best": _text(found.best, vocabulary),
        "greedy": _text(found.greedy, vocabulary),
        "scores": {"best": found.scores[found.best], "greedy": found.scores[found.greedy]},
    }


def _node(
    found: SearchTree, key: Key, places: dict[Key, int], name: Callable[[int], str]
) -> dict[str, Any]:
    node = found.nodes[key]
    return {
        "id": places[key],
        "parent": places.get(key[:-1]),
        "symbol": name(key[-1]),
        "p": node.p,
        "total": node.total,
        "fate": node.fate,
        "score": found.scores.get(key) if node.fate == "ends" else None,
        "best": found.best[: len(key)] == key,
        "greedy": found.greedy[: len(key)] == key,
        "alone": node.alone,
    }


def _text(key: Key, vocabulary: Vocabulary) -> str:
    return vocabulary.decode([symbol for symbol in key if symbol != EOS])
