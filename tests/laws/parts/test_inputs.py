"""Laws of inputs and frontends: rows do not see each other, nor what stands in the padding."""

from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from regard.core.errors import UserError
from regard.core.options import kinds_of
from regard.data.tensors.padded import Edges, Padded, SharedRows
from regard.inputs import Frontends, Inputs, check_frontend, default_frontend, fit_input
from regard.inputs.frontend import Frontend, FrontendOptions
from regard.inputs.input import Input, InputShape
from regard.inputs.text import Text
from regard.models.contracts import EncoderOptions, build_frontend
from regard.models.encoders import SourceModelOptions
from regard.models.recurrent import RecurrentEncoderOptions
from regard.models.transformer_options import TransformerEncoderOptions
from regard.models.window import LinearEncoderOptions

D = 8
SIZES = {"width": D, "layers": 1, "dropout": 0.0}
INPUTS: Any = list(kinds_of(Inputs).values())
FRONTENDS: Any = list(kinds_of(Frontends).values())
ENCODERS: list[EncoderOptions] = [
    TransformerEncoderOptions(heads=2, feedforward_width=8, **SIZES),
    LinearEncoderOptions(width=D, dropout=0.0),  # takes vectors as they are
]

each_input = pytest.mark.parametrize("kind", INPUTS, ids=[one().kind for one in INPUTS])
each_frontend = pytest.mark.parametrize("kind", FRONTENDS, ids=[one().kind for one in FRONTENDS])
each_encoder = pytest.mark.parametrize("encoder", ENCODERS, ids=[one.kind for one in ENCODERS])


def fitted(kind: Any) -> Input:
    return fit_input(Text(), kind.examples, "task.source", [])[0]


def build(kind: Any, encoder: Any, shape: InputShape) -> Frontend:
    """The frontend of an encoder, also of one that could not use all it gives."""
    made: Frontend = kind().build(shape, encoder.width, encoder.scale, 0.0, encoder.direct)
    return made


def reading(kind: Any) -> Any:
    """The input that a frontend reads."""
    return next(one for one in INPUTS if one().kind == kind.reads)


def same(one: Padded, other: Padded) -> None:
    """Equal, but for padding at the end and for unused shared rows."""
    length = min(one.mask.shape[1], other.mask.shape[1])
    assert torch.equal(one.mask[:, :length], other.mask[:, :length])
    assert not one.mask[:, length:].any() and not other.mask[:, length:].any()
    real = one.mask[:, :length]
    assert torch.equal(meant(one)[:, :length][real], meant(other)[:, :length][real])


def meant(source: Padded) -> Tensor:
    """The data with the shared rows themselves instead of their indices."""
    if source.shared is None:
        return source.data
    spelled = F.pad(source.shared.data * source.shared.mask, (0, 20))[:, :20]
    return torch.cat([source.data[..., :-1], spelled[source.data[..., -1]]], -1)


def stuffed(source: Padded) -> Padded:
    """The same with two more positions, and ones wherever there is padding."""
    mask = F.pad(source.mask, (0, 2))
    data = F.pad(source.data, (0, 0) * (source.data.dim() - 2) + (0, 2))
    hidden = ~mask.view(*mask.shape, *[1] * (data.dim() - 2))
    shared = source.shared
    if shared is not None:
        letters, real = (F.pad(part, (0, 3)) for part in shared)
        shared = SharedRows(letters.masked_fill(~real, 1), real)
    return source._replace(data=data.masked_fill(hidden, 1), mask=mask, shared=shared)


@each_input
def test_it_reads_its_own_examples_and_no_others(kind: Any) -> None:
    assert len(set(map(repr, kind.examples))) > 1
    for source in kind.examples:
        assert [one for one in INPUTS if one.accepts(source)] == [kind]
    assert fitted(kind).kind == kind().kind == fitted(kind).shape.kind


def test_what_no_input_reads_is_an_error() -> None:
    with pytest.raises(
        UserError, match=r"task\.source: no input kind supports .*available: text as 'a text'"
    ):
        fit_input(Text(), [object()], "task.source", [])


@each_input
def test_lengths_and_names_are_those_of_the_positions(kind: Any) -> None:
    made = fitted(kind)
    rows = made.encode(kind.examples)
    assert rows.lengths.tolist() == rows.all().mask.sum(1).tolist() and len(rows) == 3
    for number, source in enumerate(kind.examples):
        assert len(rows.row(number)) == rows.lengths[number]
        if made.sequential:
            assert len(made.names(source)) == rows.lengths[number]
        assert made.unknown(source) == ()
        assert not made.written or made.parse(made.text(source)) == source


@each_input
def test_a_batch_is_its_rows(kind: Any) -> None:
    made = fitted(kind)
    whole, rows = made.batch(kind.examples), made.encode(kind.examples)
    for some in ([2, 0], [1], [0, 1, 2]):
        picked = [kind.examples[place] for place in some]
        same(rows.pad(np.array(some)), made.batch(picked))
        same(rows.take(np.array(some)).all(), made.batch(picked))
    for part in (slice(0, 1), slice(1, 3)):
        same(whole.take(part), made.batch(kind.examples[part]))
    same(made.batch(kind.examples[1:2]).copies(3), made.batch([kind.examples[1]] * 3))


@each_input
def test_a_loaded_input_reads_the_same(kind: Any, tmp_path: Path) -> None:
    made, options = fit_input(kind(), kind.examples, "task.source", [])
    made.save(tmp_path)
    again = type(options).model_validate(options.model_dump()).load(tmp_path)  # type: ignore[attr-defined]
    assert again.content() == made.content() and again.shape == made.shape
    same(again.batch(kind.examples), made.batch(kind.examples))


@each_frontend
@each_encoder
@torch.no_grad()
def test_rows_and_padding_are_invisible_to_each_other(kind: Any, encoder: Any) -> None:
    made = fitted(reading(kind))
    torch.manual_seed(0)
    frontend = build(kind, encoder, made.shape).eval()
    sources = reading(kind).examples
    found = frontend(made.batch(sources))
    assert found.data.shape[-1] == frontend.width and found.shared is None
    assert found.data.is_floating_point()
    for row in range(len(sources)):
        alone = frontend(made.batch(sources[row : row + 1]))
        if found.data.dim() > 3:  # a grid
            torch.testing.assert_close(found.data[row], alone.data[0])
            continue
        mask = found.mask[row]
        torch.testing.assert_close(found.data[row][mask], alone.data[0][alone.mask[0]])
    if any(made.shape.grid):
        return  # images have no padding
    padded = frontend(stuffed(made.batch(sources)))
    torch.testing.assert_close(padded.data[padded.mask], found.data[found.mask])


@each_frontend
def test_its_gradients_reach_all_its_weights(kind: Any) -> None:
    made = fitted(reading(kind))
    frontend = build(kind, ENCODERS[0], made.shape)
    if not list(frontend.parameters()):
        return
    found = frontend(made.batch(reading(kind).examples))
    found.data[found.mask].square().sum().backward()
    assert all(weight.grad is not None for weight in frontend.parameters())


@each_input
def test_a_frontend_of_another_input_is_an_error(kind: Any) -> None:
    """By name, and with the frontend that would read it."""
    read = kind().kind
    for frontend in FRONTENDS:
        if frontend.reads == read:
            check_frontend(frontend(), read)
            continue
        wanted = default_frontend(read).kind
        said = f"kind={frontend().kind}: reads .*, found {read}\nhelp: use {wanted}"
        with pytest.raises(UserError, match=said):
            check_frontend(frontend(), read)


class Linked(FrontendOptions):
    """A frontend that gives a bias and edges."""

    reads: ClassVar[str] = "vectors"
    carries: ClassVar[frozenset[str]] = frozenset({"bias", "edges"})
    kind: Literal["linked"] = "linked"

    def build(
        self, shape: InputShape, width: int, scale: float, dropout: float, direct: bool
    ) -> Frontend:
        raise AssertionError("must be an error")


@pytest.mark.parametrize(
    ("encoder", "lost"),
    [
        (ENCODERS[0], "edges"),
        (RecurrentEncoderOptions(**SIZES), "bias and edges"),
        (ENCODERS[1], "bias and edges"),
    ],
    ids=["transformer", "recurrent", "linear"],
)
def test_what_an_encoder_cannot_use_is_an_error(encoder: EncoderOptions, lost: str) -> None:
    said = rf"model\.encoder\.kind={encoder.kind} does not support the {lost} of .*kind=linked"
    with pytest.raises(UserError, match=said):
        build_frontend(Linked(), encoder, InputShape("vectors", 3))
    read = SourceModelOptions.model_construct(frontend=Linked(), encoder=encoder)
    with pytest.raises(ValueError, match=said):  # and before that when the settings are read
        read._check_frontend()


def test_edges_and_bias_go_with_their_rows() -> None:
    """Row by row, as a loop over all edges finds them."""
    torch.manual_seed(0)
    ends = torch.tensor([[0, 2, 1, 0, 2, 2], [0, 1, 1, 2, 0, 2], [1, 0, 1, 0, 2, 2]])
    graph = Padded(
        torch.randn(3, 4, 2),
        torch.ones(3, 4, dtype=torch.bool),
        bias=torch.randn(3, 1, 4, 4),
        edges=Edges(ends, torch.arange(6)),
        summary=torch.randn(3, 2),
    )
    for part in (slice(0, 2), slice(2, 3), slice(1, 3)):
        taken = graph.take(part)
        assert torch.equal(taken.bias, graph.bias[part])
        assert torch.equal(taken.summary, graph.summary[part])
        expected = [
            (row - part.start, a, b, kind)
            for (row, a, b), kind in zip(ends.t().tolist(), range(6), strict=True)
            if part.start <= row < part.stop
        ]
        assert listed(taken.edges) == expected
    copied = graph.take(slice(0, 1)).copies(2)
    assert listed(copied.edges) == [(0, 0, 1, 0), (0, 2, 0, 3), (1, 0, 1, 0), (1, 2, 0, 3)]
    assert copied.bias.shape == (2, 1, 4, 4) and torch.equal(copied.bias[0], copied.bias[1])


def listed(edges: Edges | None) -> list[tuple[int, ...]]:
    assert edges is not None
    return [
        (*ends, kind)
        for ends, kind in zip(edges.ends.t().tolist(), edges.kind.tolist(), strict=True)
    ]
