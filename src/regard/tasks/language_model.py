"""Language modeling on plain text, causal or masked."""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from regard.core import parallel
from regard.core.data_stats import DataStats
from regard.core.errors import UserError
from regard.core.files import write_json
from regard.data.checks.check_documents import DocumentCheck, check_documents
from regard.data.corpus.corpora import Corpus
from regard.data.corpus.ragged import Ragged
from regard.data.corpus.stream import MaskedCorpus, StreamCorpus, masked_words, split_rows
from regard.data.reading.read import Example, Pair
from regard.data.tensors.special import EOS
from regard.data.tokenizers.tokenizer import TableTokenizer, Tokenizer
from regard.inputs import token_input
from regard.objectives import Objective
from regard.search import Sample
from regard.search.callbacks import PartialHypothesis
from regard.search.sample import continue_prompts
from regard.search.search import SearchRequest, SearchResult
from regard.tasks.inspection.forced_pass import ForcedPass, InspectionRequest
from regard.tasks.inspection.language_model_pass import continuation_search, language_model_pass
from regard.tasks.inspection.masked_pass import masked_pass
from regard.tasks.rows import PromptRows
from regard.tasks.task import Evaluation, Prediction
from regard.tasks.task_loss import losses
from regard.tasks.token_nll import document_metrics, nll_metrics, stateful_nll, windowed_nll
from regard.tasks.unigram_scoring import UnigramScoring

NUM_SAMPLES = 2  # texts generated at each validation


class LanguageModelTask(UnigramScoring):
    """The language modeling task.

    chars: vocabulary of characters, if the model also reads the characters of words; otherwise
    None. masked: whether the model is a masked language model. scores_eos: whether the probability
    of EOS counts; False if the training set was a single document.
    """

    kind = "language-model"
    abilities = frozenset({"predict", "nbest", "stream", "score texts", "continue"})
    unit = "documents"
    reads_source = False
    writes_text = True

    def __init__(
        self,
        tokenizer: Tokenizer,
        chars: TableTokenizer | None,
        options: Any,
        masked: bool,
        scores_eos: bool = True,
    ) -> None:
        self.tokenizer = tokenizer
        self.chars = chars
        self.source = token_input(tokenizer, chars)
        self.options = options  # context_length, eval_overlap, window_order and metric
        self.masked = masked
        self.scores_eos = scores_eos
        self.metric: str = options.metric
        if masked:
            self.abilities = frozenset({"score texts"})  # `_check_causal` then explains the error
            tasks = "classify|transduce" if chars is None else "tag"
            self.usage_hint = f"regard train DATA --task {tasks} --init-from {{run}}"

    @property
    def output_tokenizer(self) -> Tokenizer | None:
        """The tokenizer of the text; None if the model also reads the characters of words."""
        return self.tokenizer if self.chars is None else None

    def build(self, options: Any) -> nn.Module:
        """Return an untrained model with the size of this vocabulary."""
        return options.build(self.source.shape)

    def corpus(self, pairs: Sequence[Pair]) -> StreamCorpus | MaskedCorpus:
        """Return the documents as token ids."""
        texts, context = [pair.target for pair in pairs], self.options.context_length
        if self.chars is not None:
            assert isinstance(self.tokenizer, TableTokenizer)
            return masked_words(texts, self.tokenizer, self.chars, context)
        rows = self.tokenizer.encode_all(texts)
        if self.masked:
            return MaskedCorpus(Ragged.of(split_rows(rows, context)))
        return StreamCorpus(Ragged.of(rows, EOS), context, False, self.options.eval_overlap)

    def reorder_for(self, corpus: Corpus, model: nn.Module) -> Corpus:
        """Return the corpus with windows in text order if the model carries its state over.

        A window is a slice of `context_length` tokens. `window_order` overrides the default.
        """
        if self.masked:
            return corpus
        assert isinstance(corpus, StreamCorpus)
        order = self.options.window_order
        carries = getattr(model, "carries", False)
        return replace(corpus, sequential=carries if order == "auto" else order == "sequential")

    def stats(self, corpus: Corpus) -> DataStats:
        """Return the data statistics from which default settings are chosen."""
        words = not self.tokenizer.characters
        tokens, outputs = int(corpus.lengths.sum()), len(self.tokenizer)
        return DataStats(
            len(corpus), tokens, outputs, words, source=self.source.kind, target_tokens=tokens
        )

    def solve(self, model: nn.Module, corpus: Corpus, objective: Objective) -> None:
        """Count the n-grams of the corpus: the closed-form solution of an n-gram model."""
        count: Any = getattr(model, "solve", None)
        if count is None:
            return super().solve(model, corpus, objective)
        assert isinstance(corpus, StreamCorpus)
        return count(corpus.side.flat)

    def rows(self, sources: Sequence[str]) -> PromptRows:
        """Return the prompts as token ids."""
        self._check_causal()
        return PromptRows([self.tokenizer.encode(source) for source in sources])

    def search_request(self, rows: PromptRows, part: list[int], search: Any) -> SearchRequest:
        """Return the search request for one batch. part: indices of the prompts in the batch."""
        return SearchRequest(
            prompts=[rows.prompts[i] for i in part], context=self.options.context_length
        )

    def make_prediction(
        self, source: str, row: Any, found: SearchResult, search: Any, nbest: int
    ) -> Prediction:
        """Return a text with its first continuation; the n-best list has all continuations."""
        prompt, unknown = row.tolist(), self.source.unknown(source, row)
        before = len(self.tokenizer.decode(prompt))
        texts = []
        for one in found:
            text = source + self.tokenizer.decode([*prompt, *one.tokens])[before:]
            names = tuple(map(self.tokenizer.name, one.tokens))
            texts.append(Prediction(text, None, tokens=names, unknown_tokens=unknown, value=text))
        return replace(texts[0], nbest=tuple(texts))

    def partial_prediction(self, source: str) -> Callable[[PartialHypothesis], Prediction]:
        """Return a function that turns an unfinished continuation into a prediction."""
        name, prompt = cache(self.tokenizer.name), self.tokenizer.encode(source)
        before = len(self.tokenizer.decode(prompt))

        def predict(partial: PartialHypothesis) -> Prediction:
            text = source + self.tokenizer.decode([*prompt, *partial.tokens])[before:]
            return Prediction(text, None, tokens=tuple(map(name, partial.tokens)), value=text)

        return predict

    def stream(self, model: Any, prompt: str, search: Sample, index: int = 0) -> Iterator[str]:
        """Yield a continuation of a prompt, piece by piece.

        index: number of the random sample. With the same seed and index, the text is the same.
        """
        (ids,) = self.rows([prompt]).prompts
        return self._pieces(
            continue_prompts(model, [ids], [index], search, self.max_context(model)), ids
        )

    def _pieces(self, sampled: Iterator[dict[int, int]], prompt: list[int]) -> Iterator[str]:
        tokens, done, before = list(prompt), "", len(self.tokenizer.decode(prompt))
        for token in sampled:
            tokens += token.values()
            text = self.tokenizer.decode(tokens)[before:]
            if text.startswith(done) and not text.endswith("\ufffd"):
                yield text[len(done) :]
                done = text

    def forced_pass(self, request: InspectionRequest) -> ForcedPass:
        """Return the forced pass over a text: with its continuation, or with each token masked."""
        return masked_pass(request) if self.masked else language_model_pass(request)

    def inspection_search(self, options: dict[str, Any]) -> dict[str, Any]:
        """Return the search options of an inspection; default: a short greedy continuation."""
        return continuation_search(options)

    def max_context(self, model: Any) -> int | None:
        """Return the maximum context length of a model; None: unlimited."""
        return None if model.unbounded else self.options.context_length

    def _check_causal(self) -> None:
        if self.masked:
            raise UserError(
                "a masked language model cannot generate or score text",
                help="fine-tune it: regard train DATA --task tag|classify|transduce --init-from "
                "MODEL",
            )

    @torch.inference_mode()
    def token_nll(
        self, model: nn.Module, texts: Sequence[str], batch_size: int
    ) -> list[np.ndarray]:
        """Return -log p (in nats) of each token of each text, including EOS if `scores_eos`."""
        self._check_causal()
        corpus = self.corpus([Pair("", text, 0) for text in texts])
        assert isinstance(corpus, StreamCorpus)
        log_probabilities: Any = getattr(model, "log_probabilities", None)
        if log_probabilities is not None:
            found = -log_probabilities(corpus.side.flat).cpu().numpy()
        elif model.carries:
            found = stateful_nll(model, corpus, batch_size)
        else:
            found = windowed_nll(model, corpus, batch_size)
        rows = np.split(found, corpus.side.starts[1:])
        return rows if self.scores_eos else [row[:-1] for row in rows]

    def score_pairs(
        self, engine: Any, pairs: Sequence[Pair], rows: int
    ) -> list[tuple[dict[str, Any], Prediction]]:
        """Return nats, tokens, characters, loss, perplexity and bits per character of each text."""
        texts = [pair.target for pair in pairs]
        found = self.token_nll(engine.stepper(), texts, rows)
        return [
            (
                document_metrics(nats, text),
                Prediction(text, None, unknown_tokens=self.source.unknown(text)),
            )
            for nats, text in zip(found, texts, strict=True)
        ]

    def evaluate(
        self,
        predictor: Any,
        examples: Sequence[Example],
        objective: Objective,
        search: Any,
        batch_size: int,
    ) -> Evaluation:
        """Return loss, perplexity and bits per character, in total and per document."""
        model = predictor.engine.stepper()
        texts = [example.references[0] for example in examples]
        if self.masked:
            corpus = self.corpus([Pair("", text, 0) for text in texts])
            if not sum(objective.count(batch) for batch in corpus.passes(batch_size)):
                raise UserError("the dev set has only unknown tokens: nothing to mask")
            loss, _ = losses(model, corpus.passes(batch_size), objective)
            scores = {"loss": loss, "perplexity": math.exp(min(loss, 700.0))}
            return Evaluation(scores, loss, [])
        mine = parallel.shard_items(texts)
        found = parallel.all_gather(self.token_nll(model, mine, batch_size) if mine else [])
        rows = [document_metrics(nats, text) for nats, text in zip(found, texts, strict=True)]
        totals = {key: sum(row[key] for row in rows) for key in ("nats", "tokens", "characters")}
        loss = totals["nats"] / totals["tokens"]
        generated = predictor.predict([""] * NUM_SAMPLES, search)
        return Evaluation(nll_metrics(**totals), loss, generated, {"documents": rows[:100]})

    def samples(self, evaluation: Evaluation, examples: Sequence[Example]) -> list[dict[str, Any]]:
        """Return the generated texts."""
        return [{"kind": "generated", "text": p.text} for p in evaluation.predictions]

    def check(self, train: Sequence[Pair], dev: Sequence[Pair]) -> DocumentCheck:
        """Return statistics of the documents, and warnings about the documents."""
        return check_documents([p.target for p in train], [p.target for p in dev], self.tokenizer)

    def save(self, folder: Path) -> None:
        """Write the tokenizers to `vocabulary/` in the run folder."""
        path = folder / "vocabulary"
        path.mkdir(parents=True, exist_ok=True)
        self.tokenizer.save(path, "text")
        if self.chars is not None:
            self.chars.save(path, "chars")
        fields = {"masked": self.masked, "scores_eos": self.scores_eos}
        write_json(path / "task.json", fields)
