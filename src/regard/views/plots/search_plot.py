"""Plot of a search tree: kept and pruned hypotheses, the greedy and the best path."""

import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from regard.core.errors import UserError
from regard.data.tensors.padded import Padded, pad
from regard.data.tensors.special import BOS, EOS
from regard.data.tensors.state import State
from regard.search import Beam, SearchRequest
from regard.search.explore import Key, SearchTree
from regard.views.figures.tree_plot import Colors, plot_tree
from regard.views.plots.plot_args import PlotArgs

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Next-token probabilities. Greedy search finds a, c, EOS with p = .24, but b, EOS has p = .36.
A, B, C = 5, 6, 7
NAMES = {A: "a", B: "b", C: "c"}
PROBABILITIES = {
    BOS: {A: 0.6, B: 0.4},
    A: {A: 0.25, C: 0.4, EOS: 0.35},
    B: {B: 0.1, EOS: 0.9},
    C: {EOS: 1.0},
}


class ToyModel:
    """A toy model with three tokens and fixed probabilities."""

    def start(self, source: Padded) -> State:
        return State(source.data, source.data)

    def step(self, tokens: Tensor, state: State) -> tuple[Tensor, State]:
        logits = torch.full((len(tokens), 1, 1 + C), float("-inf"))
        for row, last in enumerate(tokens[:, -1].tolist()):
            for token, p in PROBABILITIES[last].items() if last in PROBABILITIES else [(EOS, 1.0)]:
                logits[row, 0, token] = math.log(p)
        return logits, State(state.memory, tokens)


def plot_search(args: PlotArgs) -> "Figure":
    """Plot the search tree of a toy model, on which greedy search fails, or of a trained model."""
    if (args.run is None) != (args.text is None):
        raise UserError(
            "search: RUN and --text require each other", help="drop both to plot a toy model"
        )
    if args.run is None or args.text is None:
        beam = args.beam or 2
        search = Beam(beam=beam, length_penalty=0, stopping="beam_full")
        tree = search.explain(ToyModel(), SearchRequest(pad([[A]]), torch.tensor([5]))).tree
        return _figure(tree, NAMES, "")
    return _plot_model(args.run, args.text, args.beam)


def _plot_model(run: Path, text: str, beam: int | None) -> "Figure":
    from regard.inference.predictor import Predictor

    predictor = Predictor.load(run)
    task: Any = predictor.task
    if "alternatives" not in predictor.abilities:
        raise UserError(f"{run}: a {task.kind} model has no search tree; use a transduce model")
    search, engine = predictor.search_options(kind="beam", beam=beam), predictor.engine
    request = engine.fit_request(task.search_request(task.rows([text]), [0], search))
    tree = search.explain(engine.stepper(), request).tree
    ids = {token for key in tree.nodes for token in key} - {EOS}
    return _figure(tree, {id: task.target.name(id) for id in ids}, text)


def _figure(tree: SearchTree | None, names: dict[int, str], text: str) -> "Figure":
    """Plot a tree with the greedy and the best path in color, and their scores.

    names: token names by id. text: the input, or an empty string for the toy model.
    """
    assert tree is not None
    labels = {key: names.get(key[-1], "<eos>") for key in tree.nodes}
    notes = {key: _note(tree, key) for key, node in tree.nodes.items() if node.status == "finished"}
    paths = {
        f"greedy: {_note(tree, tree.greedy)}": (tree.greedy, Colors.greedy),
        f"best of beam {tree.beam}: {_note(tree, tree.best)}": (tree.best, Colors.best),
    }
    title = (
        f"Search tree for {text!r}"
        if text
        else "Beam search finds a better output than greedy search"
    )
    styles = {key: node.status for key, node in tree.nodes.items()}
    probabilities = {key: node.probability for key, node in tree.nodes.items()}
    return plot_tree(title, labels, probabilities, styles, notes, paths)


def _note(tree: SearchTree, key: Key) -> str:
    """Return the probability of a path as text, or its score if lengths are penalized."""
    total, score = tree.nodes[key].total, tree.scores.get(key)
    if score is None or math.isclose(score, total, abs_tol=1e-6):
        return f"p = {math.exp(total):.2g}"
    return f"score {score:.3f}"
