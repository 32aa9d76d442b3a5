"""MarianMT checkpoints with random weights, as transformers saves them."""

import io
import json
import random
from pathlib import Path
from typing import Any

import pytest
import sentencepiece
import torch

WORDS = ("der", "die", "das", "Hund", "Katze", "Häuser", "Baum", "geht", "größer", "café", "naïve")
PAD = {"__type": "AddedToken", "content": "<pad>", "special": True}
SIZES = {"encoder_layers": 2, "decoder_layers": 3, "encoder_ffn_dim": 20, "decoder_ffn_dim": 24}


def made_up_texts(seed: int, count: int) -> list[str]:
    """Sentences of made-up words."""
    draw = random.Random(seed)
    syllables = ["ka", "lo", "mi", "ter", "ü", "schön", "pra", "né", "x", "qu", "zi", "ßen"]
    made = ["".join(draw.choices(syllables, k=draw.randint(1, 4))) for _ in range(80)]
    return [" ".join(draw.choices([*WORDS, *made], k=draw.randint(3, 9))) for _ in range(count)]


def write_pieces(path: Path, seed: int) -> list[str]:
    """Trains a sentencepiece model, and gives its pieces."""
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(made_up_texts(seed, 300)),
        model_writer=model,
        vocab_size=90,
        model_type="unigram",
        minloglevel=2,
    )
    path.write_bytes(model.getvalue())
    processor = sentencepiece.SentencePieceProcessor(model_proto=model.getvalue())
    return [processor.id_to_piece(id) for id in range(3, processor.get_piece_size())]


def write_vocabularies(folder: Path, apart: bool) -> tuple[dict[str, int], dict[str, int]]:
    """Sentencepiece models and the lists that number their pieces, one for both sides or two."""
    source, target = write_pieces(folder / "source.spm", 1), write_pieces(folder / "target.spm", 2)
    if not apart:
        both = sorted({*source[:-5], *target})  # five pieces that the list does not hold
        numbers = _number(folder / "vocab.json", ["</s>", "<unk>", ">>fra<<", *both, "<pad>"])
        return numbers, numbers
    config = {"separate_vocabs": True, "eos_token": "</s>", "pad_token": PAD}
    (folder / "tokenizer_config.json").write_text(json.dumps(config))
    return (
        _number(folder / "vocab.json", ["</s>", "<unk>", *source, "<pad>"]),
        _number(folder / "target_vocab.json", ["</s>", "<unk>", *target[:-3], "<pad>"]),
    )


def _number(path: Path, tokens: list[str]) -> dict[str, int]:
    numbers = {token: number for number, token in enumerate(tokens)}
    path.write_text(json.dumps(numbers))
    return numbers


def write_checkpoint(folder: Path, apart: bool = False, shard: str = "1GB", **settings: Any) -> Any:
    """A checkpoint folder; gives the model of transformers that was saved."""
    transformers = pytest.importorskip(
        "transformers", reason="compares with transformers: pip install transformers"
    )
    folder.mkdir(parents=True, exist_ok=True)
    source, target = write_vocabularies(folder, apart)
    torch.manual_seed(5)
    pad = target["<pad>"]
    usual = {
        **SIZES,
        "d_model": 16,
        "encoder_attention_heads": 4,
        "decoder_attention_heads": 2,
        "vocab_size": len(source),
        "decoder_vocab_size": len(target),
        "share_encoder_decoder_embeddings": not apart,
        "pad_token_id": pad,
        "decoder_start_token_id": pad,
        "eos_token_id": target["</s>"],
        "forced_eos_token_id": target["</s>"],
        "activation_function": "swish",
        "scale_embedding": True,
        "max_position_embeddings": 64,
        "init_std": 0.3,
    }
    model = transformers.MarianMTModel(transformers.MarianConfig(**usual | settings)).eval()
    with torch.no_grad():
        for parameter in model.parameters():  # norms and biases begin as ones and zeros
            if parameter.requires_grad:
                parameter += 0.05 * torch.randn(parameter.shape)
        for name, parameter in model.named_parameters():  # answers depend on their sources
            parameter *= 3 if "encoder_attn.v_proj" in name else 1
        model.final_logits_bias += 0.5 * torch.randn(model.final_logits_bias.shape)
        model.final_logits_bias[0, target["</s>"]] += 4  # so that answers come to an end
    model.generation_config.update(num_beams=4, max_length=50, bad_words_ids=[[pad]])
    model.save_pretrained(folder, max_shard_size=shard)
    return model
