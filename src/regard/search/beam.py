"""Beam search over any decoder, by its step function and its State.

B sentences, W beams of each, V vocabulary.
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from regard.data.vocabulary import BOS, EOS, MASK, PAD, UNK
from regard.nn.state import State, select

Step = Callable[[Tensor, State], tuple[Tensor, State]]
NEVER = [PAD, UNK, BOS, MASK]  # symbols that are no output


@dataclass(frozen=True)
class Hypothesis:
    """One output. score: log probability / length^alpha; the closing EOS counts in all three."""

    symbols: tuple[int, ...]
    score: float
    symbol_scores: tuple[float, ...]
    cut: bool = False  # ended because it came to its limit

    @property
    def log_probability(self) -> float:
        """The sum over the symbols, EOS among them."""
        return sum(self.symbol_scores)


@dataclass
class Beams:
    """The live search: B sentences of W beams. rows: (B,) which sentence each is."""

    rows: Tensor
    symbols: Tensor  # (B, W, t)
    symbol_scores: Tensor  # (B, W, t)
    total: Tensor  # (B, W) log probability
    length: Tensor  # (B, W) symbols, EOS included
    done: Tensor  # (B, W)
    limits: Tensor  # (B,)

    @classmethod
    def start(cls, limits: Tensor) -> "Beams":
        """One empty beam for each sentence."""
        B = len(limits)
        zeros = torch.zeros(B, 1, device=limits.device)
        nothing = torch.zeros(B, 1, 0, device=limits.device)
        return cls(
            torch.arange(B, device=limits.device),
            nothing.long(),
            nothing,
            zeros,
            zeros,
            zeros.bool(),
            limits,
        )

    def keep(self, rows: Tensor) -> None:
        """Only these sentences go on."""
        for name in vars(self):
            setattr(self, name, getattr(self, name).index_select(0, rows))


@torch.inference_mode()
def beam_search(
    step: Step, state: State, limits: Tensor, beam: int, alpha: float, nbest: int = 1
) -> list[list[Hypothesis]]:
    """The best outputs of each sentence, best first, by log p / length^alpha.

    state: before the first symbol, B rows. limits: (B,) the most symbols of each, EOS included;
    at its limit a sentence may only end. Finished beams stay in the beam and compete; a sentence
    leaves the batch when no live beam can still come among its `nbest`. beam 1 is greedy search.
    """
    beams = Beams.start(limits.clamp(min=1))
    found: list[list[Hypothesis]] = [[] for _ in range(len(limits))]
    last = torch.full((len(limits), 1), BOS, device=limits.device)
    while True:
        logits, state = step(last, state)
        parent = _grow(beams, logits[:, -1].float(), beam, alpha)  # (B, W)
        going = ~_settled(beams, alpha, nbest)
        for b in (~going).nonzero().flatten().tolist():
            found[int(beams.rows[b])] = _collect(beams, b, alpha, nbest)
        if not going.any():
            return found
        kept = going.nonzero().flatten()
        past = parent.index_select(0, kept).flatten()
        memory = state.memory if len(kept) == len(going) else select(state.memory, kept)
        state = State(memory, select(state.past, past))
        beams.keep(kept)
        last = beams.symbols[:, :, -1].flatten().unsqueeze(1)


def _grow(beams: Beams, logits: Tensor, beam: int, alpha: float) -> Tensor:
    """Makes every beam one symbol longer and keeps the best; the rows (B, W) they came from."""
    B, W = beams.total.shape
    gained, symbol = _continuations(beams, logits, beam)  # (B, W, K) each
    length = beams.length + ~beams.done
    rank = (beams.total[..., None] + gained) / length[..., None] ** alpha
    best = rank.flatten(1).topk(min(beam, rank[0].numel())).indices  # (B, W')
    parent = best // gained.shape[-1]
    symbol, gained = symbol.flatten(1).gather(1, best), gained.flatten(1).gather(1, best)

    def follow(x: Tensor) -> Tensor:
        return x.gather(1, parent[..., None].expand(-1, -1, x.shape[-1]))

    beams.symbols = torch.cat([follow(beams.symbols), symbol[..., None]], -1)
    beams.symbol_scores = torch.cat([follow(beams.symbol_scores), gained[..., None]], -1)
    beams.total = beams.total.gather(1, parent) + gained
    beams.length = length.gather(1, parent)
    beams.done = beams.done.gather(1, parent) | (symbol == EOS)
    return parent + torch.arange(B, device=parent.device)[:, None] * W


def _continuations(beams: Beams, logits: Tensor, beam: int) -> tuple[Tensor, Tensor]:
    """The best symbols after each beam and their log probabilities, (B, W, K) each.

    No more than `beam` symbols after one beam can come among the best of a sentence. At its limit
    a sentence may only end; a finished beam goes on with PAD, for free.
    """
    normaliser = logits.logsumexp(-1, keepdim=True)  # (B*W, 1)
    end = (logits[:, EOS, None] - normaliser).unflatten(0, beams.total.shape)  # (B, W, 1)
    top, symbol = logits.topk(min(beam + len(NEVER), logits.shape[-1]))
    never = (symbol[..., None] == torch.tensor(NEVER, device=symbol.device)).any(-1)
    gained = (top - normaliser).masked_fill(never, float("-inf"))
    gained = gained.unflatten(0, beams.total.shape)  # (B, W, K)
    symbol = symbol.unflatten(0, beams.total.shape)

    first = torch.arange(gained.shape[-1], device=gained.device) == 0  # (K,)
    ending = (beams.symbols.shape[-1] + 1 >= beams.limits)[:, None, None]
    gained = torch.where(ending, torch.where(first, end, float("-inf")), gained)
    symbol = torch.where(ending, EOS, symbol)
    done = beams.done[..., None]
    gained = torch.where(done, torch.where(first, 0.0, float("-inf")), gained)
    symbol = torch.where(done, PAD, symbol)
    return gained, symbol


def _settled(beams: Beams, alpha: float, nbest: int) -> Tensor:
    """(B,) True where no live beam can still rank among the first `nbest`.

    A live beam's log probability can only fall, and counts most at the longest length.
    """
    rank = beams.total / beams.length**alpha
    finished = torch.where(beams.done, rank, float("-inf"))
    nth = finished.topk(min(nbest, rank.shape[1])).values[:, -1]
    hope = beams.total / beams.limits[:, None].to(rank.dtype) ** alpha
    best = torch.where(beams.done, float("-inf"), hope).max(1).values
    return beams.done.all(1) | (nth >= best)


def _collect(beams: Beams, b: int, alpha: float, nbest: int) -> list[Hypothesis]:
    """The finished outputs of sentence b, best first."""
    found = []
    for w in beams.done[b].nonzero().flatten().tolist():
        length = int(beams.length[b, w])
        total = float(beams.total[b, w])
        if total == float("-inf"):
            continue
        symbols = beams.symbols[b, w, : length - 1].tolist()
        scores = beams.symbol_scores[b, w, :length].tolist()
        cut = length >= int(beams.limits[b])
        found.append(Hypothesis(tuple(symbols), total / length**alpha, tuple(scores), cut))
    return sorted(found, key=lambda h: -h.score)[:nbest]
