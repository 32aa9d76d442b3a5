"""Models with random weights, one of each kind that CTranslate2 can run."""

import json
import random
from pathlib import Path
from typing import Any, get_args

import torch

import regard
from regard.config.load import load_config
from regard.core.files import write_text
from regard.data.reading.read import Pair
from regard.data.tensors.padded import Padded, pad
from regard.data.tensors.special import EOS, SPECIALS
from regard.nn.positions import Positions
from regard.search import Beam, SearchRequest
from regard.search.hypothesis import NON_OUTPUT_IDS
from regard.storage.weights import save_weights
from regard.training.start import start_run

LETTERS = "abcdefghijklmnopqrstuvwxyz"
BASE = {
    f"model.{side}.{name}": value
    for side in ("encoder", "decoder")
    for name, value in {
        **{"kind": "transformer", "layers": 2, "width": 16, "heads": 4},
        **{"feedforward_width": 32, "dropout": 0.0},
    }.items()
}
BASE["model.output_bias"] = True


def both(**settings: Any) -> dict[str, Any]:
    """Settings of the encoder and of the decoder."""
    return {f"model.{side}.{k}": v for side in ("encoder", "decoder") for k, v in settings.items()}


KINDS: dict[str, dict[str, Any]] = {
    "pre": {},
    "post": both(norm_position="post"),
    "rms, gelu": both(norm="rms", activation="gelu"),
    "post, own head": {**both(norm_position="post"), "model.tie_embeddings": False},
    "unscaled": both(embedding_scale=False),
    "uneven": {"model.encoder.layers": 1, "model.decoder.heads": 2, "model.encoder.width": 24},
    "mixed": {"model.encoder.norm_position": "post", "model.decoder.activation": "gelu"},
    "shared": {
        "task.shared_vocab": True,
        "task.source.tokenizer": "bpe",
        "task.target.tokenizer": "bpe",
    },
}
for kind in get_args(get_args(Positions)[0]):
    name = kind.model_fields["kind"].default
    if "ctranslate2" in kind.exports:
        KINDS[f"positions {name}"] = {
            f"model.{s}.positions.kind": name for s in ("encoder", "decoder")
        }


def random_model(folder: Path, settings: dict[str, Any]) -> regard.Transducer:
    """The folder of a model with random weights, whose outputs follow the source and end."""
    chance = random.Random(0)
    texts = ["".join(chance.choices(LETTERS, k=chance.randint(1, 12))) for _ in range(100)]
    given = [f"{key}={json.dumps(value)}" for key, value in (BASE | settings).items()]
    pairs = [Pair(text, text, 0) for text in texts]
    run = start_run(folder, load_config(None, ["task.kind=transduce", *given]), pairs, pairs)
    folder.mkdir()
    write_text(folder / "config.yaml", run.config.dump())
    run.task.save(folder)
    torch.manual_seed(1)
    with torch.no_grad():
        for name, weight in run.model.named_parameters():
            noise, size = torch.randn(weight.shape), 3 if "cross" in name else 1
            weight.copy_(noise * size * weight.shape[-1] ** -0.5 if weight.ndim > 1 else weight)
            if name.endswith("bias"):
                weight.copy_(noise / 4)
        run.model.head.weight.mul_(1.5)
    save_weights(run.model, folder / "model.safetensors")
    model = regard.load(folder)
    assert isinstance(model, regard.Transducer)
    make_it_end(model)
    return model


@torch.no_grad()
def make_it_end(model: regard.Transducer) -> None:
    """Makes the end more probable, and other specials less so, until half of the outputs end."""
    bias, request = model.model_.head.bias, SearchRequest(sources(model, 20), torch.full((20,), 12))
    bias[NON_OUTPUT_IDS] -= 3
    for _ in range(40):
        found = Beam(beam=1).run(model.model_, request)
        if sum(h[0].truncated for h in found) <= 10:
            break
        bias[EOS] += 0.5
    save_weights(model.model_, model.folder_ / "model.safetensors")


def sources(model: regard.Transducer, count: int, seed: int = 2) -> Padded:
    """Random rows of tokens."""
    chance = random.Random(seed)
    ids = range(len(SPECIALS), len(model.task_.source.tokenizer))  # type: ignore[attr-defined]
    return pad([[*chance.choices(ids, k=chance.randint(1, 15)), EOS] for _ in range(count)])


def limits_of(source: Padded) -> torch.Tensor:
    return 3 * source.mask.sum(1) + 10
