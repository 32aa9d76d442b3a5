"""Our weights as a model of Eole."""

import json
from pathlib import Path

import torch
from peer_weights import SIDES, Parts
from safetensors.torch import save_file

from regard.nn.positions import sinusoids

# What a part of a layer is called there. q, k, v: the three parts of our one projection.
NAMES = {
    "attend.norm": "input_layernorm",
    "attention.q": "self_attn.linear_query",
    "attention.k": "self_attn.linear_keys",
    "attention.v": "self_attn.linear_values",
    "attention.join": "self_attn.final_linear",
    "look.norm": "precontext_layernorm",
    "cross.q": "context_attn.linear_query",
    "cross.k": "context_attn.linear_keys",
    "cross.v": "context_attn.linear_values",
    "cross.join": "context_attn.final_linear",
    "feed.norm": "post_attention_layernorm",
    "feedforward.widen": "mlp.gate_up_proj",
    "feedforward.narrow": "mlp.down_proj",
}


SPECIAL = {"unk_token": "<unk>", "pad_token": "<blank>", "bos_token": "<s>", "eos_token": "</s>"}
POSITIONS = "SinusoidalInterleaved"


def write_eole(parts: Parts, folder: Path) -> None:
    """A model folder of Eole: config.json, vocab.json, model.00.safetensors."""
    pieces, embeddings = parts.reordered()
    table = sinusoids(8192, parts.width)[:5000, None]
    layers = range(parts.layers[1])
    weights = {
        **parts.renamed("encoder", "encoder.transformer_layers.{}", NAMES),
        **parts.renamed("decoder", "decoder.transformer_layers.{}", NAMES),
        **parts.norms({side: f"{side}.layer_norm" for side in SIDES}),
        **{f"decoder.transformer_layers.{i}.layer_scalar": torch.ones(1) for i in layers},
        "src_emb.embeddings.weight": embeddings,
        "src_emb.pe.pe": table.clone(),
        "tgt_emb.pe.pe": table.clone(),
        "generator.bias": torch.zeros(len(embeddings)),
    }
    tokens = [*SPECIAL.values(), *pieces]
    vocabulary = {"src": tokens, "tgt": tokens, "decoder_start_token": "<s>", "specials": SPECIAL}
    folder.mkdir(parents=True, exist_ok=True)
    save_file(weights, folder / "model.00.safetensors")
    (folder / "config.json").write_text(json.dumps(_config(parts, len(tokens)), indent=1))
    (folder / "vocab.json").write_text(json.dumps(vocabulary), encoding="utf-8")


def _config(parts: Parts, size: int) -> dict[str, object]:
    """The settings of the model; the layers have biases everywhere, as ours have."""
    body = {
        "hidden_size": parts.width,
        "transformer_ff": parts.inner,
        "heads": parts.heads,
        "position_encoding_type": POSITIONS,
        "add_qkvbias": True,
        "add_final_linear_bias": True,
        "add_ffnbias": True,
        "norm_eps": 1e-5,
    }
    encoder, decoder = (body | {"layers": layers} for layers in parts.layers)
    vectors = {"src_word_vec_size": parts.width, "tgt_word_vec_size": parts.width}
    embeddings = {"position_encoding_type": POSITIONS, "word_vec_size": parts.width} | vectors
    model = body | {
        "architecture": "transformer",
        "layers": parts.layers[0],
        "share_embeddings": True,
        "share_decoder_embeddings": True,
        "encoder": encoder | {"encoder_type": "transformer", "src_word_vec_size": parts.width},
        "decoder": decoder | {"decoder_type": "transformer", "tgt_word_vec_size": parts.width},
        "embeddings": embeddings,
    }
    vocabulary = {"src_vocab": "", "tgt_vocab": "", "share_vocab": True}
    sizes = {"src_vocab_size": size, "tgt_vocab_size": size}
    training = {"compute_dtype": "torch.float32"}
    return vocabulary | sizes | {"data": {}, "training": training, "model": model}
