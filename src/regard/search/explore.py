"""The search tree of one sentence: the paths that beam search considered, and the greedy path."""

import math
from dataclasses import dataclass, replace
from typing import Any

from torch import Tensor

from regard.data.tensors.special import EOS
from regard.data.tokenizers.tokenizer import Tokenizer
from regard.search.hypothesis import Hypothesis
from regard.search.scoring import Scoring
from regard.search.trace import BranchStatus, Trace

Key = tuple[int, ...]  # the tokens of a path from the root, EOS included
MAX_PRUNED = 2  # pruned branches shown per node


@dataclass(frozen=True)
class Node:
    """A token after its prefix. total: log probability of prefix and token.

    greedy_only: whether greedy search took this path and beam search did not. `status` is then the
    status in greedy search.
    """

    probability: float
    total: float
    status: BranchStatus
    greedy_only: bool = False


@dataclass(frozen=True)
class SearchTree:
    """The nodes of a search tree by path, the greedy path and the path of the best hypothesis."""

    beam: int
    nodes: dict[Key, Node]
    greedy: Key
    best: Key
    scores: dict[Key, float]  # scores of finished paths

    def as_dict(self, tokenizer: Tokenizer) -> dict[str, Any]:
        """Return the nodes, sorted by depth, and the best and the greedy output, for JSON."""
        keys = sorted(self.nodes, key=lambda key: (len(key), -self.nodes[key].total, key))
        ids = {key: index for index, key in enumerate(keys)}

        def node(key: Key) -> dict[str, Any]:
            one = self.nodes[key]
            return {
                "id": ids[key],
                "parent": ids.get(key[:-1]),
                "token": tokenizer.name(key[-1]),
                "probability": one.probability,
                "total": one.total,
                "status": one.status,
                "score": self.scores.get(key) if one.status == "finished" else None,
                "best": self.best[: len(key)] == key,
                "greedy": self.greedy[: len(key)] == key,
                "greedy_only": one.greedy_only,
            }

        paths = {"best": self.best, "greedy": self.greedy}
        texts = {
            name: tokenizer.decode([token for token in key if token != EOS])
            for name, key in paths.items()
        }
        scores = {name: self.scores[key] for name, key in paths.items()}
        return {"beam": self.beam, "nodes": [*map(node, keys)], **texts, "scores": scores}


def search_tree(
    trace: Trace, beam: int, greedy: Hypothesis, best: Hypothesis, scoring: Scoring | None
) -> SearchTree:
    """Return the search tree of one sentence, with the greedy path.

    scoring: scores finished paths. None if scores also depend on attention (coverage penalty).
    """
    nodes: dict[Key, Node] = {}
    for step in trace.steps[0]:
        for branch in step:
            key = (*branch.prefix, branch.token)
            old = nodes.get(key)  # beam groups may share a path
            if old is None or old.status == "pruned":
                nodes[key] = Node(math.exp(branch.logprob), branch.total, branch.status)
    path, total = (*greedy.tokens, EOS), 0.0
    for n, logprob in enumerate(greedy.token_logprobs, 1):
        total += logprob
        status: BranchStatus = "finished" if n == len(path) else "kept"
        node = nodes.setdefault(path[:n], Node(math.exp(logprob), total, status, greedy_only=True))
        if node.status == "pruned":
            nodes[path[:n]] = replace(node, status=status, greedy_only=True)
    scores = {} if scoring is None else _scores(nodes, scoring)
    scores |= {(*one.tokens, EOS): one.score for one in (greedy, best)}
    return SearchTree(beam, _readable(nodes), path, (*best.tokens, EOS), scores)


def _scores(nodes: dict[Key, Node], scoring: Scoring) -> dict[Key, float]:
    """Return the score of each finished path."""
    finished = {key: node.total for key, node in nodes.items() if node.status == "finished"}
    score = scoring.score
    return {key: float(score(Tensor([total]), len(key), None)) for key, total in finished.items()}


def _readable(nodes: dict[Key, Node]) -> dict[Key, Node]:
    """Return all nodes, but per node only the MAX_PRUNED most probable pruned children."""
    shown = {key: node for key, node in nodes.items() if node.status != "pruned"}
    pruned = sorted(nodes.keys() - shown.keys(), key=lambda key: -nodes[key].total)
    count: dict[Key, int] = {}
    for key in pruned:
        count[key[:-1]] = count.get(key[:-1], 0) + 1
        if count[key[:-1]] <= MAX_PRUNED:
            shown[key] = nodes[key]
    return shown
