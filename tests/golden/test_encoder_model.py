"""The parts of labelers as plain loops, and their losses as torch has them.

B rows, S length, D width, C labels or numbers, U words, L letters.
"""

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from regard.data.tensors.padded import Batch, Outputs, Padded, SharedRows
from regard.inputs.frontend import Embedding
from regard.inputs.words import CharCNN, CharLSTM
from regard.models.encoder_model import POOLS
from regard.models.window import LinearEncoderOptions, MlpEncoderOptions, WindowEncoderOptions
from regard.objectives import Absolute, Huber, Labels, Squared, Tags

B, S, D, C = 3, 5, 8, 4
LENGTHS = [5, 3, 1]
MASK = torch.arange(S) < torch.tensor(LENGTHS)[:, None]  # (B, S)


def close(one: Tensor, other: Tensor) -> None:
    torch.testing.assert_close(one, other, atol=2e-6, rtol=1e-5)


def vectors() -> Padded:
    return Padded(torch.randn(B, S, D, generator=torch.Generator().manual_seed(0)), MASK)


def layers(x: Tensor, stack: nn.ModuleList, activation: str) -> Tensor:
    for layer in stack:
        x = getattr(F, activation)(layer.weight @ x + layer.bias)
    return x


@pytest.mark.parametrize("activation", ["relu", "gelu", "silu"])
@pytest.mark.parametrize("window", [0, 1, 2, 7])
def test_window(window: int, activation: str) -> None:
    """Each place with its neighbors, from left to right; zeros beyond the ends of the row."""
    torch.manual_seed(0)
    sizes = {"width": D, "layers": 2, "dropout": 0.0, "activation": activation}
    ours, source = WindowEncoderOptions(window=window, **sizes).build().eval(), vectors()
    out = ours(source)
    assert torch.equal(out.mask, MASK)
    for row, length in enumerate(LENGTHS):
        for t in range(length):
            seen = [
                source.data[row, i] if 0 <= i < length else torch.zeros(D)
                for i in range(t - window, t + window + 1)
            ]
            close(out.data[row, t], layers(torch.cat(seen), ours.mlp.layers, activation))


def test_mlp_and_linear() -> None:
    torch.manual_seed(0)
    source = vectors()
    ours = MlpEncoderOptions(width=6, layers=2, dropout=0.0).build(D).eval()
    out = ours(source).data
    assert out.shape == (B, S, 6)
    close(out[1, 2], layers(source.data[1, 2], ours.layers, "relu"))
    assert torch.equal(
        LinearEncoderOptions(width=D, dropout=0.5).build().eval()(source).data, source.data
    )


@pytest.mark.parametrize("kind", ["mean", "max", "first", "last", "attention"])
def test_pools(kind: str) -> None:
    torch.manual_seed(0)
    pool, source = POOLS[kind](D), vectors()
    found = pool(source)
    for row, length in enumerate(LENGTHS):
        x = source.data[row, :length]  # (length, D)
        plain = {
            "mean": lambda x: x.sum(0) / len(x),
            "max": lambda x: x.max(0).values,
            "first": lambda x: x[0],
            "last": lambda x: x[-1],
            "attention": lambda x: weighted(pool, x),
        }
        close(found[row], plain[kind](x))
    summary = torch.randn(B, D)
    given = pool(source._replace(summary=summary))
    assert torch.equal(given, summary if kind == "last" else found)


def weighted(pool: nn.Module, x: Tensor) -> Tensor:
    """u = tanh(W h + b), a = softmax(v . u), sum of a h (Yang et al. 2016, eq. 5 to 7)."""
    inner, _, outer = pool.weigh
    scores = [outer.weight[0] @ torch.tanh(inner.weight @ h + inner.bias) for h in x]
    return sum(a * h for a, h in zip(torch.stack(scores).softmax(0), x, strict=True))


def letters() -> tuple[SharedRows, Embedding]:
    """Three words of 5, 3 and 1 letters."""
    torch.manual_seed(0)
    data = torch.randint(1, 9, (B, S)).masked_fill(~MASK, 0)
    return SharedRows(data, MASK), Embedding(9, 6, 6**0.5)


def test_char_cnn() -> None:
    """The largest value of each filter over all places that it touches the word at."""
    words, each = letters()
    ours = CharCNN(each, 10, (2, 3))
    for linear in ours.convolutions:
        nn.init.constant_(linear.bias, 3.0)  # what a place beyond the word would give
    found = ours(words)  # (U, 10)
    for row, length in enumerate(LENGTHS):
        x = each.weight[words.data[row, :length]] * 6**0.5
        parts = []
        for span, linear in zip((2, 3), ours.convolutions, strict=True):
            padded = F.pad(x, (0, 0, span - 1, span - 1))
            places = [padded[i : i + span].flatten() for i in range(length + span - 1)]
            values = torch.stack([linear.weight @ place + linear.bias for place in places])
            parts.append(values.max(0).values)
        close(found[row], torch.cat(parts).relu())


def test_char_lstm() -> None:
    """torch's LSTM, over each word and over the word reversed: the last states."""
    words, each = letters()
    ours = CharLSTM(each, 10)
    found = ours(words)  # (U, 10)
    (ahead,), (back,) = ours.body.forwards[0].layers, ours.body.backwards[0].layers
    for row, length in enumerate(LENGTHS):
        x = each.weight[words.data[row, :length]] * 6**0.5
        ends = [layer(y[None])[0][0, -1] for layer, y in ((ahead, x), (back, x.flip(0)))]
        close(found[row], torch.cat(ends))


class Given(nn.Module):
    """A model that always gives the same scores."""

    def __init__(self, scores: Tensor) -> None:
        super().__init__()
        self.scores = scores

    def forward(self, batch: Batch) -> Outputs:
        return Outputs(self.scores)


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize("weight", [None, torch.tensor([2.0, 0.5, 1.0])], ids=["plain", "weighted"])
def test_losses_of_labels(weight: Tensor | None, smoothing: float) -> None:
    torch.manual_seed(0)
    times = torch.ones(B) if weight is None else weight
    source, scores, tags = vectors(), torch.randn(B, S, C), torch.randint(C, (B, S))
    found = Tags(label_smoothing=smoothing)(
        Given(scores), Batch(source, Padded(tags, MASK), weight=weight)
    )
    expected = sum(
        times[b]
        * F.cross_entropy(scores[b, :n], tags[b, :n], reduction="sum", label_smoothing=smoothing)
        for b, n in enumerate(LENGTHS)
    )
    close(found.sum, expected)
    assert found.count == pytest.approx(float(times @ torch.tensor([5.0, 3.0, 1.0])))

    objective = Labels(label_smoothing=smoothing)
    one = objective(Given(scores[:, 0]), Batch(source, labels=tags[:, 0], weight=weight))
    each = F.cross_entropy(scores[:, 0], tags[:, 0], reduction="none", label_smoothing=smoothing)
    close(one.sum, times @ each)
    several = (tags < 2).float()[:, :C]
    many = objective(Given(scores[:, 0]), Batch(source, labels=several, weight=weight))
    soft = several * (1 - smoothing) + smoothing / 2
    p = scores[:, 0].sigmoid()
    close(many.sum, times @ -(soft * p.log() + (1 - soft) * (1 - p).log()).sum(1))
    assert one.count == many.count == pytest.approx(float(times.sum()))


@pytest.mark.parametrize("delta", [0.5, 1.0, 2.0])
def test_losses_of_numbers(delta: float) -> None:
    """Huber's is twice torch's, so that it is the square where the error is small."""
    torch.manual_seed(0)
    given, wanted = 2 * torch.randn(2, B, 2)
    batch = Batch(vectors(), labels=wanted)
    losses = [kind(Given(given), batch).sum for kind in (Squared(), Absolute(), Huber(delta=delta))]
    close(losses[0], F.mse_loss(given, wanted, reduction="sum"))
    close(losses[1], F.l1_loss(given, wanted, reduction="sum"))
    close(losses[2], 2 * F.huber_loss(given, wanted, reduction="sum", delta=delta))
