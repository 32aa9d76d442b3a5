"""Learned positions: what is longer than their table is an error before a model runs."""

from pathlib import Path
from typing import Any

import pytest
from torch import nn

from regard.config.load import check_config
from regard.core.errors import UserError
from regard.data.reading.read import Pair
from regard.data.tensors.special import EOS
from regard.inference.predictor import Predictor
from regard.inputs.sound_augmentation import SoundAugment
from regard.inputs.sound_frontends import ConvolvedFrontendOptions, FramesFrontendOptions
from regard.inputs.sound_options import Sounds
from regard.models.max_length import check_length
from regard.models.output_layer import OutputLayer
from regard.models.transformer_options import TransformerDecoderOptions, TransformerEncoderOptions
from regard.optim.groups import groups_of, hidden_matrices
from regard.search import Beam
from regard.training.run import Run
from regard.training.start import start_run

PAIRS = [Pair("abcd", "dcba", 1), Pair("ab", "ba", 2)]
SIZES = {"kind": "transformer", "layers": 1, "width": 8, "heads": 2, "feedforward_width": 8}


def run(
    encoder: int, decoder: int, train: list[Pair] = PAIRS, dev: list[Pair] = PAIRS, **more: Any
) -> Run:
    """A tiny run with this many learned positions per side."""
    sides = {
        name: SIZES | {"dropout": 0.0, "positions": {"kind": "learned", "length": length}}
        for name, length in (("encoder", encoder), ("decoder", decoder))
    }
    tree = {"model": sides, "training": {"steps": 1}, "task": {"source": {"tokenizer": "char"}}}
    tree["task"]["target"] = {"tokenizer": "char"}
    return start_run(Path("nowhere"), check_config(tree | more, "test"), train, dev)


def test_examples_that_just_fit_are_accepted() -> None:
    made = run(5, 5)  # four letters and the end
    assert made.model.encoder.positions.weight.shape == (5, 8)


@pytest.mark.parametrize(("sizes", "side"), [((4, 5), "encoder"), ((5, 4), "decoder")])
@pytest.mark.parametrize("part", ["train", "dev"])
def test_longer_examples_are_errors_before_training(
    sizes: tuple[int, int], side: str, part: str
) -> None:
    short = [Pair("ab", "ba", 1)]
    parts = {"train": short, "dev": short} | {part: PAIRS}
    with pytest.raises(UserError) as error:
        run(*sizes, **parts)
    assert "sequence of 5 positions" in str(error.value)
    assert f"model.{side}.positions.length=4" in str(error.value)
    assert f"model.{side}.positions.length=5 or" in str(error.value)


def test_a_language_model_reads_windows_of_its_context() -> None:
    decoder = SIZES | {"dropout": 0.0, "positions": {"kind": "learned", "length": 6}}
    tree = {"model": {"decoder": decoder}, "training": {"steps": 1}}
    text = [Pair("", "abcabcabcabcabc", 1)]
    for context, fits in ((6, True), (7, False)):
        task = {"kind": "language-model", "tokenizer": "char", "context_length": context}
        config = check_config(tree | {"task": task}, "test")
        if fits:
            start_run(Path("nowhere"), config, text, text)
            continue
        with pytest.raises(UserError, match="sequence of 7 positions"):
            start_run(Path("nowhere"), config, text, text)


def test_long_sources_are_errors_and_long_outputs_are_marked_as_truncated() -> None:
    made = run(5, 5)
    model = made.model.eval()
    predictor = Predictor.of(made.task, made.config, model, made.folder)
    with pytest.raises(UserError, match=r"sequence of 6 positions.*model.encoder.positions"):
        predictor.predict(["ab", "abcda"], Beam())
    model.head = OutputLayer(model.head.weight, bias=True)
    model.head.bias.data[EOS] = -1e9  # it would continue for ever
    (found,) = predictor.predict(["abcd"], Beam(beam=1))
    assert len(found.tokens) == 4 and found.truncated  # and the end


def test_learned_positions_are_tables_that_neither_decay_nor_count_as_hidden_matrices() -> None:
    model = run(5, 5).model
    table = model.encoder.positions.weight
    assert "encoder.positions.weight" not in hidden_matrices(model)
    plain = [group for group in groups_of(model, 0.1, {}) if not group["weight_decay"]]
    assert any(table is weight for group in plain for weight in group["params"])


def test_attention_with_weights_per_position_limits_the_length() -> None:
    """The error names the section that limits it: positions, or attention."""
    sizes = {"layers": 1, "width": 8, "heads": 1, "feedforward_width": 8, "dropout": 0.0}
    for settings, section in (
        ({"attention": {"kind": "linformer", "length": 4}}, "attention.length=4 positions"),
        ({"positions": {"kind": "learned", "length": 4}}, "positions.length=4 learned positions"),
    ):
        model = nn.Module()
        model.encoder = TransformerEncoderOptions(**sizes, **settings).build()
        with pytest.raises(UserError, match=f"5 positions .* exceeds model.encoder.{section}"):
            check_length(model, "encoder", 5)


def test_attention_to_the_source_limits_its_length() -> None:
    sizes = {"layers": 1, "width": 8, "heads": 1, "feedforward_width": 8, "dropout": 0.0}
    model, cross = nn.Module(), {"kind": "linformer", "length": 4}
    model.encoder = TransformerEncoderOptions(**sizes).build()
    model.decoder = TransformerDecoderOptions(**sizes, cross=cross).build(8)
    check_length(model, "encoder", 4)
    check_length(model, "decoder", 5)
    match = r"exceeds model.decoder.cross.length=4 positions\nhelp: .* model.decoder.cross.length=5"
    with pytest.raises(UserError, match=match):
        check_length(model, "encoder", 5)


def test_sounds_count_vectors_at_the_slowest_speed() -> None:
    """100 windows at 85 % of the speed are 118, of which the convolutions keep every second."""
    shape = Sounds().fit(Sounds.examples, "task.source", [])[0].shape
    build = {"width": 8, "scale": 1.0, "dropout": 0.0, "direct": False}
    assert ConvolvedFrontendOptions(stride=2).build(shape, **build).max_vectors(100) == 59
    assert FramesFrontendOptions().build(shape, **build).max_vectors(100) == 118
    still = SoundAugment(speed=0.0)
    assert (
        ConvolvedFrontendOptions(stride=2, augment=still).build(shape, **build).max_vectors(9) == 5
    )
