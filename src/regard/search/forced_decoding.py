"""Scores of given outputs: each token as probable as the decoder finds it after those before.

B rows, T target length, V vocabulary.
"""

from typing import Protocol

import torch
from torch import Tensor

from regard.data.tensors.padded import Padded, pad, shifted
from regard.data.tensors.special import BOS, EOS
from regard.data.tensors.state import State
from regard.nn.capture_hooks import is_recording, padding_mask, recording
from regard.search.hypothesis import Hypothesis
from regard.search.scoring import Scoring

MOST = 1 << 25  # logits that are computed together: 128 MB


class Stepper(Protocol):
    """What a search needs of a model."""

    def start(self, source: Padded) -> State: ...

    def step(self, tokens: Tensor, state: State) -> tuple[Tensor, State]: ...


@torch.inference_mode()
def score_targets(
    stepper: Stepper,
    source: Padded,
    targets: list[list[int]],
    scoring: Scoring | None = None,
    size: int = 1,
) -> list[Hypothesis]:
    """Each target (without EOS) as if the search had found it, with its score.

    size: of the vocabulary; where the logits would take much memory, so many tokens at a time.
    """
    scoring = scoring or Scoring()
    true = pad([[*target, EOS] for target in targets])
    inputs = shifted(true.data).to(source.data.device)
    width = max(1, MOST // (len(targets) * size)) if not is_recording() else inputs.shape[1]
    state, parts = stepper.start(source), []
    for at in range(0, inputs.shape[1], width):
        some = slice(at, at + width)
        with padding_mask(true.mask[:, some]):
            logits, state = stepper.step(inputs[:, some], state)
        wanted = true.data[:, some].to(logits.device)[..., None]
        parts.append(logits.float().log_softmax(-1).gather(-1, wanted).squeeze(-1).cpu())
    rows = torch.cat(parts, 1)  # (B, T)
    found = []
    for target, row in zip(targets, rows, strict=True):
        scores = row[: len(target) + 1]
        score = scoring.score(scores.double().sum(), len(target) + 1, None)
        found.append(Hypothesis(tuple(target), float(score), tuple(scores.tolist())))
    return found


@torch.inference_mode()
def cross_attention(stepper: Stepper, source: Padded, targets: list[list[int]]) -> list[Tensor]:
    """For each target the attention (T + 1, S) of its tokens and EOS to its source tokens."""
    true = pad([[*target, EOS] for target in targets])
    inputs = shifted(true.data).to(source.data.device)
    with recording() as seen, padding_mask(true.mask):
        stepper.step(inputs, stepper.start(source))
    weights = seen.alignment().cpu()  # (B, T, S)
    sizes = source.mask.sum(1).tolist()
    return [
        weights[b, : len(target) + 1, :size]
        for b, (target, size) in enumerate(zip(targets, sizes, strict=True))
    ]


@torch.inference_mode()
def next_token_logprobs(stepper: Stepper, source: Padded, prefix: tuple[int, ...]) -> Tensor:
    """Log probabilities (B, V) of what follows a prefix."""
    inputs = torch.tensor([[BOS, *prefix]], device=source.data.device).expand(len(source.data), -1)
    logits, _ = stepper.step(inputs, stepper.start(source))
    return logits[:, -1].float().log_softmax(-1)
