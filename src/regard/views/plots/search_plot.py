"""The tree of a search: what was looked at, what was kept, and which way won."""

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

# What follows what, and how probable it is. Greedily: a, c and the end, .24 in all.
# But b and then the end has .36.
A, B, C = 5, 6, 7
NAMES = {A: "a", B: "b", C: "c"}
TABLE = {
    BOS: {A: 0.6, B: 0.4},
    A: {A: 0.25, C: 0.4, EOS: 0.35},
    B: {B: 0.1, EOS: 0.9},
    C: {EOS: 1.0},
}


class Toy:
    """A model of three letters whose probabilities are written down."""

    def start(self, source: Padded) -> State:
        return State(source.data, source.data)

    def step(self, tokens: Tensor, state: State) -> tuple[Tensor, State]:
        logits = torch.full((len(tokens), 1, 1 + C), float("-inf"))
        for row, last in enumerate(tokens[:, -1].tolist()):
            for token, p in TABLE[last].items() if last in TABLE else [(EOS, 1.0)]:
                logits[row, 0, token] = math.log(p)
        return logits, State(state.memory, tokens)


def draw(wish: PlotArgs) -> "Figure":
    """The tree of a toy on which greedy search loses, or of a model's search for a text."""
    if (wish.run is None) != (wish.text is None):
        raise UserError("search: RUN and --text TEXT belong together; without both, a toy is drawn")
    if wish.run is None or wish.text is None:
        beam = wish.beam or 2
        search = Beam(beam=beam, length_penalty=0, stopping="beam_full")
        found = search.explain(Toy(), SearchRequest(pad([[A]]), torch.tensor([5]))).tree
        return _figure(found, NAMES, "")
    return _of_model(wish.run, wish.text, wish.beam)


def _of_model(run: Path, text: str, beam: int | None) -> "Figure":
    from regard.inference.predictor import Predictor

    predictor = Predictor.load(run)
    task: Any = predictor.task
    if "alternatives" not in predictor.abilities:
        raise UserError(f"{run}: a {task.kind} model searches no outputs; a transducer does")
    search, engine = predictor.search_options(kind="beam", beam=beam), predictor.engine
    request = engine.fit_request(task.search_request(task.rows([text]), [0], search))
    found = search.explain(engine.stepper(), request).tree
    ids = {token for key in found.nodes for token in key} - {EOS}
    return _figure(found, {id: task.target.name(id) for id in ids}, text)


def _figure(found: SearchTree | None, names: dict[int, str], text: str) -> "Figure":
    """The tree with its two ways in color, and what they came to."""
    assert found is not None
    labels = {key: names.get(key[-1], "end") for key in found.nodes}
    notes = {
        key: _note(found, key) for key, node in found.nodes.items() if node.status == "finished"
    }
    ways = {
        f"greedy: {_note(found, found.greedy)}": (found.greedy, Colors.greedy),
        f"best of a beam of {found.beam}: {_note(found, found.best)}": (found.best, Colors.best),
    }
    title = f"The search for {text!r}" if text else "Greedy search loses, a beam wins"
    styles = {key: node.status for key, node in found.nodes.items()}
    chances = {key: node.probability for key, node in found.nodes.items()}
    return plot_tree(title, labels, chances, styles, notes, ways)


def _note(found: SearchTree, key: Key) -> str:
    """How good an output is: its probability, or its score where lengths count."""
    total, score = found.nodes[key].total, found.scores.get(key)
    if score is None or math.isclose(score, total, abs_tol=1e-6):
        return f"p = {math.exp(total):.2g}"
    return f"score {score:.3f}"
