"""Language models: running text, each token predicted from others."""

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
from regard.data.corpus.stream import MaskedCorpus, StreamCorpus, cut, masked_words
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
from regard.tasks.task import Evaluation, Prediction, Task
from regard.tasks.task_loss import losses
from regard.tasks.token_nll import document_row, figures, stateful_nll, windowed_nll

SAMPLES = 2  # texts written at each validation


class LanguageModelTask(Task):
    """A vocabulary, and how the text is cut into windows. letters: of words, where they count."""

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
        ends: bool = True,
    ) -> None:
        self.tokenizer = tokenizer
        self.chars = chars
        self.source = token_input(tokenizer, chars)
        self.options = options  # context_length, eval_overlap, window_order and metric
        self.masked = masked
        self.ends = ends  # whether the end of a text counts: not where training saw a single one
        self.metric: str = options.metric
        if masked:
            self.abilities = frozenset({"score texts"})  # says why it cannot
            tasks = "classify|transduce" if chars is None else "tag"
            self.usage_hint = f"regard train DATA --task {tasks} --init-from {{run}}"

    @property
    def output_tokenizer(self) -> Tokenizer | None:
        """The vocabulary of the text; None where words are also read by their characters."""
        return self.tokenizer if self.chars is None else None

    def build(self, options: Any) -> nn.Module:
        """A model for this vocabulary."""
        return options.build(self.source.shape)

    def corpus(self, pairs: Sequence[Pair]) -> StreamCorpus | MaskedCorpus:
        """The documents as numbers."""
        texts, context = [pair.target for pair in pairs], self.options.context_length
        if self.chars is not None:
            assert isinstance(self.tokenizer, TableTokenizer)
            return masked_words(texts, self.tokenizer, self.chars, context)
        rows = self.tokenizer.encode_all(texts)
        if self.masked:
            return MaskedCorpus(Ragged.of(cut(rows, context)))
        return StreamCorpus(Ragged.of(rows, EOS), context, False, self.options.eval_overlap)

    def reorder_for(self, corpus: Corpus, model: nn.Module) -> Corpus:
        """Windows one after the other for models that carry their memory on."""
        if self.masked:
            return corpus
        assert isinstance(corpus, StreamCorpus)
        order = self.options.window_order
        carries = getattr(model, "carries", False)
        return replace(corpus, sequential=carries if order == "auto" else order == "sequential")

    def stats(self, corpus: Corpus) -> DataStats:
        """What the choice of a model depends on."""
        words = not self.tokenizer.characters
        tokens, outputs = int(corpus.lengths.sum()), len(self.tokenizer)
        return DataStats(len(corpus), tokens, outputs, words, source=self.source.kind)

    def solve(self, model: nn.Module, corpus: Corpus, objective: Objective) -> None:
        """Counts n-grams."""
        count: Any = getattr(model, "solve", None)
        if count is None:
            return super().solve(model, corpus, objective)
        assert isinstance(corpus, StreamCorpus)
        return count(corpus.side.flat)

    def rows(self, sources: Sequence[str]) -> PromptRows:  # type: ignore[override]
        """The prompts as tokens."""
        self._refuse_masked()
        return PromptRows([self.tokenizer.encode(source) for source in sources])

    def search_request(self, rows: PromptRows, part: list[int], search: Any) -> SearchRequest:
        """What a search is asked about these prompts."""
        return SearchRequest(
            prompts=[rows.prompts[i] for i in part], context=self.options.context_length
        )

    def make_prediction(
        self, source: str, row: Any, found: SearchResult, search: Any, nbest: int
    ) -> Prediction:
        """How a text continues, the first way with all others as alternatives."""
        prompt, unknown = row.tolist(), self.source.unknown(source, row)
        before = len(self.tokenizer.decode(prompt))
        texts = []
        for one in found:
            text = source + self.tokenizer.decode([*prompt, *one.tokens])[before:]
            names = tuple(map(self.tokenizer.name, one.tokens))
            texts.append(Prediction(text, None, tokens=names, unknown_tokens=unknown, value=text))
        return replace(texts[0], nbest=tuple(texts))

    def partial_prediction(self, source: str) -> Callable[[PartialHypothesis], Prediction]:
        """What makes an answer of an output that is not whole yet; each token is named once."""
        name, prompt = cache(self.tokenizer.name), self.tokenizer.encode(source)
        before = len(self.tokenizer.decode(prompt))

        def grown(so_far: PartialHypothesis) -> Prediction:
            text = source + self.tokenizer.decode([*prompt, *so_far.tokens])[before:]
            return Prediction(text, None, tokens=tuple(map(name, so_far.tokens)), value=text)

        return grown

    def stream(self, model: Any, prompt: str, search: Sample, row: int = 0) -> Iterator[str]:
        """How a text goes on, piece by piece."""
        (ids,) = self.rows([prompt]).prompts
        return self._pieces(
            continue_prompts(model, [ids], [row], search, self.max_context(model)), ids
        )

    def _pieces(self, drawn: Iterator[dict[int, int]], prompt: list[int]) -> Iterator[str]:
        tokens, done, before = list(prompt), "", len(self.tokenizer.decode(prompt))
        for token in drawn:
            tokens += token.values()
            text = self.tokenizer.decode(tokens)[before:]
            if text.startswith(done) and not text.endswith("\ufffd"):
                yield text[len(done) :]
                done = text

    def forced_pass(self, request: InspectionRequest) -> ForcedPass:
        """Return the pass over a text and its continuation, or over its masked tokens."""
        return masked_pass(request) if self.masked else language_model_pass(request)

    def inspection_search(self, given: dict[str, Any]) -> dict[str, Any]:
        """The settings; without any a text continues a little, and greedily."""
        return continuation_search(given)

    def max_context(self, model: Any) -> int | None:
        """How many tokens a model can look back; None: any number."""
        return None if model.unbounded else self.options.context_length

    def _refuse_masked(self) -> None:
        if self.masked:
            raise UserError(
                "this model fills gaps and cannot write on; start a tagger, a classifier or a "
                "transducer from it: regard train DATA --init-from MODEL"
            )

    @torch.inference_mode()
    def token_nll(
        self, model: nn.Module, texts: Sequence[str], batch_size: int
    ) -> list[np.ndarray]:
        """-log p of each token of each text, in nats; EOS is the last one, where ends count."""
        self._refuse_masked()
        corpus = self.corpus([Pair("", text, 0) for text in texts])
        assert isinstance(corpus, StreamCorpus)
        whole: Any = getattr(model, "log_probabilities", None)
        if whole is not None:
            found = -whole(corpus.side.flat).cpu().numpy()
        elif model.carries:
            found = stateful_nll(model, corpus, batch_size)
        else:
            found = windowed_nll(model, corpus, batch_size)
        rows = np.split(found, corpus.side.starts[1:])
        return rows if self.ends else [row[:-1] for row in rows]

    def score_pairs(
        self, engine: Any, pairs: Sequence[Pair], rows: int
    ) -> list[tuple[dict[str, Any], Prediction]]:
        """nats, tokens, characters, loss, perplexity and bits per character of each text."""
        texts = [pair.target for pair in pairs]
        found = self.token_nll(engine.stepper(), texts, rows)
        return [
            (
                document_row(nats, text),
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
        """loss, perplexity and bits per character, over all and for each document."""
        model = predictor.engine.stepper()
        texts = [example.references[0] for example in examples]
        if self.masked:
            corpus = self.corpus([Pair("", text, 0) for text in texts])
            if not sum(objective.count(batch) for batch in corpus.passes(batch_size)):
                raise UserError("no token of the dev part is known, so there is nothing to mask")
            loss, _ = losses(model, corpus.passes(batch_size), objective)
            scores = {"loss": loss, "perplexity": math.exp(min(loss, 700.0))}
            return Evaluation(scores, loss, [])
        mine = parallel.shard_items(texts)
        found = parallel.all_gather(self.token_nll(model, mine, batch_size) if mine else [])
        rows = [document_row(nats, text) for nats, text in zip(found, texts, strict=True)]
        totals = {key: sum(row[key] for row in rows) for key in ("nats", "tokens", "characters")}
        loss = totals["nats"] / totals["tokens"]
        written = predictor.predict([""] * SAMPLES, search)
        return Evaluation(figures(**totals), loss, written, {"documents": rows[:100]})

    def samples(self, evaluation: Evaluation, examples: Sequence[Example]) -> list[dict[str, Any]]:
        """Texts that the model wrote."""
        return [{"kind": "generated", "text": p.text} for p in evaluation.predictions]

    def check(self, train: Sequence[Pair], dev: Sequence[Pair]) -> DocumentCheck:
        """What is in the text, and what is odd."""
        return check_documents([p.target for p in train], [p.target for p in dev], self.tokenizer)

    def save(self, folder: Path) -> None:
        """Writes `vocabulary/`."""
        place = folder / "vocabulary"
        place.mkdir(parents=True, exist_ok=True)
        self.tokenizer.save(place, "text")
        if self.chars is not None:
            self.chars.save(place, "chars")
        write_json(place / "task.json", {"masked": self.masked, "ends": self.ends})
