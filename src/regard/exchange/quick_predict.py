"""Predictions of CTranslate2 without torch, whose import takes longer than the predictions.

Everything that needs torch, and every error, is left to the usual path: the result is None.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from regard.config.yaml_text import parse_yaml
from regard.core.errors import UserError, info
from regard.core.field_types import Positive
from regard.core.files import read_bytes, read_fields
from regard.data.tokenizers.build import load_tokenizer
from regard.data.tokenizers.text_reader import TextReader
from regard.data.tokenizers.tokenizer import Tokenizer
from regard.exchange.ctranslate2_search import CTranslate2Search
from regard.exchange.engine_records import load_record
from regard.exchange.export_cache import find_export
from regard.search.beam_options import Beam
from regard.search.search import PlainBeam
from regard.storage.export_folder import read_export
from regard.tasks.outputs import best_prediction, max_output_length
from regard.tasks.values import Prediction

ENGINE = "ctranslate2"


@dataclass(frozen=True)
class QuickModel:
    """An exported text-to-text model. ratio: maximum number of output tokens per source token."""

    source: TextReader
    target: Tokenizer
    ratio: float
    search: Beam
    beam_search: CTranslate2Search

    @classmethod
    def load(cls, folder: Path, changes: Mapping[str, Any]) -> "QuickModel | None":
        """Return the model of an exported folder, with changed search settings.

        Return None if the model reads no texts, or the search is not a plain beam search.
        """
        tree = parse_yaml(read_bytes(folder / "config.yaml").decode("utf-8"))
        task, search = tree["task"], tree["search"] | changes
        kinds = task["kind"], task["source"]["kind"], search["kind"]
        if kinds != ("transduce", "text", "beam") or set(search) - set(Beam.model_fields):
            return None
        path = folder / "vocabulary"
        shared, ratio = read_fields(path / "task.json", shared=bool, ratio=Positive)
        flags = read_fields(path / "input.json", lowercase=bool, add_bos=bool)
        source = TextReader(load_tokenizer(path, "source"), *flags)
        target = source.tokenizer if shared else load_tokenizer(path, "target")
        options = Beam.model_validate(search)
        return cls(source, target, ratio, options, CTranslate2Search(folder / ENGINE, 1))

    def predict(self, texts: Sequence[str], nbest: int) -> list[Prediction] | None:
        """Return the prediction for each text, or None if one needs the search of regard."""
        plain, limit = self.search.plain_beam(), self.beam_search.max_target_length
        flat, lengths = self.source.encode_flat(texts)
        if plain is None or lengths.max() > self.beam_search.max_source_length:
            return None
        ends = lengths.cumsum().tolist()
        rows = [flat[end - n : end] for end, n in zip(ends, lengths.tolist(), strict=True)]
        limits = [min(limit, max_output_length(self.ratio, len(row), self.search)) for row in rows]
        wide = PlainBeam(max(plain.beam, nbest), plain.length_penalty)
        predictions = []
        for text, row, length in zip(texts, rows, limits, strict=True):
            (found,) = self.beam_search.search([row.tolist()], [length], wide)
            if found is None:
                return None
            about = self.source.unknown(text, row), self.source.folded(text)
            predictions.append(best_prediction(self.target, found[:nbest], *about))
        return predictions


def quick_predict(
    folder: Path,
    texts: Sequence[str],
    nbest: int,
    engine: str | None,
    quantize: str | None,
    changes: Mapping[str, Any],
) -> list[Prediction] | None:
    """Return the prediction for each text, or None if the model or the search needs torch.

    folder: exported for CTranslate2 or, if `engine` is ctranslate2 or `auto` has selected it, a run
    folder whose export is in the cache. changes: search settings by name; None keeps the setting of
    the model.
    """
    chosen = {name: value for name, value in changes.items() if value is not None}
    try:
        "".join(texts).encode("utf-8")  # lone surrogates are errors
        record = load_record(folder) if engine == "auto" and quantize is None else None
        if record is not None:
            engine, quantize = record.choice
        exported = _exported(folder, engine, quantize)
        model = None if exported is None else QuickModel.load(exported, chosen)
        found = None if model is None else model.predict(texts, nbest)
    except (UserError, OSError, ValueError, KeyError, TypeError):  # the usual path reports it
        return None
    if found is not None and record is not None:
        info(str(record))
    return found


def _exported(folder: Path, engine: str | None, quantize: str | None) -> Path | None:
    """Return the folder with the files of CTranslate2, or None if another engine is to run."""
    if engine not in (None, ENGINE):
        return None
    facts = read_export(folder)
    if facts is None:
        return None if engine is None else find_export(folder, ENGINE, quantize)
    fits = facts["engine"] == ENGINE and quantize in (None, facts.get("quantize"))
    return folder if fits else None
