"""An n-gram language model with modified Kneser-Ney smoothing, estimated from counts.

Level n of a trie has all n-grams of length n. Level n - 1 is "one level up".
B rows, T length, V vocabulary, N tokens of a text, M n-grams of a level, P positions.
"""

from typing import Any, ClassVar, Literal, cast

import numpy as np
import torch
import torch.nn.functional as F
from pydantic import Field
from torch import Tensor, nn

from regard.core.data_stats import DataStats
from regard.data.tensors.padded import Batch, Outputs, shifted
from regard.data.tensors.special import BOS, EOS, PAD
from regard.data.tensors.state import State
from regard.inputs.input import InputShape
from regard.models.kneser_ney import NON_TEXT_IDS, count, discount
from regard.models.model_options import TextModelOptions


class Level(nn.Module):
    """The n-grams of one length n > 1, as a level of a trie in sorted arrays.

    An n-gram is identified by its index in `keys`. Its key is V times the index of its first
    n - 1 tokens one level up, plus its last token. So n-grams with the same prefix are neighbors.
    share: discounted probability of each n-gram.
    rest: backoff weight of each context, which is an n-gram one level up; 1 for unknown contexts.
    """

    keys: Tensor
    share: Tensor
    rest: Tensor

    def __init__(self, vocabulary: int) -> None:
        super().__init__()
        self.vocabulary = vocabulary
        self.fill(torch.zeros(0, dtype=torch.int64), torch.zeros(0), torch.zeros(0))

    def fill(self, keys: Tensor, share: Tensor, rest: Tensor) -> None:
        """Set keys (M,), share (M,) and rest, which has the length of `keys` one level up."""
        self.register_buffer("keys", keys)
        self.register_buffer("share", share)
        self.register_buffer("rest", rest)

    def find(self, contexts: Tensor, tokens: Tensor) -> Tensor:
        """Return the indices (P,) of n-grams, -1 for unknown n-grams or contexts.

        contexts: index of the first n - 1 tokens one level up (P,). tokens: last token (P,).
        """
        if not len(self.keys):
            return torch.full_like(contexts, -1)
        keys = contexts * self.vocabulary + tokens
        indices = torch.searchsorted(self.keys, keys).clamp(max=len(self.keys) - 1)
        return torch.where((contexts >= 0) & (self.keys[indices] == keys), indices, -1)

    def rests(self, contexts: Tensor) -> Tensor:
        """Return the backoff weight of each context (P,), 1 for unknown contexts (-1)."""
        if not len(self.keys):
            return torch.ones_like(contexts, dtype=self.share.dtype)
        return torch.where(contexts >= 0, self.rest[contexts.clamp(min=0)], 1.0)

    def add(self, p: Tensor, contexts: Tensor) -> Tensor:
        """Return the distributions (P, V) after `contexts` (P,).

        p: the distributions (P, V) after the contexts without their first token.
        """
        first = torch.searchsorted(self.keys, contexts * self.vocabulary)  # (P,)
        after = torch.searchsorted(self.keys, (contexts + 1) * self.vocabulary)
        counts = torch.where(contexts >= 0, after - first, 0)
        rows = torch.arange(len(p), device=p.device).repeat_interleave(counts)
        skipped = first - (counts.cumsum(0) - counts)
        indices = torch.arange(len(rows), device=p.device) + skipped[rows]
        p = p * self.rests(contexts)[:, None]
        cells = rows * self.vocabulary + self.keys[indices] % self.vocabulary
        p.view(-1).index_add_(0, cells, self.share[indices])
        return p

    def _load_from_state_dict(self, state_dict: Any, prefix: str, *more: Any) -> None:
        """Load buffers of any length, because their length depends on the training text."""
        for name, own in list(self.named_buffers()):
            loaded = state_dict.get(prefix + name, own)
            self.register_buffer(name, own.new_empty(loaded.shape))
        super()._load_from_state_dict(state_dict, prefix, *more)


class NGram(nn.Module):
    """An n-gram model with interpolated modified Kneser-Ney smoothing (Chen and Goodman 1999).

    p(w | h) = (c(hw) - D(c(hw))) / c(h) + rest(h) p(w | h without its first token)

    c of the longest n-grams is their count in the text. c of shorter n-grams is the number of
    distinct tokens that precede them (Kneser and Ney 1995). Unigrams back off to the uniform
    distribution over all tokens except PAD, BOS and MASK. A document starts after one BOS and ends
    with EOS. Contexts are shorter at its start. N-grams that start with BOS have no preceding
    token and keep their count in the text.
    """

    scores_targets: ClassVar[bool] = (
        False  # the model memorizes its text, so diagnose reports only the loss
    )
    unigram: Tensor

    unbounded = True  # whether the context length is unbounded
    only_counts: ClassVar[bool] = True  # whether the model has no layers to inspect

    def __init__(self, vocabulary: int, order: int) -> None:
        super().__init__()
        assert order > 0
        self.vocabulary, self.order = vocabulary, order
        possible = torch.ones(vocabulary)
        possible[NON_TEXT_IDS] = 0
        self.register_buffer("unigram", possible / possible.sum())  # (V,) p without a context
        self.levels = nn.ModuleList(Level(vocabulary) for _ in range(order - 1))

    def solve(
        self, stream: np.ndarray | Tensor, weights: np.ndarray | Tensor | None = None
    ) -> None:
        """Estimate the model from a text (N,) of concatenated documents, each with a final EOS.

        weights: how often each token counts (N,), integers > 0, by default 1.
        """
        tokens = np.asarray(stream, dtype=np.int64)
        times = None if weights is None else np.asarray(weights, dtype=np.int64)
        V, device = self.vocabulary, self.unigram.device
        keys, counts = count(tokens, times, V, self.order)
        share, rest = discount(np.arange(V), counts[0], V, contexts=1)
        possible = ~np.isin(np.arange(V), NON_TEXT_IDS)
        unigram = share + rest * possible / possible.sum()
        self.unigram.copy_(torch.from_numpy(unigram))
        for n, table in enumerate(self.tables, 1):
            share, rest = discount(keys[n], counts[n], V, contexts=len(keys[n - 1]))
            numbers = (torch.from_numpy(x).float().to(device) for x in (share, rest))
            table.fill(torch.from_numpy(keys[n]).to(device), *numbers)

    @property
    def tables(self) -> list[Level]:
        """Return the levels from 2 to `order`."""
        return cast("list[Level]", list(self.levels))

    def forward(self, batch: Batch, inputs: Tensor | None = None) -> Outputs:
        """Return the log probabilities (P, V) of all tokens but padding, and the state to carry.

        inputs: model inputs (B, T), by default the shifted target.
        """
        assert batch.target is not None
        tokens = batch.target.data
        state = self.start(len(tokens))
        if batch.carry is not None:
            state = State({}, batch.carry)
        inputs = shifted(tokens, batch.before) if inputs is None else inputs
        logits, state = self.step(inputs, state)
        return Outputs(logits[batch.target.mask], state.past)

    def start(self, rows: int) -> State:
        """Return the state before the first token, with PAD for missing previous tokens."""
        past = torch.full((rows, self.order - 1), PAD, device=self.unigram.device)
        return State({}, {"tokens": past})

    def step(self, tokens: Tensor, state: State) -> tuple[Tensor, State]:
        """Return the log probabilities (B, T, V) after each token (B, T), and the new state.

        PAD, BOS and MASK get -inf. After EOS or BOS a new document starts.
        """
        tokens = tokens.to(self.unigram.device)
        history = torch.cat([state.past["tokens"], tokens], 1)  # (B, order - 1 + T)
        current = torch.where(history == EOS, BOS, history)
        contexts = [current]  # each (B, order - 1 + T): contexts of 1, 2, ... tokens
        for table in self.tables[:-1]:
            before = F.pad(contexts[-1][:, :-1], (1, 0), value=-1)
            contexts.append(table.find(before, current))
        p = self.unigram.expand(tokens.numel(), -1)  # (B * T, V)
        for table, context in zip(self.tables, contexts, strict=False):
            p = table.add(p, context[:, self.order - 1 :].flatten())
        logits = p.log().unflatten(0, tokens.shape)  # (B, T, V)
        return logits, State({}, {"tokens": history[:, tokens.shape[1] :]})

    def log_probabilities(self, stream: np.ndarray | Tensor) -> Tensor:
        """Return the log probability (N,) of each token of a text (N,), given the tokens before."""
        tokens = torch.as_tensor(stream, dtype=torch.int64, device=self.unigram.device)
        ends = tokens == EOS
        contexts = F.pad(torch.where(ends, BOS, tokens), (1, 0), value=BOS)[:-1]
        p = self.unigram[tokens]
        for table in self.tables:
            indices = table.find(contexts, tokens)
            known = indices >= 0
            p = p * table.rests(contexts)
            p[known] += table.share[indices[known]]
            contexts = F.pad(torch.where(ends, -1, indices), (1, 0), value=-1)[:-1]
        return p.log()


class NGramOptions(TextModelOptions):
    """Options of an n-gram language model, which has no network and no training steps."""

    gives: ClassVar[str] = "steps"
    kind: Literal["ngram"] = "ngram"
    order: int = Field(5, gt=0, le=20, description="maximum n-gram length")

    def describe(self) -> list[dict[str, Any]]:
        return [{"part": "ngram", "order": self.order}]

    def closed_form(self, stats: DataStats, objective: Any) -> bool:
        return True

    def build(self, shape: InputShape) -> NGram:
        """Return the untrained model for inputs of this shape."""
        return NGram(shape.size, self.order)
