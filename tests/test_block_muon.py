"""Muon by blocks: torch's Muon where a weight is one matrix, and each block on its own."""

import torch
from test_optimizers import tagger, transducer
from torch import nn

from regard.training.block_muon import Orthogonal, blocks, orthogonal
from regard.training.optimizers import BlockMuon


def test_muon_is_torch_s_muon_but_more_exact() -> None:
    """The same steps as in bfloat16, which has 8 bits: orthogonal, so a known size."""
    torch.manual_seed(0)
    one, other = (nn.Parameter(torch.zeros(12, 8)) for _ in range(2))
    ours = Orthogonal([{"params": [one]}], 1.0, 0.95, True, 5, {})
    settings = {"lr": 1.0, "weight_decay": 0.0, "adjust_lr_fn": "match_rms_adamw"}
    theirs = torch.optim.Muon([other], **settings)
    for _ in range(3):
        one.grad = torch.randn(12, 8)
        other.grad = one.grad.clone()
        before = one.detach().clone()
        ours.step()
        theirs.step()
        # 0.2 sqrt(12) times a matrix whose 8 singular values are near 1
        singular = torch.linalg.svdvals(one.detach() - before) / (0.2 * 12**0.5)
        assert singular.min() > 0.5 and singular.max() < 1.3
    torch.testing.assert_close(one, other, atol=0.1, rtol=0.05)


def test_muon_takes_gates_queries_keys_and_values_apart() -> None:
    for model, name, count in [
        (transducer(), "encoder.layers.0.attention.project.weight", 3),
        (transducer(), "decoder.layers.1.cross.project.weight", 2),
        (tagger(), "encoder.body.forwards.0.layers.0.weight_hh_l0", 4),
    ]:
        weight = model.get_parameter(name)
        assert blocks(model)[id(weight)] == count
        before, parts = weight.detach().clone(), weight.grad.chunk(count)
        for optimizer in BlockMuon(weight_decay=0.0).build(model, 1.0, {}):
            optimizer.step()
        for moved, part in zip((before - weight.detach()).chunk(count), parts, strict=True):
            alone = nn.Parameter(torch.zeros_like(part))
            alone.grad = part.clone()
            Orthogonal([{"params": [alone]}], 1.0, 0.95, True, 5, {}).step()
            torch.testing.assert_close(moved, -alone.detach(), atol=1e-5, rtol=1e-4)


def test_muon_decays_matrices() -> None:
    weight = nn.Parameter(torch.ones(3, 2))
    weight.grad = torch.zeros(3, 2)
    Orthogonal([{"params": [weight], "weight_decay": 0.5}], 0.1, 0.95, True, 5, {}).step()
    torch.testing.assert_close(weight.detach(), torch.full((3, 2), 0.95))


def test_orthogonal_matrices_do_not_depend_on_the_threads() -> None:
    torch.manual_seed(0)
    for shape in ((5, 4, 7), (1, 9, 3)):
        x = torch.randn(shape)
        before = torch.get_num_threads()
        found = []
        for threads in (1, 2, 3):
            torch.set_num_threads(threads)
            found.append(orthogonal(x, 5))
        torch.set_num_threads(before)
        torch.testing.assert_close(found[1:], [found[0]] * 2)
        assert torch.linalg.svdvals(found[0]).sub(1).abs().max() < 0.5
        assert (found[0] * x).sum((1, 2)).min() > 0  # it points where the matrix points
