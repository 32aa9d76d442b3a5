"""Our weights as a model of transformers: Pegasus has norms before and sinusoidal positions."""

from pathlib import Path
from typing import Any

import torch
from peer_weights import LENGTH, SIDES, Parts

from regard.data.tensors.padded import pad
from regard.data.tensors.special import BOS, EOS, PAD
from regard.models.encoder_decoder import EncoderDecoder
from regard.nn.positions import sinusoids

# What a part of a layer is called there. q, k, v: the three parts of our one projection.
NAMES = {
    "attend.norm": "self_attn_layer_norm",
    "attention.q": "self_attn.q_proj",
    "attention.k": "self_attn.k_proj",
    "attention.v": "self_attn.v_proj",
    "attention.join": "self_attn.out_proj",
    "look.norm": "encoder_attn_layer_norm",
    "cross.q": "encoder_attn.q_proj",
    "cross.k": "encoder_attn.k_proj",
    "cross.v": "encoder_attn.v_proj",
    "cross.join": "encoder_attn.out_proj",
    "feed.norm": "final_layer_norm",
    "feedforward.widen": "fc1",
    "feedforward.narrow": "fc2",
}


def write_transformers(parts: Parts, folder: Path) -> None:
    """A folder for PegasusForConditionalGeneration."""
    from transformers import PegasusForConditionalGeneration

    model = PegasusForConditionalGeneration(_config(parts))
    table = sinusoids(LENGTH, parts.width)
    weights = {
        **parts.renamed("encoder", "model.encoder.layers.{}", NAMES),
        **parts.renamed("decoder", "model.decoder.layers.{}", NAMES),
        **parts.norms({side: f"model.{side}.layer_norm" for side in SIDES}),
        **{f"model.{side}.embed_positions.weight": table for side in SIDES},
        **{f"model.{side}.embed_tokens.weight": parts.embeddings for side in SIDES},
        "model.shared.weight": parts.embeddings,
        "lm_head.weight": parts.embeddings,
        "final_logits_bias": torch.zeros(1, len(parts.tokens)),
    }
    model.load_state_dict(weights)
    model.save_pretrained(folder)


def _config(parts: Parts) -> Any:
    from transformers import PegasusConfig

    encoder, decoder = parts.layers
    return PegasusConfig(
        vocab_size=len(parts.tokens),
        d_model=parts.width,
        encoder_layers=encoder,
        decoder_layers=decoder,
        encoder_attention_heads=parts.heads,
        decoder_attention_heads=parts.heads,
        encoder_ffn_dim=parts.inner,
        decoder_ffn_dim=parts.inner,
        activation_function="relu",
        scale_embedding=True,
        max_position_embeddings=LENGTH,
        pad_token_id=PAD,
        bos_token_id=BOS,
        eos_token_id=EOS,
        decoder_start_token_id=BOS,
        forced_eos_token_id=None,
    )


def difference(model: EncoderDecoder, folder: Path) -> float:
    """The largest difference between our logits and those of the written model, random tokens."""
    from transformers import PegasusForConditionalGeneration

    other = PegasusForConditionalGeneration.from_pretrained(folder).eval()
    model.eval()
    draw = torch.Generator().manual_seed(1)
    size = len(model.target.weight)
    rows = [torch.randint(5, size, (length,), generator=draw).tolist() for length in (9, 4, 17)]
    source = pad(rows)
    inputs = torch.randint(5, size, (len(rows), 7), generator=draw)
    with torch.inference_mode():
        ours, _ = model.step(inputs, model.start(source))
        theirs = other(
            input_ids=source.data,
            attention_mask=source.mask.long(),
            decoder_input_ids=inputs,
        ).logits
    return float((ours - theirs).abs().max())
