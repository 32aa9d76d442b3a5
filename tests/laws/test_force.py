"""Laws of given outputs: as probable as training finds them, seen at once or in steps."""

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from regard.core.errors import UserError
from regard.data.tensors.padded import Batch, Padded, pad
from regard.data.tensors.special import BOS, EOS
from regard.data.tensors.state import State
from regard.models.encoder_decoder import EncoderDecoderOptions
from regard.nn.capture_hooks import recording
from regard.nn.fast import fast
from regard.search.forced_decoding import cross_attention, next_token_logprobs, score_targets
from regard.search.scoring import Scoring

from .conftest import TARGETS


@torch.no_grad()
def test_forced_scores_are_the_loss_of_training(model: nn.Module, batch: Batch) -> None:
    """In one batch, alone, and by the fast twin."""
    true = batch.target.data[batch.target.mask]
    loss = F.cross_entropy(model(batch).logits, true, reduction="sum")
    targets = [row[:-1] for row in TARGETS]
    found = score_targets(fast(model), batch.source, targets, Scoring("average", 1.0))
    assert sum(one.log_probability for one in found) == pytest.approx(-float(loss), rel=1e-4)
    for row, one in enumerate(found):
        size = int(batch.source.mask[row].sum())
        (alone,) = score_targets(
            model, pad([batch.source.data[row, :size].tolist()]), [targets[row]]
        )
        assert one.token_logprobs == pytest.approx(alone.token_logprobs, abs=1e-4)
        assert one.score == pytest.approx(one.log_probability / (len(targets[row]) + 1), abs=1e-5)


def test_a_few_tokens_at_a_time_are_as_probable(
    model: nn.Module, source: Padded, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Large logits are computed in chunks, a limited number per row at once."""
    targets = [row[:-1] for row in TARGETS]
    whole = score_targets(fast(model), source, targets)
    stepper, steps = fast(model), []

    class Watched:
        start = staticmethod(stepper.start)

        @staticmethod
        def step(tokens: Tensor, state: State) -> tuple[Tensor, State]:
            steps.append(tokens.shape[1])
            return stepper.step(tokens, state)

    size, width = 20, 2
    monkeypatch.setattr("regard.search.forced_decoding.MAX_LOGITS", width * size * len(targets))
    parts = score_targets(Watched(), source, targets, size=size)
    longest = 1 + max(map(len, targets))
    assert max(steps) == width and sum(steps) == longest and len(steps) > 1
    for one, other in zip(whole, parts, strict=True):
        assert one.tokens == other.tokens and one.score == pytest.approx(other.score, abs=1e-5)
        assert one.token_logprobs == pytest.approx(other.token_logprobs, abs=1e-5)


@torch.no_grad()
def test_alignments_are_the_attention_of_the_steps(
    model: nn.Module, options: EncoderDecoderOptions, source: Padded
) -> None:
    """Each row sums to 1 over its own source, and is what a step by itself attends to."""
    targets = [row[:-1] for row in TARGETS]
    if options.decoder.cross.kind == "none":
        with pytest.raises(UserError, match="no attention to its source"):
            cross_attention(model, source, targets)
        return
    found = cross_attention(fast(model), source, targets)
    for row, weights in enumerate(found):
        size = int(source.mask[row].sum())
        assert weights.shape == (len(targets[row]) + 1, size)
        if options.decoder.cross.kind not in ("linformer", "relu"):
            assert weights.sum(1).tolist() == pytest.approx([1.0] * len(weights), abs=1e-5)
        state = model.start(pad([source.data[row, :size].tolist()]))
        for t, token in enumerate([BOS, *targets[row]]):
            with recording() as seen:
                _, state = model.step(torch.tensor([[token]]), state)
            assert torch.allclose(seen.alignment()[0, 0], weights[t], atol=1e-5)


@torch.no_grad()
def test_what_may_follow_a_prefix(model: nn.Module, source: Padded) -> None:
    logp = next_token_logprobs(fast(model), source, (5, 7))
    assert logp.exp().sum(1).tolist() == pytest.approx([1.0] * 4, abs=1e-5)
    for token in (5, 6, EOS):
        ends = [[5, 7]] * 4 if token == EOS else [[5, 7, token]] * 4
        found = score_targets(model, source, ends)
        assert logp[:, token].tolist() == pytest.approx(
            [one.token_logprobs[2] for one in found], abs=1e-4
        )
