"""Search settings from generation_config.json."""

from typing import Any

from regard.exchange.importing.torch_checkpoint import Metadata

DEFAULTS: Metadata = {  # neutral values of settings that affect results and are not supported
    "do_sample": False,
    "num_beam_groups": 1,
    "repetition_penalty": 1.0,
    "encoder_no_repeat_ngram_size": 0,
    "encoder_repetition_penalty": 1.0,
    "exponential_decay_length_penalty": None,
    "forced_bos_token_id": None,
    "suppress_tokens": None,
    "begin_suppress_tokens": None,
    "sequence_bias": None,
    "force_words_ids": None,
    "constraints": None,
    "stop_strings": None,
    "guidance_scale": None,
    "penalty_alpha": None,
    "num_return_sequences": 1,
}


def search_settings(generation: Metadata, never: set[int]) -> tuple[dict[str, Any], list[str]]:
    """Return the settings `search` of regard, and a note for each unsupported setting.

    never: the Marian ids of tokens that the search of regard never outputs.
    """
    notes: list[str] = []
    search: dict[str, Any] = {
        "kind": "beam",
        "beam": max(1, int(_setting(generation, "num_beams", 1))),
        "length_penalty": float(_setting(generation, "length_penalty", 1.0)),
        "no_repeat_ngram": int(_setting(generation, "no_repeat_ngram_size", 0)),
        **_lengths(generation, notes),
    }
    if search["length_penalty"] < 0:
        notes.append(
            f"length_penalty={search['length_penalty']:g}: negative; using search.length_penalty=0"
        )
        search["length_penalty"] = 0.0
    early = _setting(generation, "early_stopping", False)
    search["stopping"] = "optimal" if early == "never" else "beam_full"
    if early is False and search["beam"] > 1:
        notes.append("early_stopping=false is not supported; using search.stopping=beam_full")
    banned = [phrase for phrase in _setting(generation, "bad_words_ids", []) if phrase]
    if unsupported := [
        phrase for phrase in banned if not (len(phrase) == 1 and phrase[0] in never)
    ]:
        notes.append(f"bad_words_ids: {len(unsupported)} of {len(banned)} are not supported")
    for key, default in DEFAULTS.items():
        if (value := _setting(generation, key, default)) != default and value != []:
            notes.append(f"{key}={value}: not supported, ignored")
    return search, notes


def renormalizes(generation: Metadata, pad: int) -> bool:
    """Return whether padding is banned and probabilities are renormalized without it."""
    banned = _setting(generation, "bad_words_ids", [])
    return bool(_setting(generation, "renormalize_logits", False)) and [pad] in banned


def _lengths(generation: Metadata, notes: list[str]) -> dict[str, Any]:
    """Return the length limits of regard. Those of transformers count the start token and EOS."""
    longest = _setting(generation, "max_length", None)
    most = None if longest is None else max(1, int(longest) - 2)
    if (new := _setting(generation, "max_new_tokens", None)) is not None:
        most = max(1, int(new) - 1)
    if most is None:
        notes.append("max_length: not set; outputs may have four times the length of the source")
    least = max(0, int(_setting(generation, "min_length", 0)) - 1)
    least = max(least, int(_setting(generation, "min_new_tokens", 0)))
    return {"min_length": least, "max_length": most}


def _setting(generation: Metadata, key: str, default: Any) -> Any:
    """Return a setting, or the default if it is missing or null."""
    value = generation.get(key)
    return default if value is None else value
