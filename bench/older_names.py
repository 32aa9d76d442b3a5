"""Names of commit 0c75ea4 and earlier, for benchmarks that compare with them."""

import json
from pathlib import Path
from typing import Any

# Settings: the end of the new key, and of the old one.
SETTINGS = {
    "model.embedding_width": "model.embedding",
    "model.output_bias": "model.head_bias",
    "model.pooling": "model.pool",
    "model.tie_embeddings": "model.tied",
    ".feedforward_width": ".feedforward",
    ".input_feeding": ".feeding",
    "coder.window": "coder.reach",
    "objective.label_smoothing": "objective.smoothing",
    "objective.mask_rate": "objective.share",
    "search.length_penalty": "search.alpha",
    "search.length_norm": "search.normalise",
    "search.coverage_penalty": "search.coverage",
    "search.diversity_penalty": "search.diversity",
    "search.beam_groups": "search.groups",
    "search.no_repeat_ngram": "search.no_repeat",
    "search.stopping": "search.stop",
    "task.class_weight": "task.weights",
    "task.context_length": "task.context",
    "task.document_unit": "task.documents",
    "task.eval_overlap": "task.overlap",
    "task.label_separator": "task.several",
    "task.pseudo_label_threshold": "task.confidence",
    "task.shared_vocab": "task.shared",
    "task.window_order": "task.order",
    "task.tokenizer": "task.symbols",
    "source.tokenizer": "source.symbols",
    "target.tokenizer": "target.symbols",
    ".vocab_size": ".size",
    "training.accumulation_steps": "training.accumulate",
    "training.batch_tokens": "training.tokens",
    "training.clip_norm": "training.clip",
    "training.pretrained_lr_factor": "training.loaded_lr",
    "training.schedule.final_factor": "training.schedule.end",
    "training.schedule.decay_fraction": "training.schedule.decay",
    "training.schedule.milestones": "training.schedule.drops",
    "training.validation_examples": "training.validate_on",
    "training.optimizer.matrix_lr_factor": "training.optimizer.hidden_lr",
    "training.optimizer.clip_threshold": "training.optimizer.clip",
}
# Values of settings: the end of the new key, then old and new values.
VALUES = {
    "tokenizer": {"space": "whitespace", "words": "word_char"},
    "search.stopping": {"likely": "no_gain", "full": "beam_full", "exact": "optimal"},
    "search.kind": {"decide": "argmax"},
    "optimizer.kind": {"exact": "closed_form"},
    "objective.kind": {"next_symbol": "next_token"},
    "task.metric": {"exact": "exact_match", "sentences": "sentence_accuracy"},
    "frontend.kind": {"symbols": "tokens"},
    "task.document_unit": {"blank": "paragraph"},
    "task.window_order": {"random": "shuffled"},
}
OPTIONS = {  # of `regard predict`
    "--token-scores": "--symbols",
    "--beam-groups": "--groups",
    "--no-repeat-ngram": "--no-repeat",
    "--length-penalty": "--alpha",
}
RECORDS = {  # fields of metrics.jsonl, old and new
    "norm": "grad_norm",
    "norms": "grad_norms",
    "noise": "grad_noise_scale",
    "seconds": "elapsed_seconds",
    "padding": "padding_fraction",
    "exact": "exact_match",
    "sentences": "sentence_accuracy",
    "unseen_accuracy": "oov_accuracy",
    "bleu_d2l": "short_bleu",
    "symbols": "tokens",
}

WEIGHTS = {  # parts of the names of weights
    "frontend.symbols.": "frontend.tokens.",
    "spelling.letters.": "spelling.chars.",
    "spelling.spans.": "spelling.convolutions.",
}


def has_old_names(source: Path) -> bool:
    """Return whether the sources of a version use the old names."""
    return not (source / "regard" / "data" / "tokenizers").exists()


def old_setting(text: str) -> str:
    """Return KEY=VALUE with old names."""
    key, _, value = text.partition("=")
    back = {new: old for old, new in _values(key).items()}
    value = back.get(value, value)
    for new, old in SETTINGS.items():
        if key.endswith(new):
            key = key.removesuffix(new) + old
            break
    return f"{key}={value}"


def new_setting(key: str, value: Any) -> tuple[str, Any]:
    """Return an old key and its value with new names."""
    if key == "search.length":
        return "search.max_length", value
    for new, old in SETTINGS.items():
        if key.endswith(old):
            key = key.removesuffix(old) + new
            break
    return key, _values(key).get(value, value) if isinstance(value, str) else value


def new_record(record: dict[str, Any]) -> dict[str, Any]:
    """Return a line of metrics.jsonl with new names."""
    return {RECORDS.get(key, key): _new_value(value) for key, value in record.items()}


def _new_value(value: Any) -> Any:
    if isinstance(value, list):
        return [_new_value(one) for one in value]
    return new_record(value) if isinstance(value, dict) else value


def new_prediction(line: str) -> str:
    """Return an output line of `regard predict --json` with new names."""
    return json.dumps(_renamed(json.loads(line)), ensure_ascii=False)


def new_weight(name: str) -> str:
    """Return the name of a weight."""
    for old, new in WEIGHTS.items():
        name = name.replace(old, new)
    return name


def _renamed(value: Any) -> Any:
    if isinstance(value, list):
        return [_renamed(one) for one in value]
    if not isinstance(value, dict):
        return value
    found: dict[str, Any] = {}
    for key, one in value.items():
        if key == "symbols" and one and isinstance(one[0], list):  # pairs
            found["tokens"] = [token for token, _ in one]
            found["token_logprobs"] = [score for _, score in one]
        else:
            name = {
                "symbols": "tokens",
                "symbol": "token",
                "cut": "truncated",
                "source_symbols": "source_tokens",
            }.get(key, key)
            found[{"unknown": "unknown_tokens"}.get(name, name)] = _renamed(one)
    return found


def _values(key: str) -> dict[str, str]:
    return next((found for end, found in VALUES.items() if key.endswith(end)), {})
