"""Small data for each task, and tiny runs of every kind of model on them."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch

from regard.config.configs import CONFIGS
from regard.config.load import check_config, flatten
from regard.core.options import Options
from regard.data.reading.graph import Graph
from regard.data.reading.images import Image
from regard.data.reading.read import Pair
from regard.data.reading.sounds import Sound
from regard.data.reading.spoken import SpokenText
from regard.inference.predictor import Predictor
from regard.inputs.graphs import bags_of
from regard.models.masked import MaskedOptions
from regard.nn import dropout
from regard.training.checkpoint import save_checkpoint
from regard.training.describe import describe
from regard.training.loop import train
from regard.training.run import Run
from regard.training.start import resume_run, start_run
from regard.training.transfer import PretrainedModel

from .unions import Tree, model_trees, name_of, sized, slot, with_objective

NOWHERE = Path("nowhere")  # the folder of runs that are never written


def number(pairs: Sequence[tuple[Any, Any]]) -> list[Pair]:
    """Pairs with the numbers of their lines."""
    return [Pair(source, target, line) for line, (source, target) in enumerate(pairs, 1)]


SENTENCES = [
    "Ann saw a dog",
    "Bo",
    "a cat saw Ann and a dog",
    "Unbelievably , Bo ran 17",
    "dogs ran",
]
TEXTS = ["bad", "abba cab", "c", "dad abc a bb", "cab d"]
VECTORS = [(0.5, -1.0, 3.0), (2.0, 0.0, 3.5), (-1.0, 1.5, 2.0), (0.0, 0.3, -4.0), (1.0, 1.0, 1.0)]
DOCUMENTS = ["abcabc abba", "cab", "bacacbacbbaccbacabcabbca cab", "a", "abcab"]
IMAGES = [
    Image(np.random.default_rng(seed).integers(0, 256, (6, 6, 3), np.uint8), f"image {seed}")
    for seed in range(5)
]
SOUNDS = [
    Sound(np.random.default_rng(seed).integers(-9000, 9000, count, np.int16), 8000, f"sound {seed}")
    for seed, count in enumerate((1100, 900, 2000, 1500, 1300))
]
GRAPHS = [
    Graph(
        f"graph {seed}",
        tuple(f"{seed}.{node}" for node in range(size)),
        bags_of([[(seed + node * step) % 7 for step in range(1, 3)] for node in range(size)]),
        np.array(edges, np.int64).reshape(-1, 2).T,
        np.zeros(len(edges), np.int64),
    )
    for seed, (size, edges) in enumerate(
        [
            (4, [(0, 1), (1, 2), (0, 3)]),
            (2, [(0, 1)]),
            (6, [(0, 1), (1, 2), (2, 3), (3, 0), (4, 5)]),
            (3, []),
            (5, [(0, 1), (0, 2), (0, 3), (0, 4), (1, 2)]),
        ]
    )
]
GRAPH_TRANSFORMERS: list[Tree] = [
    {
        "frontend": {"kind": "graph"},
        "encoder": {
            "kind": "transformer",
            "attention": {"kind": kind},
            "positions": {"kind": "none"},
        },
    }
    for kind in ("edges", "distances")
]
NODE_LABELS = [
    tuple(None if (seed + node) % 4 == 3 else "xy"[(seed + node) % 2] for node in range(len(graph)))
    for seed, graph in enumerate(GRAPHS)
]
SPOKEN = [
    (SpokenText(text, "xy"[number % 2]), SOUNDS[sound])
    for number, (text, sound) in enumerate(zip(TEXTS, (0, 2, 1, 3, 4), strict=True))
]
SHORT = [text[:2] for text in TEXTS]  # CTC writes at most one character per frame
LABELS = [("x",), ("y",), ("x",), ("z",), ("x",)]
SEVERAL = [("x", "y"), (), ("x",), ("x", "y", "z"), ("z",)]
NUMBERS = [(1.0, 10.0), (2.5, -3.0), (0.0, 0.0), (-1.0, 4.0), (0.5, 2.0)]
TAGS = {word: "NAME" if word[0].isupper() else word[-1] for s in SENTENCES for word in s.split()}


@dataclass(frozen=True)
class Toy:
    """A task with settings of its own, and examples. only: the one kind of model it takes;
    reads: the kind of input."""

    task: str
    pairs: list[Pair]
    settings: Tree = field(default_factory=dict)
    only: type[Options] | None = None
    reads: str = "text"


TOYS = {
    "transduce": Toy("transduce", number([(text, text[::-1]) for text in TEXTS])),
    "tag": Toy(
        "tag",
        number([(tuple(s.split()), tuple(TAGS[w] for w in s.split())) for s in SENTENCES]),
        reads="words",
    ),
    "classify": Toy("classify", number(list(zip(TEXTS, LABELS, strict=True)))),
    "balanced": Toy(
        "classify", number(list(zip(TEXTS, LABELS, strict=True))), {"class_weight": "balanced"}
    ),
    "several": Toy("classify", number(list(zip(TEXTS, SEVERAL, strict=True)))),
    "classify-vectors": Toy(
        "classify", number(list(zip(VECTORS, LABELS, strict=True))), reads="vectors"
    ),
    "classify-images": Toy(
        "classify", number(list(zip(IMAGES, LABELS, strict=True))), reads="image"
    ),
    "classify-sounds": Toy(
        "classify", number(list(zip(SOUNDS, LABELS, strict=True))), reads="sound"
    ),
    "nodes": Toy("tag", number(list(zip(GRAPHS, NODE_LABELS, strict=True))), reads="graph"),
    "classify-graphs": Toy(
        "classify", number(list(zip(GRAPHS, LABELS, strict=True))), reads="graph"
    ),
    "regress": Toy("regress", number(list(zip(TEXTS, NUMBERS, strict=True)))),
    "regress-vectors": Toy(
        "regress", number(list(zip(VECTORS, NUMBERS, strict=True))), reads="vectors"
    ),
    "captions": Toy("transduce", number(list(zip(IMAGES, SHORT, strict=True))), reads="image"),
    "dictation": Toy("transduce", number(list(zip(SOUNDS, TEXTS, strict=True))), reads="sound"),
    "synthesis": Toy("synthesize", number(SPOKEN)),
    "language-model": Toy(
        "language-model", number([("", text) for text in DOCUMENTS]), {"context_length": 6}
    ),
    "words": Toy(
        "language-model",
        number([("", text) for text in SENTENCES]),
        {"context_length": 6, "tokenizer": "word_char"},
        MaskedOptions,
        reads="words",
    ),
}


class Case(NamedTuple):
    """A tiny model on a toy, not yet built."""

    toy: str
    model: Tree
    name: str

    @property
    def kind(self) -> str:
        """Its own kind, where it has one, and that of its encoder or decoder."""
        part = self.model.get("encoder") or self.model.get("decoder") or self.model
        return "-".join(dict.fromkeys([self.model.get("kind", part["kind"]), part["kind"]]))

    def config(self, **sections: Tree) -> Any:
        """Its configuration, with these sections."""
        toy = TOYS[self.toy]
        task = {"kind": toy.task, **toy.settings, **sections.pop("task", {})}
        return check_config({"task": task, **with_objective(self.model), **sections}, "laws")


def cases(toy: str) -> list[Case]:
    """Every tiny model for a toy that can learn it."""
    return [case for case in all_cases(toy) if not blind(case)]


def blind(case: Case) -> bool:
    """Whether the place that the pool takes is the same in every input."""
    pool, encoder = case.model.get("pooling"), case.model.get("encoder", {})
    alone = encoder.get("kind") in ("linear", "mlp")
    ahead = alone or not encoder.get("bidirectional", True)
    several = "pooling" in case.model and not _is_flat(case)
    return several and ((pool == "first" and ahead) or (pool == "last" and alone))


def may_ignore(case: Case) -> bool:
    """Whether a position may have no effect, because ReLU makes all of its weights zero."""
    return case.model["encoder"].get("attention", {}).get("kind") == "relu"


def _is_flat(case: Case) -> bool:
    """Whether inputs have one position."""
    frontend = case.model.get("frontend") or {}
    return TOYS[case.toy].reads == "vectors" or frontend.get("kind") == "flat"


def all_cases(toy: str) -> list[Case]:
    """Every tiny model for a toy."""
    return list(_all_cases(toy))


@cache
def _all_cases(toy: str) -> list[Case]:
    only = TOYS[toy].only
    found = [only] if only else slot(CONFIGS[TOYS[toy].task], "model")
    graph = TOYS[toy].reads == "graph"
    return [
        Case(toy, sized(tree, part), f"{toy}-{name_of(tree, part)}")
        for part in found
        for tree in model_trees(part, TOYS[toy].reads) + GRAPH_TRANSFORMERS * graph
        if not (graph and tree.get("head") == "crf")  # nodes have no order
    ]


def one_of_each_kind(some: list[Case]) -> list[Case]:
    """The first case of each toy, kind, head and frontend."""
    first: dict[tuple[str | None, ...], Case] = {}
    for case in some:
        read = case.model.get("frontend", {}).get("kind")
        first.setdefault((case.toy, case.kind, case.model.get("head"), read), case)
    return list(first.values())


def each_choice_once(some: list[Case]) -> list[Case]:
    """Cases in which each kind of each toy comes, and each choice for one of the toys."""
    met: set[tuple[str, ...]] = set()
    found = []
    for case in some:
        here = {(key, str(value)) for key, value in flatten(case.model).items()}
        here.add((case.toy, case.kind, str(case.model.get("head"))))
        if not here <= met:
            met |= here
            found.append(case)
    return found


BUILT: dict[str, Run] = {}


def built(case: Case) -> Run:
    """The run of a case with weights that are not zeros and ones; for looking only."""
    if case.name not in BUILT:
        BUILT[case.name] = moved(start_run(NOWHERE, case.config(), *twice(case)))
    run = BUILT[case.name]
    run.model.eval()
    return run


def predictor(run: Run) -> Predictor:
    """The model of a run, ready to predict."""
    return Predictor.of(run.task, run.config, run.model, run.folder)


def twice(case: Case) -> tuple[list[Pair], list[Pair]]:
    """Training and dev examples: the same."""
    return TOYS[case.toy].pairs, TOYS[case.toy].pairs


@torch.no_grad()
def moved(run: Run) -> Run:
    """The run with noise in all its weights; a model that is counted is counted."""
    if run.config.training.optimizer.kind == "closed_form":
        run.task.solve(run.model, run.corpus, run.config.objective)
        return run
    torch.manual_seed(3)
    for parameter in run.model.parameters():
        parameter += 0.2 * torch.randn(parameter.shape)
    return run


def begin(
    folder: Path, config: Any, pairs: list[Pair], origin: PretrainedModel | None = None
) -> Run:
    """A new run whose folder is described."""
    run = start_run(folder, config, pairs, pairs[:2], origin)
    describe(run, {})
    return run


def in_a_new_process(folder: Path, pairs: list[Pair]) -> Run:
    """What `regard train --resume` does; nothing of the old process is left."""
    torch.manual_seed(12345)
    torch.rand(7)
    dropout._masks.cache_clear()
    return resume_run(folder, pairs, pairs[:2])


def in_parts(
    folder: Path, config: Any, pairs: list[Pair], stop: int, origin: PretrainedModel | None = None
) -> tuple[Run, Run, Run]:
    """A whole run, one that stopped after a number of steps, and that one resumed to its end."""
    whole = begin(folder / "whole", config, pairs, origin)
    list(train(whole))
    first = begin(folder / "parts", config, pairs, origin)
    list(islice(train(first), stop))
    save_checkpoint(first)
    second = in_a_new_process(folder / "parts", pairs)
    assert second.state.step == first.state.step == stop < whole.state.step
    list(train(second))
    return whole, first, second


def check_same(whole: Run, again: Run) -> None:
    """Bit for bit: weights, the optimizer's averages, the place in the data."""
    for name in ("step", "epoch", "position"):
        assert getattr(again.state, name) == getattr(whole.state, name)
    assert whole.state.step > 0
    ours, theirs = whole.model.state_dict(), again.model.state_dict()
    assert ours.keys() == theirs.keys()
    assert [name for name in ours if not torch.equal(ours[name], theirs[name])] == []
    assert len(whole.optimizers) == len(again.optimizers)
    for both in zip(whole.optimizers, again.optimizers, strict=True):
        states = [optimizer.state_dict() for optimizer in both]
        torch.testing.assert_close(states[0]["state"], states[1]["state"], atol=0, rtol=0)
        groups = [[g | {"lr": 0} for g in state["param_groups"]] for state in states]
        assert groups[0] == groups[1]  # the rate is set again before each step
