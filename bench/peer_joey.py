"""Our weights as a model of JoeyNMT."""

from pathlib import Path

import torch
import yaml
from peer_weights import SIDES, Parts

from regard.nn.positions import sinusoids

# What a part of a layer is called there. q, k, v: the three parts of our one projection.
NAMES = {
    "attend.norm": "layer_norm",
    "attention.q": "src_src_att.q_layer",
    "attention.k": "src_src_att.k_layer",
    "attention.v": "src_src_att.v_layer",
    "attention.join": "src_src_att.output_layer",
    "feed.norm": "feed_forward.layer_norm",
    "feedforward.widen": "feed_forward.pwff_layer.0",
    "feedforward.narrow": "feed_forward.pwff_layer.3",
}
IN_DECODER = {
    name: other.replace("src_src_att", "trg_trg_att") for name, other in NAMES.items()
} | {
    "attend.norm": "x_layer_norm",
    "look.norm": "dec_layer_norm",
    "cross.q": "src_trg_att.q_layer",
    "cross.k": "src_trg_att.k_layer",
    "cross.v": "src_trg_att.v_layer",
    "cross.join": "src_trg_att.output_layer",
}


def write_joey(parts: Parts, folder: Path, source: Path) -> None:
    """A model folder of JoeyNMT with config.yaml, best.ckpt and voc.txt.

    source: the path, without `.en`, of a file of pieces that is to be translated.
    """
    pieces, embeddings = parts.reordered()
    table = sinusoids(8192, parts.width)[None, :5000]
    weights = {
        **parts.renamed("encoder", "encoder.layers.{}", NAMES),
        **parts.renamed("decoder", "decoder.layers.{}", IN_DECODER),
        **parts.norms({side: f"{side}.layer_norm" for side in SIDES}),
        "encoder.pe.pe": table,
        "decoder.pe.pe": table,
        "src_embed.lut.weight": embeddings,
        "trg_embed.lut.weight": embeddings,
        "decoder.output_layer.weight": embeddings,
    }
    folder.mkdir(parents=True, exist_ok=True)
    torch.save({"model_state": weights}, folder / "best.ckpt")
    (folder / "voc.txt").write_text("\n".join(pieces) + "\n", encoding="utf-8")
    config = _config(parts, folder, source)
    (folder / "config.yaml").write_text(yaml.safe_dump(config))


def _config(parts: Parts, folder: Path, source: Path) -> dict[str, object]:
    names = {"unk_token": "<unk>", "pad_token": "<pad>", "bos_token": "<s>", "eos_token": "</s>"}
    numbers = {"unk_id": 0, "pad_id": 1, "bos_id": 2, "eos_id": 3}
    language = {"level": "word", "lowercase": False, "max_length": 1000}
    language |= {"voc_file": str(folder / "voc.txt")}
    sides = zip(SIDES, parts.layers, strict=True)
    return {
        "name": "regard",
        "joeynmt_version": "2.3.0",
        "model_dir": str(folder),
        "use_cuda": False,
        "fp16": False,
        "random_seed": 1,
        "data": {
            **{part: str(source) for part in ("train", "dev", "test")},
            "dataset_type": "plain",
            "src": language | {"lang": "en"},
            "trg": language | {"lang": "de"},
            "special_tokens": names | numbers,
        },
        "testing": {"n_best": 1, "beam_size": 1, "eval_metrics": []},
        "training": {"optimizer": "adam", "batch_size": 32},
        "model": {"tied_embeddings": True, "tied_softmax": True}
        | {side: _side(parts, layers) for side, layers in sides},
    }


def _side(parts: Parts, layers: int) -> dict[str, object]:
    return {
        "type": "transformer",
        "num_layers": layers,
        "num_heads": parts.heads,
        "hidden_size": parts.width,
        "ff_size": parts.inner,
        "dropout": 0.0,
        "layer_norm": "pre",
        "embeddings": {"embedding_dim": parts.width, "scale": True, "dropout": 0.0},
    }
