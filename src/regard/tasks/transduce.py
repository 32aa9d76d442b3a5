"""Transduction: sequence-to-sequence, such as translation; outputs can have any length."""

import math
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from torch import nn

from regard import metrics
from regard.baselines import (
    AffixRules,
    Baseline,
    BaselineFit,
    CopySource,
    MostFrequentTarget,
)
from regard.core.cache import cached, make_key
from regard.core.data_stats import DataStats
from regard.core.errors import UserError
from regard.core.files import write_json
from regard.data.checks.check import check, load_check
from regard.data.checks.check_sources import check_sources
from regard.data.corpus.corpora import Corpus, PairCorpus
from regard.data.corpus.mapped import MappedCorpus, lengths_of, map_corpus
from regard.data.corpus.ragged import Ragged
from regard.data.reading.read import Example, Pair, group
from regard.data.sources.large import PairSubset, base_and_rows, large_base, subset_rows
from regard.data.tensors.special import EOS
from regard.data.tokenizers.tokenizer import Tokenizer
from regard.inputs.input import Input
from regard.models.encoder_decoder import EncoderDecoderOptions
from regard.objectives import Objective
from regard.tasks.inspection.forced_pass import ForcedPass, InspectionRequest
from regard.tasks.inspection.parallel_pass import fill_pass, frames_pass
from regard.tasks.inspection.transducer_pass import transducer_pass
from regard.tasks.labeled_data import neighbor_fits
from regard.tasks.sequence_decoding import SequenceDecoding
from regard.tasks.task import DataCheck, Prediction, Task

# The forced pass for each kind of model output.
FORCED_PASSES: dict[str, Callable[[InspectionRequest], ForcedPass]] = {
    "steps": transducer_pass,
    "fill": fill_pass,
    "frames": frames_pass,
}


class TransduceTask(SequenceDecoding, Task):
    """The transduction task. ratio: maximum number of output tokens per source token."""

    kind = "transduce"
    unit = "sources"
    writes_text = True

    def __init__(
        self,
        source: Input,
        target: Tokenizer,
        metric: str,
        ratio: float,
        max_length: int | None = None,
        shared: bool = False,
    ) -> None:
        self.source = source
        self.target = target
        self.metric = metric
        self.ratio = ratio
        self.max_length = max_length
        # Whether source and target have the same token ids, so that a model has one embedding
        # table. An imported model may still tokenize source and target differently.
        self.shared = shared or self.tokenizer is target
        # Cache: the pairs that were encoded last, and their corpus. A run encodes its training
        # pairs several times before training starts.
        self._encoded: tuple[Sequence[Pair], PairCorpus] | None = None

    @property
    def tokenizer(self) -> Tokenizer | None:
        """The tokenizer of the sources, if they are texts."""
        return getattr(self.source, "tokenizer", None)

    @property
    def output_tokenizer(self) -> Tokenizer:
        """The tokenizer of the targets."""
        return self.target

    def source_tokenizer(self) -> Tokenizer:
        """Return the tokenizer of the sources. Raise UserError if they are not texts."""
        if self.tokenizer is None:
            raise UserError(
                f"only supported for models with text input; this one reads {self.source.kind}"
            )
        return self.tokenizer

    def build(self, options: EncoderDecoderOptions) -> nn.Module:
        """Return an encoder-decoder with the vocabulary sizes of sources and targets."""
        return options.build(self.source.shape, len(self.target), self.shared)

    def corpus(self, pairs: Sequence[Pair]) -> PairCorpus | MappedCorpus:
        """Return the pairs as token ids, with EOS. Large files are memory-mapped."""
        large = large_base(pairs)
        if large is not None:
            assert self.tokenizer is not None
            return map_corpus(large, subset_rows(pairs), self.tokenizer, self.target)
        base, rows = base_and_rows(pairs)
        if self._encoded is None or self._encoded[0] is not base:
            target = Ragged.from_flat(*self.target.encode_flat([p.target for p in base], EOS))
            encoded = PairCorpus(self.source.encode([p.source for p in base]), target)
            self._encoded = (base, encoded)
        encoded = self._encoded[1]
        return encoded.take(rows) if isinstance(pairs, PairSubset) else encoded

    def lengths(self, pairs: Sequence[Pair]) -> np.ndarray:
        """Return the number of source and target tokens (N, 2) of each pair, without EOS."""
        large = large_base(pairs)
        if large is not None:
            assert self.tokenizer is not None
            return lengths_of(large, subset_rows(pairs), self.tokenizer, self.target) - 1
        return self.corpus(pairs).lengths - 1

    def stats(self, corpus: Corpus) -> DataStats:
        """Return the data statistics from which default settings are chosen."""
        lengths, shape = corpus.lengths, self.source.shape
        return DataStats(
            len(corpus),
            int(lengths.sum()),
            len(self.target),
            self.target.subwords,
            inputs=0 if any(shape.grid) or shape.rate else shape.size,
            grid=shape.grid,
            frames=shape.rate > 0,
            source=shape.kind,
            target_tokens=int(lengths[:, 1].sum()),
            longest_target=int(lengths[:, 1].max(initial=0)),
            length_change=int(np.abs(lengths[:, 1].astype(int) - lengths[:, 0]).max(initial=0)),
        )

    def parse(self, text: str) -> Any:
        """Parse an input line into a source: a text, or the name of a file."""
        return self.source.parse(text)

    def forced_pass(self, request: InspectionRequest) -> ForcedPass:
        """Return the forward pass over the output of the search, or over a given target."""
        return FORCED_PASSES[request.predictor.config.model.gives](request)

    def examples(self, pairs: Iterable[Pair]) -> list[Example]:
        """Return one example per source, with all its targets as references."""
        return group(pairs)

    def score(
        self, predictions: Sequence[Prediction], examples: Sequence[Example]
    ) -> dict[str, float]:
        """Return exact_match, ser, cer, wer, bleu, chrf and short_bleu."""
        outputs = [prediction.text for prediction in predictions]
        return metrics.score(outputs, self._references(examples), self.target.metric_tokens)

    def score_variants(
        self, variants: Sequence[Sequence[Prediction]], examples: Sequence[Example]
    ) -> list[dict[str, float]]:
        """Return the metrics of several lists of predictions for the same examples."""
        outputs = [[prediction.text for prediction in predictions] for predictions in variants]
        tokenize = self.target.metric_tokens
        return metrics.score_variants(outputs, self._references(examples), tokenize)

    def rewards(
        self, metric: str, outputs: Sequence[Sequence[int]], references: Sequence[Sequence[int]]
    ) -> list[float]:
        """Return the reward of each output, given as token ids, for training on a metric."""
        found, expected = (
            [self.target.decode(ids) for ids in side] for side in (outputs, references)
        )
        return metrics.rewards(metric, found, expected, self.target.metric_tokens)

    def intervals(
        self, predictions: Sequence[Prediction], examples: Sequence[Example]
    ) -> dict[str, tuple[float, float]]:
        """Return the 95 % bootstrap confidence interval of each metric."""
        outputs = [prediction.text for prediction in predictions]
        return metrics.intervals(outputs, self._references(examples), self.target.metric_tokens)

    def baseline_fits(self) -> list[BaselineFit]:
        """Return copying and the nearest neighbor; affix rules too if sources are characters."""
        if not self.source.sequential or self.source.media:
            return [BaselineFit(MostFrequentTarget.name, MostFrequentTarget.fit)]
        found = [BaselineFit(CopySource.name, CopySource.fit)]
        if self.source.characters:
            found.append(BaselineFit(AffixRules.name, AffixRules.fit))
        return [*found, *neighbor_fits(self.source)]

    def baseline_sources(self, sources: Sequence[Any]) -> list[str]:
        """Return the sources as texts."""
        return [self.source.text(source) for source in sources]

    def score_baseline(
        self, baseline: Baseline, examples: Sequence[Example], objective: Objective
    ) -> dict[str, float]:
        """Return the metrics of a baseline, without perplexity."""
        texts = baseline.predict(self.baseline_sources([example.source for example in examples]))
        return self.score([Prediction(self.target.normalize(t), None) for t in texts], examples)

    def loss_metrics(self, loss: float, parts: dict[str, float]) -> dict[str, float]:
        """Return the perplexity, from the loss without label smoothing."""
        return {"perplexity": math.exp(min(parts["nll"], 700.0))}

    def signatures(self, examples: Sequence[Example]) -> dict[str, str]:
        """Return the sacrebleu signature of each metric."""
        return metrics.signatures([example.references for example in examples])

    def check(self, train: Sequence[Pair], dev: Sequence[Pair]) -> DataCheck:
        """Return statistics of the data, and warnings about the data."""
        if self.tokenizer is None:
            sources = [[pair.source for pair in pairs] for pairs in (train, dev)]
            media = self.source.media_stats(*sources)
            return check_sources(self.source.kind, self.lengths(train), len(dev), media)
        sides = (self.tokenizer, self.target, self.max_length)
        large = large_base(train)
        if large is None:
            return check(train, dev, *sides, self.lengths(train))
        rows = subset_rows(train)
        key = make_key(
            *(large.key, b"" if rows is None else rows.tobytes()),
            *(self.tokenizer.content(), self.target.content(), self.max_length),
            [[pair.source, pair.target] for pair in dev],
        )
        _, found = cached(
            "checks", key, lambda _: check(train, dev, *sides, self.lengths(train)).as_dict()
        )
        return load_check(found)

    def _references(self, examples: Sequence[Example]) -> list[list[str]]:
        """Return the references as the target tokenizer would write them (whitespace, NFC)."""
        return [[self.target.normalize(text) for text in e.references] for e in examples]

    def save(self, folder: Path) -> None:
        """Write the input and the target tokenizer to `vocabulary/` in the run folder."""
        path = folder / "vocabulary"
        path.mkdir(parents=True, exist_ok=True)
        self.source.save(path)
        shared = self.tokenizer is self.target
        if not shared:
            self.target.save(path, "target")
        fields = {
            "shared": shared,
            "metric": self.metric,
            "ratio": self.ratio,
        }
        write_json(path / "task.json", fields)
