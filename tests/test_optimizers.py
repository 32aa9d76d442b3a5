"""Optimizers: which weights they move, how, and their errors."""

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from regard.config.defaults import fill_defaults
from regard.config.load import check_config
from regard.core.data_stats import DataStats
from regard.core.errors import UserError
from regard.inputs.frontend import Embedding
from regard.inputs.input import InputShape
from regard.models.encoder_decoder import EncoderDecoderOptions
from regard.models.encoder_model import PooledOptions, TaggerOptions
from regard.optim.muon import PreciseMuon
from regard.optim.optimizers import AdamW, Descent, Muon, Optimizer, Sgd

KINDS = [
    kind
    for kind in Optimizer.__origin__.__args__
    if kind.__name__ not in ("AutoOptimizer", "ClosedForm")
]
SIZES = {"layers": 2, "width": 8, "dropout": 0.0}
TRANSFORMER = {"kind": "transformer", "heads": 2, "feedforward_width": 12, **SIZES}
TORCH = {
    "sgd": torch.optim.SGD,
    "momentum": torch.optim.SGD,
    "nesterov": torch.optim.SGD,
    "adagrad": torch.optim.Adagrad,
    "rmsprop": torch.optim.RMSprop,
    "adam": torch.optim.Adam,
    "adamw": torch.optim.AdamW,
    "adafactor": torch.optim.Adafactor,
    "muon": torch.optim.Muon,
}


def transducer() -> nn.Module:
    """A small Transformer, seeded, with a gradient for each weight."""
    torch.manual_seed(1)
    options = EncoderDecoderOptions.model_validate({"encoder": TRANSFORMER, "decoder": TRANSFORMER})
    return with_gradients(options.build(InputShape("text", 9), 11, shared=False))


def tagger() -> nn.Module:
    torch.manual_seed(1)
    tree = {"encoder": {"kind": "recurrent", **SIZES}, "head": "crf"}
    tree["frontend"] = {"kind": "words", "width": 6, "char_width": 8}
    return with_gradients(TaggerOptions.model_validate(tree).build(InputShape("words", 9, 11), 3))


def with_gradients(model: nn.Module) -> nn.Module:
    for weight in model.parameters():
        weight.grad = torch.randn_like(weight)
    return model


def owners(model: nn.Module, built: list[torch.optim.Optimizer]) -> dict[str, list[tuple]]:
    """By the name of a weight: the optimizers and groups it is in."""
    return {
        name: [
            (optimizer, group)
            for optimizer in built
            for group in optimizer.param_groups
            if any(weight is member for member in group["params"])
        ]
        for name, weight in model.named_parameters()
    }


@pytest.mark.parametrize("build", [transducer, tagger])
@pytest.mark.parametrize("kind", KINDS)
def test_every_weight_is_moved_by_one_optimiser(kind: type[Descent], build: Any) -> None:
    model = build()
    before = {name: weight.clone() for name, weight in model.named_parameters()}
    built = kind().build(model, 0.1, {})
    assert type(built[0]).__mro__[:2].count(TORCH[kind().kind])
    assert {len(found) for found in owners(model, built).values()} == {1}
    for optimizer in built:
        optimizer.step()
    still = [n for n, weight in model.named_parameters() if torch.equal(weight, before[n])]
    assert still == []


@pytest.mark.parametrize("build", [transducer, tagger])
@pytest.mark.parametrize("kind", KINDS)
def test_norms_biases_and_embeddings_never_decay(kind: type[Descent], build: Any) -> None:
    model = build()
    built = kind(weight_decay=0.3).build(model, 0.1, {})
    embeddings = [m.weight for m in model.modules() if isinstance(m, Embedding)]
    assert embeddings
    for name, ((_, group),) in owners(model, built).items():
        weight = model.get_parameter(name)
        spared = weight.dim() < 2 or any(weight is one for one in embeddings)
        assert group["weight_decay"] == (0 if spared else 0.3), name


@pytest.mark.parametrize("kind", KINDS)
def test_each_weight_has_its_share_of_the_rate(kind: type[Descent]) -> None:
    """Those that were loaded learn slower; frozen ones are in no group."""
    model = transducer()
    slow, frozen = "encoder.layers.0.attention.join.weight", "encoder.norm.weight"
    model.get_parameter(frozen).requires_grad_(False)
    found = owners(model, kind().build(model, 0.1, {slow: 0.25}))
    assert found.pop(frozen) == []
    shares = {name: group["factor"] for name, ((_, group),) in found.items()}
    faster = 10.0 if kind is Muon else 1.0
    assert shares.pop(slow) == 0.25 * faster and set(shares.values()) == {1.0, faster}


@pytest.mark.parametrize("kind", KINDS)
def test_the_state_is_tensors(kind: type[Descent]) -> None:
    """So a checkpoint can hold it; nothing is None."""
    model = transducer()
    for optimizer in kind().build(model, 0.1, {}):
        optimizer.step()
        for values in optimizer.state.values():
            assert all(isinstance(value, Tensor) for value in values.values()), values


@pytest.mark.parametrize("kind", KINDS)
def test_a_weight_may_have_its_first_gradient_later(kind: type[Descent]) -> None:
    model = transducer()
    late = next(model.parameters())
    gradient, late.grad = late.grad, None
    built = kind().build(model, 0.01, {})
    for optimizer in built:
        optimizer.step()
    before, late.grad = late.detach().clone(), gradient
    for optimizer in built:
        optimizer.step()
    assert not torch.equal(before, late)


def test_plain_descent_by_hand() -> None:
    model = nn.Linear(1, 1, bias=False)
    for options, after in [
        (Sgd(), [0.9, 0.8]),  # a gradient of 1 at a rate of 0.1
        (Sgd(momentum=0.5), [0.9, 0.75]),  # the second step is 1.5 gradients long
        (Sgd(momentum=0.5, nesterov=True), [0.85, 0.675]),  # 1.5, then 1 + 0.75
    ]:
        nn.init.ones_(model.weight)
        (optimizer,) = options.build(model, 0.1, {})
        seen = []
        for _ in range(2):
            model.weight.grad = torch.ones(1, 1)
            optimizer.step()
            seen.append(model.weight.item())
        assert seen == pytest.approx(after)


def test_muon_takes_hidden_matrices_only() -> None:
    for model, no_hidden in [(transducer(), ("frontend.", "target.")), (tagger(), ("head.",))]:
        for name, ((optimizer, group),) in owners(model, Muon().build(model, 0.1, {})).items():
            weight = model.get_parameter(name)
            embedding = name.endswith(("tokens.weight", "words.weight", "chars.weight"))
            hidden = weight.dim() == 2 and not embedding and not name.startswith(no_hidden)
            assert isinstance(optimizer, torch.optim.Muon) == hidden, name
            assert group["factor"] == (10.0 if hidden else 1.0)


def test_muon_on_a_cpu_is_torch_s_muon_but_more_exact() -> None:
    """The same steps as in bfloat16, which has 8 bits: orthogonal, so a known size."""
    torch.manual_seed(0)
    one, other = (nn.Parameter(torch.zeros(12, 8)) for _ in range(2))
    one.grad = torch.randn(12, 8)
    other.grad = one.grad.clone()
    settings = {"lr": 1.0, "weight_decay": 0.0}
    PreciseMuon([one], **settings).step()
    torch.optim.Muon([other], **settings).step()
    torch.testing.assert_close(one, other, atol=0.05, rtol=0.05)
    assert not torch.equal(one, other)
    # sqrt(12 / 8) times a matrix whose 8 singular values are near 1
    singular = torch.linalg.svdvals(one.detach()) / (12 / 8) ** 0.5
    assert singular.min() > 0.5 and singular.max() < 1.3


def test_muon_without_hidden_matrices_is_an_error() -> None:
    tree = {"encoder": {"kind": "linear", "width": 8, "dropout": 0.0}, "pooling": "mean"}
    tree["frontend"] = {"kind": "tokens"}
    model = PooledOptions.model_validate(tree).build(InputShape("text", 9), 2)
    with pytest.raises(UserError, match=r"(?s)optimizer\.kind=muon: this model has no.*adamw"):
        Muon().build(model, 0.1, {})


def test_muon_with_an_old_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(torch.optim, "Muon")
    with pytest.raises(UserError, match=r"kind=muon: expected torch 2\.9"):
        Muon().build(transducer(), 0.1, {})


def filled(optimizer: dict, **training: Any) -> Any:
    config = check_config({"training": {"optimizer": optimizer, **training}}, "settings")
    return fill_defaults(config, DataStats(examples=50, tokens=600, outputs=9, subwords=False))[
        0
    ].training


@pytest.mark.parametrize("kind", [kind.model_fields["kind"].default for kind in KINDS])
def test_the_rate_is_chosen_for_the_optimiser(kind: str) -> None:
    training = filled({"kind": kind})
    adamw = filled({"kind": "adamw"}).lr
    assert training.lr == pytest.approx(training.optimizer.default_lr(adamw))
    assert filled({"kind": kind}, lr=0.123).lr == 0.123  # what the user says stays


def test_more_momentum_smaller_steps() -> None:
    """A push lives on for 1 / (1 - momentum) steps, so each must be that much smaller."""
    assert filled({"kind": "sgd"}).lr == pytest.approx(
        2 * filled({"kind": "sgd", "momentum": 0.5}).lr
    )
    assert filled({"kind": "momentum"}).lr == pytest.approx(filled({"kind": "sgd"}).lr / 10)


@pytest.mark.parametrize("settings", [{"weight_decay": 0.2}, {"betas": [0.8, 0.9]}, {"eps": 1e-6}])
def test_settings_without_a_kind_are_those_of_adamw(settings: dict) -> None:
    config = check_config({"training": {"optimizer": settings}}, "settings")
    assert isinstance(config.training.optimizer, AdamW)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"kind": "sgd", "nesterov": True}, "nesterov requires momentum > 0"),
        ({"kind": "nesterov", "nesterov": False}, "nesterov"),
        ({"kind": "momentum", "momentum": 0}, r"momentum: Input should be greater than 0"),
        ({"kind": "adagrd"}, "did you mean adagrad?"),
        ({"momentum": 0.9}, "only for kind=sgd and kind=momentum"),
        ({"kind": "muon", "iterations": 0}, "iterations"),
    ],
)
def test_misuse(settings: dict, message: str) -> None:
    with pytest.raises(UserError, match=message):
        check_config({"training": {"optimizer": settings}}, "settings")
