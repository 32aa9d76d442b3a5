"""The unigram baseline of language models: fitted on token ids, scored as the models are."""

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import torch
from torch import Tensor, nn

from regard.baselines import Baseline, BaselineFit, Unigram
from regard.core.errors import UserError
from regard.data.corpus.corpora import Corpus
from regard.data.corpus.words import word_key
from regard.data.reading.read import Example, Pair
from regard.data.tensors.padded import Batch, Outputs
from regard.data.tensors.special import EOS, SPECIALS
from regard.data.tokenizers.tokenizer import TableTokenizer, Tokenizer
from regard.objectives import Objective
from regard.tasks.scoring import MAX_BASELINE_CHARACTERS
from regard.tasks.task import Task
from regard.tasks.token_nll import nll_metrics

BATCH_SIZE = 64


class UnigramScoring(Task):
    """Mixin of language modeling: its baseline is the unigram model."""

    tokenizer: Tokenizer
    chars: TableTokenizer | None
    masked: bool
    scores_eos: bool

    def baseline_fits(self) -> list[BaselineFit]:
        """Return the unigram model."""
        return [BaselineFit(Unigram.name, self._fit_unigram)]

    def baseline_sample(self, pairs: Sequence[Pair]) -> tuple[list[Pair], str]:
        """Return the documents to fit baselines on, truncated, and a note if not all."""
        sample, _ = super().baseline_sample(pairs)
        short = [replace(pair, target=pair.target[:MAX_BASELINE_CHARACTERS]) for pair in sample]
        used, total = (sum(len(pair.target) for pair in part) for part in (short, pairs))
        note = f"fitted on {used:,} of {total:,} characters of the training set"
        return short, note if used < total else ""

    def _fit_unigram(self, sources: Sequence[str], targets: Sequence[str]) -> Unigram | None:
        rows = self._scored_ids(targets)
        return Unigram.of(np.concatenate(rows), len(self.tokenizer)) if rows else None

    def _scored_ids(self, texts: Sequence[str]) -> list[np.ndarray]:
        """Return the token ids of each text that count in the metrics."""
        if self.chars is not None:
            assert isinstance(self.tokenizer, TableTokenizer)
            found = [self.tokenizer.ids_of(map(word_key, text.split())) for text in texts]
        else:
            found = self.tokenizer.encode_all(texts)
        if self.masked:  # special tokens, such as UNK, are never masked
            return [(row := np.array(ids, np.int64))[row >= len(SPECIALS)] for ids in found]
        end = [EOS] if self.scores_eos else []
        return [np.array([*ids, *end], np.int64) for ids in found]

    def score_baseline(
        self, baseline: Baseline, examples: Sequence[Example], objective: Objective
    ) -> dict[str, float]:
        """Return loss, perplexity and bits per character of the unigram model."""
        assert isinstance(baseline, Unigram)
        texts = [example.references[0] for example in examples]
        logs = log_probabilities(baseline, len(self.tokenizer))
        if not self.masked:
            return text_metrics(logs, self._scored_ids(texts), texts)
        loss = masked_loss(logs, self.corpus([Pair("", text, 0) for text in texts]), objective)
        return {"loss": loss, "perplexity": math.exp(min(loss, 700.0))}


class MaskedUnigram(nn.Module):
    """A masked language model with the same logits (V,) at each masked position."""

    def __init__(self, logits: Tensor) -> None:
        super().__init__()
        self.logits = logits

    def forward(self, batch: Batch, positions: Tensor) -> Outputs:
        """Return the logits (N, V) of the masked tokens. positions: where they are (B, S)."""
        return Outputs(self.logits.expand(int(positions.sum()), -1))


def log_probabilities(unigram: Unigram, size: int) -> np.ndarray:
    """Return log p (V,) of each token; raise UserError unless the vocabulary has this size."""
    if len(unigram.counts) != size:
        raise UserError(f"expected the counts of {size:,} tokens, found {len(unigram.counts):,}")
    return unigram.log_probabilities()


def text_metrics(
    logs: np.ndarray, rows: Sequence[np.ndarray], texts: Sequence[str]
) -> dict[str, float]:
    """Return loss, perplexity and bits per character of texts. rows: their token ids."""
    nats = -sum(float(logs[row].sum()) for row in rows)
    return nll_metrics(nats, sum(map(len, rows)), sum(map(len, texts)))


@torch.inference_mode()
def masked_loss(logs: np.ndarray, corpus: Corpus, objective: Objective) -> float:
    """Return the mean loss at the positions that the objective masks in evaluation."""
    model = MaskedUnigram(torch.from_numpy(logs).float()).eval()
    losses = [objective(model, batch) for batch in corpus.passes(BATCH_SIZE)]
    return sum(float(loss.sum) for loss in losses) / max(1.0, sum(loss.count for loss in losses))
