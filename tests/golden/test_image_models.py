"""Image models of the literature: their published sizes, counted without memory for weights."""

import pytest
import torch
from torch import nn
from torch.utils.flop_counter import FlopCounterMode

from regard.config.load import load_config
from regard.data.tensors.padded import Batch, Padded
from regard.inputs.image_frontends import default_patch
from regard.nn.convolution import BlockStack, MapShape, default_blocks, network_layers
from regard.views.description.describe_model import describe, on_meta
from regard.views.description.parts import total

# parameters of torchvision's models, and of LeNet-5 as in textbooks
PUBLISHED = {
    "lenet": 61_706,
    "alexnet-full": 61_100_840,
    "vgg-16": 138_357_544,
    "googlenet-full": 6_998_552,  # without the two extra outputs: 7.0 million
    "resnet-18": 11_689_512,
    "resnet-50": 25_557_032,
    "vit-b16": 86_567_656,
}
# billions of multiply-adds of an image, rounded, as published
OPERATIONS = {"alexnet-full": 0.7, "vgg-16": 15.5, "resnet-18": 1.8, "resnet-50": 4.1}
FIRST_MAPS = {
    "alexnet-full": "55 x 55 x 64",
    "vgg-16": "224 x 224 x 64",
    "resnet-18": "112 x 112 x 64",
}
SMALL = ("lenet", "alexnet", "vgg", "googlenet", "resnet", "vit")


@pytest.mark.parametrize("recipe", PUBLISHED)
def test_published_parameters(recipe: str) -> None:
    assert total(describe(recipe, None, None).parts, "parameters") == PUBLISHED[recipe]


@pytest.mark.parametrize("recipe", OPERATIONS)
def test_published_operations(recipe: str) -> None:
    found = total(describe(recipe, None, None).parts, "operations") / 1e9
    assert round(found, 1) == OPERATIONS[recipe]


@pytest.mark.parametrize("recipe", FIRST_MAPS)
def test_first_maps_of_the_papers(recipe: str) -> None:
    assert describe(recipe, None, None).parts[0].output == FIRST_MAPS[recipe]


@pytest.mark.parametrize("recipe", SMALL)
def test_small_versions_read_small_images(recipe: str) -> None:
    """Of 28 x 28 and of 32 x 32 pixels, with a thousandth of the published parameters or so."""
    for sizes in ([28, 28, 1], [32, 32, 3]):
        assert total(describe(recipe, sizes, 10).parts, "parameters") < 500_000


@pytest.mark.parametrize("recipe", ["lenet", "alexnet", "vgg", "googlenet", "resnet"])
def test_operations_are_those_that_torch_counts(recipe: str) -> None:
    shape = MapShape(3, 32, 32)
    blocks = load_config(recipe).model.encoder.blocks
    stack = on_meta(lambda: BlockStack(blocks, shape))
    with torch.device("meta"), FlopCounterMode(display=False) as counter:
        out = stack(torch.empty(1, 32, 32, 3))
    layers = network_layers(blocks, shape)
    assert sum(layer.operations for layer in layers) * 2 == counter.get_total_flops()
    assert tuple(out.shape[1:]) == (*layers[-1].after.shape[1:], layers[-1].after.shape[0])
    assert sum(layer.parameters for layer in layers) == sum(p.numel() for p in stack.parameters())


def test_a_deeper_residual_network_has_the_depth_of_the_paper() -> None:
    """6n + 2 layers with weights (He et al. 2016, 4.2): n = 3 is ResNet-20."""
    settings = ["model.encoder.blocks=[{kind: conv, width: 16, norm: batch}, "]
    stage = "{{kind: residual, width: {}, stride: {}, repeat: 3}}"
    settings[0] += ", ".join(stage.format(*one) for one in ((16, 1), (32, 2), (64, 2))) + "]"
    encoder = load_config("resnet", settings).model.encoder
    layers = network_layers(encoder.blocks, MapShape(3, 32, 32))
    weighted = [one for one in layers if one.parameters and "shortcut" not in one.name]
    assert len(weighted) + 1 == 20  # and the output layer
    assert 268_000 < sum(layer.parameters for layer in layers) + 650 < 275_000  # 0.27 M


def test_patches_are_a_convolution() -> None:
    """With kernel = stride = side of a patch. 28 x 28 in patches of 4: 49 and the class token."""
    torch.manual_seed(0)
    options = load_config("vit").model
    shape = __import__("regard.inputs.input", fromlist=["InputShape"]).InputShape
    frontend = options.frontend.build(shape("image", 1, grid=(28, 28)), 8, 1.0, 0.0, False).eval()
    images = torch.randn(2, 28, 28, 1)
    found = frontend(Padded(images, torch.ones(2, 1, dtype=torch.bool)))
    assert found.data.shape == (2, 50, 8) and found.mask.all()
    conv = nn.Conv2d(1, 8, 4, 4)
    with torch.no_grad():
        conv.weight.copy_(frontend.project.weight.view(8, 4, 4, 1).permute(0, 3, 1, 2))
        conv.bias.copy_(frontend.project.bias)
        expected = conv(images.permute(0, 3, 1, 2)).flatten(2).transpose(1, 2)
    torch.testing.assert_close(found.data[:, 1:] - frontend.positions[1:], expected)
    assert default_patch((28, 28)) == 4


def test_learned_positions_tell_cells_apart() -> None:
    """A blank image has equal cells away from the border, unless positions are added."""
    from regard.core.data_stats import DataStats
    from regard.inputs.image_frontends import GridFrontendOptions
    from regard.inputs.input import InputShape
    from regard.models.cnn import CnnEncoderOptions

    torch.manual_seed(0)
    frontend = GridFrontendOptions().build(InputShape("image", 1, grid=(32, 32)), 1, 1.0, 0.0, True)
    blank = Padded(torch.ones(1, 32, 32, 1), torch.ones(1, 1, dtype=torch.bool))
    for positions in (False, True):
        options = CnnEncoderOptions(width=16, dropout=0.0, positions=positions)
        cells = options.build_for(frontend).eval()(frontend(blank)).data.view(8, 8, 16)
        middle = cells[3:5, 3:5].reshape(4, 16)
        assert torch.allclose(middle[0], middle[3], atol=1e-6) != positions
    stats = DataStats(10, 10, 2, False, labels=True)
    assert CnnEncoderOptions().default_sizes(stats, 8)["positions"] is False


def test_default_network_is_the_resnet_recipe() -> None:
    assert load_config("resnet").model.encoder.blocks == default_blocks(64)


def test_logits_of_the_published_networks_have_their_shape() -> None:
    model = on_meta(lambda: _build("resnet-18"))
    with torch.device("meta"):
        source = Padded(torch.empty(2, 224, 224, 3), torch.ones(2, 1, dtype=torch.bool))
        assert model(Batch(source)).logits.shape == (2, 1000)


def _build(recipe: str) -> nn.Module:
    from regard.config.defaults import fill_defaults
    from regard.core.data_stats import DataStats
    from regard.inputs.input import InputShape

    stats = DataStats(10, 10, 1000, False, labels=True, grid=(224, 224), source="image")
    config, _ = fill_defaults(load_config(recipe), stats)
    model: nn.Module = config.model.build(InputShape("image", 3, grid=(224, 224)), 1000)
    return model
