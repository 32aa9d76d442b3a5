"""Language models without a source give the numbers of torch.nn, and of plain loops.

B rows, T length, D width, H heads, V vocabulary.
"""

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from regard.data.tensors.padded import Batch, Padded
from regard.data.tensors.special import BOS, EOS
from regard.inputs.input import InputShape
from regard.models.causal import CausalOptions
from regard.nn.residual import Residual

B, T, D, H, V = 3, 6, 16, 4, 11
SIZES = {"layers": 2, "width": D, "dropout": 0.0}


def close(one: Tensor, other: Tensor) -> None:
    torch.testing.assert_close(one, other, atol=5e-6, rtol=1e-5)


def noisy(module: nn.Module) -> nn.Module:
    """The module with all weights, biases and norms moved, so that none can be mistaken."""
    with torch.no_grad():
        for parameter in module.parameters():
            parameter += 0.1 * torch.randn(parameter.shape)
    return module.eval()


def build(tie_embeddings: bool = True, **decoder: object) -> nn.Module:
    torch.manual_seed(0)
    tree = {"decoder": SIZES | decoder, "tie_embeddings": tie_embeddings}
    return noisy(CausalOptions.model_validate(tree).build(InputShape("text", V)))


def put(theirs: nn.Module, ours: nn.Module) -> None:
    """Copies weight and bias."""
    with torch.no_grad():
        theirs.weight.copy_(ours.weight)
        theirs.bias.copy_(ours.bias)


def copied(ours: nn.Module, place: str, activation: str) -> nn.TransformerEncoder:
    """torch's encoder with the weights of our decoder."""
    layer = nn.TransformerEncoderLayer(
        D, H, 24, 0.0, getattr(F, activation), batch_first=True, norm_first=place == "pre"
    )
    final = nn.LayerNorm(D) if place == "pre" else None
    theirs = nn.TransformerEncoder(layer, 2, final, enable_nested_tensor=False)
    for there, here in zip(theirs.layers, ours.layers, strict=True):
        with torch.no_grad():
            there.self_attn.in_proj_weight.copy_(here.attention.project.weight)
            there.self_attn.in_proj_bias.copy_(here.attention.project.bias)
        put(there.self_attn.out_proj, here.attention.join)
        put(there.linear1, here.feedforward.widen)
        put(there.linear2, here.feedforward.narrow)
        residuals = [part for part in here.children() if isinstance(part, Residual)]
        for number, residual in enumerate(residuals, 1):
            put(getattr(there, f"norm{number}"), residual.norm)
    if final is not None:
        put(theirs.norm, ours.norm)
    return theirs.train()  # not their fused path


@pytest.mark.parametrize("activation", ["relu", "gelu", "silu"])
@pytest.mark.parametrize("place", ["pre", "post"])
def test_transformer(place: str, activation: str) -> None:
    """An encoder that cannot see the future."""
    sizes = {"heads": H, "feedforward_width": 24, "norm_position": place, "activation": activation}
    ours = build(kind="transformer", positions={"kind": "none"}, **sizes)
    theirs = copied(ours.decoder, place, activation)
    future = torch.ones(T, T, dtype=torch.bool).triu(1)

    x = torch.randn(B, T, D)
    expected = theirs(x, mask=future)
    out, _ = ours.decoder(x, ours.decoder.start(None))
    close(out, expected)

    tokens = torch.randint(5, V, (B, T))
    inputs = F.pad(tokens[:, :-1], (1, 0), value=BOS)
    weight = ours.target.weight
    logits = theirs(weight[inputs] * D**0.5, mask=future) @ weight.T
    found, carry, *_ = ours(Batch(target=Padded(tokens, torch.ones(B, T, dtype=torch.bool))))
    close(found, logits.flatten(0, 1))
    assert carry is None


@pytest.mark.parametrize("cell", ["rnn", "gru", "lstm"])
def test_recurrent(cell: str) -> None:
    """The first layer is torch's; the second is torch's too, and what went in is added."""
    ours = build(tie_embeddings=False, kind="recurrent", cell=cell)
    first, second = ours.decoder.body.layers
    assert type(first) is {"rnn": nn.RNN, "gru": nn.GRU, "lstm": nn.LSTM}[cell]
    tokens = torch.randint(5, V, (B, T))
    h, _ = first(ours.target.weight[tokens] * D**0.5)
    top, _ = second(h)
    logits, _ = ours.step(tokens, ours.start(B))
    close(logits, (h + top) @ ours.head.weight.T)


@pytest.mark.parametrize("window", [0, 1, 3, 9])
def test_window(window: int) -> None:
    """A plain loop: at each place the last vectors, zeros before the first, through an MLP."""
    ours = build(kind="window", window=window)
    tokens = torch.randint(5, V, (B, T))
    logits, _ = ours.step(tokens, ours.start(B))
    for row in range(B):
        for t in range(T):
            places = range(t - window, t + 1)
            seen = [ours.target(tokens[row, i]) if i >= 0 else torch.zeros(D) for i in places]
            h = torch.cat(seen)
            for layer in ours.decoder.mlp.layers:
                h = torch.relu(layer.weight @ h + layer.bias)
            close(logits[row, t], ours.target.weight @ h)


def test_the_end_of_a_document_is_the_start_of_the_next() -> None:
    ours = build(kind="recurrent")
    ends, begins = (torch.tensor([[6, token, 7]]) for token in (EOS, BOS))
    one, two = (ours.step(tokens, ours.start(1))[0] for tokens in (ends, begins))
    assert torch.equal(one, two)
