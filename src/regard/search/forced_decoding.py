"""Forced decoding: the probability of each token of a given target.

B rows (source and target pairs), S source length, T target length, V vocabulary.
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

MAX_LOGITS = 1 << 25  # logits computed at a time: 128 MB


class Stepper(Protocol):
    """The methods of a model that a search needs."""

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
    """Return each target (without EOS) as a hypothesis with its score.

    size: vocabulary size. Positions are split into blocks of at most MAX_LOGITS logits.
    """
    scoring = scoring or Scoring()
    expected = pad([[*target, EOS] for target in targets])
    inputs = shifted(expected.data).to(source.data.device)
    width = max(1, MAX_LOGITS // (len(targets) * size)) if not is_recording() else inputs.shape[1]
    state, parts = stepper.start(source), []
    for at in range(0, inputs.shape[1], width):
        block = slice(at, at + width)
        with padding_mask(expected.mask[:, block]):
            logits, state = stepper.step(inputs[:, block], state)
        ids = expected.data[:, block].to(logits.device)[..., None]
        parts.append(logits.float().log_softmax(-1).gather(-1, ids).squeeze(-1).cpu())
    rows = torch.cat(parts, 1)  # (B, T)
    found = []
    for target, row in zip(targets, rows, strict=True):
        logprobs = row[: len(target) + 1]
        score = scoring.score(logprobs.double().sum(), len(target) + 1, None)
        found.append(Hypothesis(tuple(target), float(score), tuple(logprobs.tolist())))
    return found


@torch.inference_mode()
def cross_attention(stepper: Stepper, source: Padded, targets: list[list[int]]) -> list[Tensor]:
    """Return the attention (T + 1, S) of each target's tokens and EOS to its source tokens."""
    expected = pad([[*target, EOS] for target in targets])
    inputs = shifted(expected.data).to(source.data.device)
    with recording() as captured, padding_mask(expected.mask):
        stepper.step(inputs, stepper.start(source))
    weights = captured.alignment().cpu()  # (B, T, S)
    sizes = source.mask.sum(1).tolist()
    return [
        weights[b, : len(target) + 1, :size]
        for b, (target, size) in enumerate(zip(targets, sizes, strict=True))
    ]


@torch.inference_mode()
def next_token_logprobs(stepper: Stepper, source: Padded, prefix: tuple[int, ...]) -> Tensor:
    """Return the log probabilities (B, V) of the token after a prefix."""
    inputs = torch.tensor([[BOS, *prefix]], device=source.data.device).expand(len(source.data), -1)
    logits, _ = stepper.step(inputs, stepper.start(source))
    return logits[:, -1].float().log_softmax(-1)
