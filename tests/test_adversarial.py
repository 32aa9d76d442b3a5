"""Adversarial training: worse inputs of a given norm, found by the gradient."""

import pytest
import torch
from torch import Tensor

from regard.config.configs import ClassifyConfig
from regard.config.defaults import fill_defaults
from regard.core.data_stats import DataStats
from regard.data.tensors.padded import Batch, Padded, pad
from regard.inputs.input import InputShape
from regard.models.encoder_model import EncoderModel
from regard.nn.perturbation import perturbing
from regard.objectives.label_losses import Labels

ROWS = [[5, 6, 7], [6, 5], [8, 8, 5, 6]]


def model_of(kind: str) -> EncoderModel:
    torch.manual_seed(0)
    sizes = {"kind": kind, "width": 8, "layers": 1, "dropout": 0.0}
    options = ClassifyConfig.model_validate({"model": {"encoder": sizes, "pooling": "mean"}})
    filled = fill_defaults(options, DataStats(4, 40, 3, False))[0].model
    found: EncoderModel = filled.build(InputShape("text", 9), 3)
    return found.train()


def batch_of(*rows: int) -> Batch:
    labels = torch.tensor([0, 2, 1])
    return Batch(pad([ROWS[row] for row in rows]), labels=labels[list(rows)])


def test_a_linear_model_by_hand() -> None:
    """The shift of each row is its gradient, scaled to the norm; padding does not move."""
    vectors = Padded(torch.tensor([[[1.0, 2.0]], [[3.0, -1.0]]]), torch.ones(2, 1).bool())
    with perturbing() as perturbation:
        loss = (perturbation.apply(vectors).data * torch.tensor([3.0, 4.0])).sum()
        perturbation.increase(loss, 10.0)
        moved = perturbation.apply(vectors).data
    torch.testing.assert_close(moved, vectors.data + torch.tensor([6.0, 8.0]))


@pytest.mark.parametrize("kind", ["window", "recurrent", "transformer"])
def test_perturbed_inputs_are_worse_than_random_ones(kind: str) -> None:
    model, batch, norm = model_of(kind), batch_of(0, 1, 2), 0.1
    clean = Labels(adversarial=0.0)(model, batch).sum
    worse = Labels(adversarial=norm)(model, batch).parts["adversarial"]
    assert worse > clean
    for seed in range(20):
        shift = torch.randn(3, 4, 8, generator=torch.Generator().manual_seed(seed))
        with perturbing() as perturbation:
            perturbation.shift = norm * shift / shift.flatten(1).norm(dim=1)[:, None, None]
            assert Labels(adversarial=0.0)(model, batch).sum < worse


@pytest.mark.parametrize("kind", ["window", "recurrent", "transformer"])
def test_the_loss_is_the_sum_over_rows(kind: str) -> None:
    model, objective = model_of(kind), Labels(adversarial=0.5)
    together = objective(model, batch_of(0, 1, 2))
    alone = [objective(model, batch_of(row)) for row in range(3)]
    torch.testing.assert_close(together.sum, sum((one.sum for one in alone), torch.zeros(())))
    assert together.count == 3
    clean = Labels(adversarial=0.0)(model, batch_of(0, 1, 2)).sum
    torch.testing.assert_close(together.sum, (clean + together.parts["adversarial"]) / 2)


def test_only_training_perturbs() -> None:
    model, batch = model_of("window"), batch_of(0, 1, 2)
    plain: Tensor = Labels(adversarial=0.0)(model, batch).sum
    model.eval()
    found = Labels(adversarial=0.5)(model, batch)
    assert not found.parts
    torch.testing.assert_close(found.sum, plain)


def test_it_is_the_default_for_few_texts_of_words() -> None:
    def default(stats: DataStats, encoder: str = "auto") -> float | None:
        sections = {"training": {"steps": 1}, "model": {"encoder": {"kind": encoder}}}
        config = ClassifyConfig.model_validate(sections)
        return fill_defaults(config, stats)[0].objective.adversarial  # type: ignore[no-any-return]

    texts = DataStats(5_000, 60_000, 6, True, labels=True)
    assert default(texts) == default(texts, "window") == 0.5
    assert default(texts, "recurrent") == 0.0
    assert default(DataStats(500_000, 6_000_000, 6, True, labels=True)) == 0.0
    assert default(DataStats(5_000, 60_000, 6, False, labels=True)) == 0.0
    vectors = DataStats(5_000, 5_000, 6, True, labels=True, vectors=4, source="vectors")
    assert default(vectors) == 0.0


def test_epochs_do_not_depend_on_which_settings_are_given() -> None:
    """Also if everything but the objective is known at once."""
    texts = DataStats(5_000, 63_000, 6, True, labels=True)
    sized = {"encoder": {"kind": "window", "width": 8, "layers": 1}, "pooling": "max"}
    training = {"budget": 60, "optimizer": {"kind": "adamw"}, "batch_tokens": 512}
    for sections in ({}, {"model": sized, "training": training | {"precision": "float32"}}):
        config = ClassifyConfig.model_validate({"training": {"budget": 60}} | sections)
        assert fill_defaults(config, texts)[0].training.epochs == 12


def test_power_norm_has_the_same_statistics_of_gradients() -> None:
    """They are as large as those of an update without perturbed inputs, not `count` times."""
    torch.manual_seed(0)
    sizes = {"kind": "transformer", "width": 8, "heads": 2, "layers": 1, "feedforward_width": 8}
    sections = {"encoder": sizes | {"norm": {"kind": "power"}, "dropout": 0.0}, "pooling": "mean"}
    config = ClassifyConfig.model_validate({"model": sections})
    options = fill_defaults(config, DataStats(4, 40, 3, False))[0].model
    sums = []
    for adversarial in (0.0, 1e-6):
        torch.manual_seed(0)
        model = options.build(InputShape("text", 9), 3).train()
        loss = Labels(adversarial=adversarial)(model, batch_of(*range(3)))
        (loss.sum / 3).backward()
        sums.append(sum(float(b.abs().sum()) for n, b in model.named_buffers() if "pull" in n))
    assert 0 < sums[1] < 2.5 * sums[0]
