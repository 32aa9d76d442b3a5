"""The question to a model that fills gaps: what it takes each token for if it is masked.

n copies, S tokens, V vocabulary.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from regard.core.errors import UserError
from regard.data.corpus.words import WordRows, split_words
from regard.data.tensors.padded import Batch, Padded, pad
from regard.data.tensors.special import MASK, UNK
from regard.data.tokenizers.display_names import printable
from regard.nn.quantize import num_parameters
from regard.search.hypothesis import NON_OUTPUT_IDS
from regard.tasks.questions.notes import Note
from regard.tasks.questions.question import Asked, Question, QuestionFacts, TokenizedText
from regard.tasks.questions.token_question import log_odds, steps_of, tokens_of, unknown_notes

WORK = 5e10  # weights of the encoder times tokens read, over all copies: some seconds


@dataclass(frozen=True, kw_only=True)
class MaskedQuestion(Question):
    """A text of which any token can be masked. words: those that are read by characters."""

    source: Padded  # (1, S) tokens, or indices of the forms of the words
    tokens: tuple[int, ...]
    words: WordRows | None = None

    def logits(self, masked: list[int]) -> Tensor:
        """Return (n, V): of each of these tokens, masked in a copy of its own."""
        source = self.source.copies(len(masked))
        chosen = torch.zeros(source.data.shape, dtype=torch.bool)
        chosen[torch.arange(len(masked)), masked] = True
        mask = MASK if self.words is None else 0  # the first form is no word
        return self._run(source._replace(data=source.data.masked_fill(chosen, mask)), chosen)

    def each(self, parts: list[int]) -> Tensor:
        return log_odds(self.logits(parts), [self.tokens[part] for part in parts])

    def read(self) -> None:
        """Run the model over the text as it is, nothing masked."""
        self._run(self.source, torch.ones(self.source.data.shape, dtype=torch.bool))

    def _run(self, source: Padded, chosen: Tensor) -> Tensor:
        batch = Batch(source if self.words is None else self.words.spelled(source))
        device = self.asked.device
        return self.asked.model(batch.to(device), chosen.to(device)).logits.float()

    def parts(self) -> list[list[int]]:
        """Return the positions of all tokens, as many at a time as fit into memory."""
        every, size = list(range(len(self.tokens))), self.at_once()
        return [every[at : at + size] for at in range(0, len(every), size)]

    def totals(self, copies: int) -> Tensor:
        """Return (1,): the sum of the log probabilities of all tokens, each masked in turn."""
        found = 0.0
        for part in self.parts():
            self.asked.on_step()
            own = torch.tensor([[self.tokens[n]] for n in part])
            logp = self.logits(part).log_softmax(-1).cpu()
            found += float(logp.gather(1, own).double().sum())
        return torch.tensor([found], dtype=torch.double)

    def totals_at_once(self) -> int:
        return 1

    def dear(self, heads: int) -> bool:
        """Return whether it takes too long: each head takes as many copies as there are tokens."""
        weights = num_parameters(self.asked.model.encoder)
        return heads * len(self.tokens) ** 2 * weights > WORK

    def lengths(self) -> tuple[int, int]:
        return len(self.tokens), len(self.tokens)

    def notes(self, seen: Sequence[Note]) -> tuple[Note, ...]:
        keys, notes = {note.key for note in seen}, list[Note]()
        if "attention.none" not in keys:
            notes.append(Note("gaps.attention"))
            notes += [Note("gaps.silenced")] if "heads.dear" not in keys else []
        return super().notes((*notes, *seen))


def masked_question(asked: Asked) -> MaskedQuestion:
    """Return the question what each token is taken for."""
    task, text = asked.task, asked.source
    if asked.forced:
        raise UserError("target: this model fills gaps in a text and writes nothing; leave it out")
    question, names = _read(asked)
    tokens, longest = question.tokens, task.options.context_length
    if not tokens:
        raise UserError("text is empty: there is no token to hide; give a text")
    asked.refuse_longer("text", len(tokens), "give a shorter text")
    if len(tokens) > longest:
        raise UserError(
            f"text: {len(tokens):,} tokens, the model reads {longest:,}; give a shorter text"
        )
    with torch.inference_mode():
        found = [question.logits(part).softmax(-1).cpu() for part in question.parts()]
    unknown = tuple(name for name, id in zip(names, tokens, strict=True) if id == UNK)
    shown = TokenizedText(text, tuple(names))
    facts = QuestionFacts(
        source=shown,
        target=shown,
        steps=steps_of(torch.cat(found), tokens, task.tokenizer.name, NON_OUTPUT_IDS, names),
        unknown_tokens=unknown,
        notes=(Note("gaps.hidden"), *unknown_notes(unknown)),
    )
    return replace(question, facts=facts)


def _read(asked: Asked) -> tuple[MaskedQuestion, list[str]]:
    """Return the text as the model reads it, and the names of its tokens."""
    task, text = asked.task, asked.source
    if task.chars is None:
        ids, names, _ = tokens_of(task.tokenizer, text)
        return MaskedQuestion(asked=asked, source=pad([ids]), tokens=tuple(ids)), names
    words = text.split()
    rows = split_words([words], task.tokenizer, task.chars)
    ids, source = rows.row(0).tolist(), rows.sentences.all()
    question = MaskedQuestion(asked=asked, source=source, tokens=tuple(ids), words=rows)
    return question, list(map(printable, words))
