"""Positional encodings, computed by hand from the papers.

B rows, T length, D width, H heads, K head width.
"""

import math

import pytest
import torch
from torch import Tensor

from regard.config.load import load_config
from regard.core.errors import UserError
from regard.data.tensors.padded import Padded
from regard.models.transformer_options import TransformerEncoderOptions
from regard.nn.positions.alibi import AlibiPosition
from regard.nn.positions.floater import Floater, FloaterPosition
from regard.nn.positions.relative import RelativePosition
from regard.nn.positions.rotary import RotaryPosition
from regard.nn.positions.sinusoidal import SinusoidalPosition, sinusoids
from regard.nn.positions.t5 import T5Position

B, T, D, H = 2, 6, 8, 2
SIZES = {"layers": 2, "width": D, "heads": H, "feedforward_width": 12, "dropout": 0.0}


def close(one: Tensor, other: Tensor, atol: float = 1e-5) -> None:
    torch.testing.assert_close(one, other, atol=atol, rtol=1e-5)


def encode(x: Tensor, kind: str) -> Tensor:
    torch.manual_seed(0)
    encoder = TransformerEncoderOptions(**SIZES, positions=kind).build().eval()
    with torch.no_grad():
        return encoder(Padded(x, torch.ones(x.shape[:2], dtype=torch.bool))).data


def test_without_positions_a_shuffle_of_the_inputs_shuffles_the_outputs() -> None:
    """encoder(x[p]) = encoder(x)[p], so that "dog bites man" and "man bites dog" have one mean;
    with sinusoids neither holds."""
    x, order = torch.randn(1, 3, D), torch.tensor([2, 1, 0])
    close(encode(x[:, order], "none"), encode(x, "none")[:, order])
    close(encode(x[:, order], "none").mean(1), encode(x, "none").mean(1))
    moved = encode(x[:, order], "sinusoidal") - encode(x, "sinusoidal")[:, order]
    assert moved.abs().max() > 0.01
    assert moved.mean(1).abs().max() > 0.001


def test_sinusoids_shift_by_a_rotation() -> None:
    """The pair at i + delta is that at i, rotated by delta / 10000^(2j/d), whatever i is."""
    table = sinusoids(250, 64).double().unflatten(1, (-1, 2))  # (positions, pairs, 2)
    for delta in range(50):
        for pair in range(32):
            angle = delta / 10000 ** (2 * pair / 64)
            cos, sin = math.cos(angle), math.sin(angle)
            matrix = torch.tensor([[cos, sin], [-sin, cos]], dtype=torch.float64)
            shifted = table[:200, pair] @ matrix.T
            assert (shifted - table[delta : 200 + delta, pair]).abs().max() < 1e-5


def test_products_of_sinusoids_depend_on_the_distance_and_no_two_coincide() -> None:
    table = sinusoids(200, 64)
    products = table @ table.T
    for delta in (1, 7, 40):
        diagonal = products.diagonal(delta)
        close(diagonal, diagonal[:1].expand_as(diagonal), atol=1e-4)
    apart = torch.cdist(table.double(), table.double()) + 9 * torch.eye(200)
    assert apart.min() > 1.4


def test_relative_positions_by_hand() -> None:
    """One head of width 4, distance 1: vectors r(-1), r(0), r(1); scores q . r / 2."""
    position = RelativePosition(1, 4)
    with torch.no_grad():
        position.weight.copy_(torch.tensor([[2.0, 0, 0, 0], [0, 4.0, 0, 0], [0, 0, 6.0, 0]]))
    q = torch.tensor([[1.0, 10.0, 100.0, 0.0], [2.0, 20.0, 200.0, 0.0]]).view(1, 1, 2, 4)
    found = position.bias(q, torch.tensor([5, 6]), torch.tensor([[3, 4, 5, 6, 9]]))
    # query 5: keys at -2 and -1 share r(-1), then r(0), then +1 and +4 share r(1)
    first = [1.0, 1.0, 20.0, 300.0, 300.0]
    second = [2.0, 2.0, 2.0, 40.0, 600.0]
    close(found, torch.tensor([first, second]).view(1, 1, 2, 5))


def their_bucket(difference: int, bidirectional: bool, buckets: int, distance: int) -> int:
    """As the code of T5: relative_position_bucket(memory - query)."""
    found, n = 0, -difference
    if bidirectional:
        buckets //= 2
        found += buckets if n < 0 else 0
        n = abs(n)
    n, exact = max(n, 0), buckets // 2
    if n < exact:
        return found + n
    large = math.log(n / exact) / math.log(distance / exact) * (buckets - exact)
    return found + min(exact + int(large + 1e-9), buckets - 1)


@pytest.mark.parametrize(("buckets", "distance"), [(32, 128), (8, 20), (4, 3)])
@pytest.mark.parametrize("causal", [False, True])
def test_the_buckets_of_t5(buckets: int, distance: int, causal: bool) -> None:
    position = T5Position(buckets, distance, D, H, causal)
    span = range(-300, 301)
    theirs = [their_bucket(d, not causal, buckets, distance) for d in span]
    assert position.buckets(torch.tensor(span)).tolist() == theirs


def test_the_buckets_of_t5_by_hand() -> None:
    """32 buckets up to 128. Both directions: 16 each, of which 8 hold one distance, and 16, 32, 64
    are a quarter, a half and three quarters of the way from 8 to 128. Causal: 16 hold one."""
    both, causal = (T5Position(32, 128, D, H, one) for one in (False, True))
    differences = torch.tensor([0, -1, -7, -8, -16, -32, -64, -128, -900, 1, 7, 16, 900])
    assert both.buckets(differences).tolist() == [0, 1, 7, 8, 10, 12, 14, 15, 15, 17, 23, 26, 31]
    assert causal.buckets(torch.tensor([3, 0, -15, -16, -128])).tolist() == [0, 0, 15, 16, 31]


def test_the_bias_of_t5_is_its_table() -> None:
    position = T5Position(32, 128, D, H, False)
    q = torch.zeros(B, H, 2, 4)
    found = position.bias(q, torch.tensor([7, 8]), torch.tensor([[0, 8, 9]]))
    assert found.shape == (1, H, 2, 3)
    expected = position.weight[torch.tensor([[7, 17, 18], [8, 0, 17]])].permute(2, 0, 1)
    assert torch.equal(found[0], expected)


def test_rotary_positions_by_hand() -> None:
    """At position 1, head width 4: the first pair is rotated by 1, the second by 1/100."""
    x = torch.tensor([1.0, 0.0, 0.0, 2.0]).view(1, 1, 1, 4)
    q, k = RotaryPosition().rotate(x, 2 * x, 1)
    expected = [math.cos(1), math.sin(1), -2 * math.sin(0.01), 2 * math.cos(0.01)]
    close(q.flatten(), torch.tensor(expected))
    assert torch.equal(k, 2 * q)


def test_rotary_scores_depend_on_differences_only() -> None:
    q, k = torch.randn(B, H, T, D), torch.randn(B, H, T, D)
    scores = []
    for at in (0, 3, 400):
        one, other = RotaryPosition().rotate(q, k, at)
        scores.append(one @ other.transpose(-2, -1))
    close(scores[1], scores[0], atol=1e-4)
    close(scores[2], scores[0], atol=1e-4)
    assert (scores[0] - q @ k.transpose(-2, -1)).abs().max() > 0.1


def test_rotary_positions_reject_an_odd_head_width() -> None:
    settings = ["model.encoder.kind=transformer", "model.encoder.width=12"]
    settings += ["model.encoder.heads=4", "model.encoder.positions.kind=rotary"]
    with pytest.raises(UserError, match=r"(?s)model\.encoder.*positions rotary.*3 wide"):
        load_config(None, ["task.kind=classify", *settings])


def test_the_slopes_of_alibi() -> None:
    """8 heads: 1/2, 1/4, ..., 1/256. 16: the roots between them too. 12 heads: those of 8, then
    every second of 16."""
    eight = [1 / 2**i for i in range(1, 9)]
    assert AlibiPosition(8).slopes == pytest.approx(eight)
    sixteen = [2 ** (-i / 2) for i in range(1, 17)]
    assert AlibiPosition(16).slopes == pytest.approx(sixteen)
    assert AlibiPosition(12).slopes == pytest.approx(eight + sixteen[0:8:2])
    assert AlibiPosition(1).slopes == [1 / 256]


def test_alibi_by_hand() -> None:
    """Two heads: slopes 1/16 and 1/256; the same in both directions."""
    q = torch.zeros(1, 2, 1, 4)
    found = AlibiPosition(2).bias(q, torch.tensor([16]), torch.tensor([[0, 15, 16, 32]]))
    close(found[0, 0, 0], torch.tensor([-1.0, -1 / 16, 0.0, -1.0]))
    close(found[0, 1, 0], torch.tensor([-1 / 16, -1 / 256, 0.0, -1 / 16]))


def moved(steps: int = 1, size: float = 0.2) -> FloaterPosition:
    """A system that is not at rest."""
    torch.manual_seed(0)
    position = FloaterPosition(D, 16, steps)
    with torch.no_grad():
        for weight in position.parameters():
            weight += size * torch.randn(weight.shape)
    return position


def test_floater_starts_as_sinusoids() -> None:
    x = torch.randn(B, 300, D)
    assert torch.equal(Floater().build(D, H).embed(x, 7), SinusoidalPosition().embed(x, 7))
    assert torch.equal(Floater().build(D, H).embed(x, 7, layer=1), x)


def test_floater_by_hand() -> None:
    """With h(t, p) = c the position at t is c t, and with h = tanh(t) the integral log cosh t."""
    position = FloaterPosition(2, 1, 1)
    times = 0.1 * torch.arange(50)
    with torch.no_grad():
        position.drift.copy_(torch.tensor([1.0, -2.0]))
        close(position.table(50), times[:, None] * torch.tensor([1.0, -2.0]))
        position.drift.zero_()
        position.state.zero_()
        position.time.fill_(1.0)
        position.out.copy_(torch.tensor([[1.0, 3.0]]))
        close(position.table(50), times.cosh().log()[:, None] * torch.tensor([1.0, 3.0]))


def test_halving_the_step_of_floater_changes_little() -> None:
    with torch.no_grad():
        one, two = moved(1).table(100), moved(2).table(100)
    assert one.abs().max() > 1
    close(one, two, atol=1e-3)


def test_floater_keeps_no_positions_of_other_weights() -> None:
    """Without gradients the table is kept: until a weight changes, or more of it is needed."""
    position = moved()
    with torch.no_grad():
        first = position.table(10)
        assert position.table(10).data_ptr() == first.data_ptr()
        position.drift += 1
        assert not torch.allclose(position.table(10), first)
        close(position.table(300)[:10], position.table(10))
    with torch.inference_mode():
        kept = position.table(20)
    found = position.table(20)
    close(found, kept)
    assert found.requires_grad


def test_floater_needs_no_new_weights_for_longer_inputs() -> None:
    position, x = moved(), torch.zeros(1, 700, D)
    with torch.no_grad():
        whole = position.embed(x, 0)
        close(position.embed(x[:, :5], 600), whole[:, 600:605])
