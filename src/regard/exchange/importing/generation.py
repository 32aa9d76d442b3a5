"""How a checkpoint is searched: generation_config.json as our search, as far as we have it."""

from typing import Any

from regard.exchange.importing.torch_checkpoint import Facts

USUAL: Facts = {  # settings that change what is found and that are not taken over, off
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


def search_settings(generation: Facts, never: set[int]) -> tuple[dict[str, Any], list[str]]:
    """The section `search`, and a line for each setting that is not taken over as it is.

    never: the rows of tokens that our search never writes.
    """
    notes: list[str] = []
    search: dict[str, Any] = {
        "kind": "beam",
        "beam": max(1, int(_given(generation, "num_beams", 1))),
        "length_penalty": float(_given(generation, "length_penalty", 1.0)),
        "no_repeat_ngram": int(_given(generation, "no_repeat_ngram_size", 0)),
        **_lengths(generation, notes),
    }
    if search["length_penalty"] < 0:
        notes.append(
            f"length_penalty={search['length_penalty']:g}: negative; using search.length_penalty=0"
        )
        search["length_penalty"] = 0.0
    early = _given(generation, "early_stopping", False)
    search["stopping"] = "optimal" if early == "never" else "beam_full"
    if early is False and search["beam"] > 1:
        notes.append("early_stopping=false: search.stopping=beam_full, the nearest there is here")
    banned = [phrase for phrase in _given(generation, "bad_words_ids", []) if phrase]
    if strange := [phrase for phrase in banned if not (len(phrase) == 1 and phrase[0] in never)]:
        notes.append(f"bad_words_ids: {len(strange)} of {len(banned)} are not taken over")
    for key, usual in USUAL.items():
        if (value := _given(generation, key, usual)) != usual and value != []:
            notes.append(f"{key}={value}: not taken over")
    return search, notes


def renormalised(generation: Facts, pad: int) -> bool:
    """Whether probabilities are those of all tokens but the padding, which is banned."""
    banned = _given(generation, "bad_words_ids", [])
    return bool(_given(generation, "renormalize_logits", False)) and [pad] in banned


def _lengths(generation: Facts, notes: list[str]) -> dict[str, Any]:
    """The shortest and the longest answer. Theirs count the first token and the end, too."""
    longest = _given(generation, "max_length", None)
    most = None if longest is None else max(1, int(longest) - 2)
    if (new := _given(generation, "max_new_tokens", None)) is not None:
        most = max(1, int(new) - 1)
    if most is None:
        notes.append("max_length: not given; answers may be four times as long as their sources")
    least = max(0, int(_given(generation, "min_length", 0)) - 1)
    least = max(least, int(_given(generation, "min_new_tokens", 0)))
    return {"min_length": least, "max_length": most}


def _given(generation: Facts, key: str, usual: Any) -> Any:
    """A setting, where it is given and not null."""
    value = generation.get(key)
    return usual if value is None else value
