"""The question to a transducer: the output of its search or a given one, and the search's tree.

n copies, T target tokens with EOS, S source tokens with EOS, V vocabulary.
"""

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from regard.data.tensors.padded import Padded, shifted
from regard.data.tensors.special import BOS, EOS, SPECIALS
from regard.models.max_length import refuse_longer
from regard.search.explore import SearchTree
from regard.search.forced_decoding import score_targets
from regard.search.hypothesis import NON_OUTPUT_IDS, Hypothesis
from regard.search.scoring import Scoring
from regard.tasks.questions.notes import Note
from regard.tasks.questions.question import Asked, QuestionFacts, TokenizedText
from regard.tasks.questions.token_question import TokenQuestion, Tokens, tokens_of, unknown_notes


@dataclass(frozen=True, kw_only=True)
class TransduceQuestion(TokenQuestion):
    """A source and the output that the model is held to, EOS in both."""

    source: Padded  # (1, S)

    def logits(self, copies: int) -> Tensor:
        """Return (n, T, V): of each token after those before it."""
        model = self.asked.model
        inputs = shifted(torch.tensor([self.tokens], device=self.asked.device))
        state = model.start(self.source.copies(copies))
        return model.step(inputs.expand(copies, -1), state)[0].float()

    def outputs(self) -> int:
        return len(self.asked.task.target)

    def lengths(self) -> tuple[int, int]:
        return len(self.tokens), max(len(self.tokens), self.source.data.shape[1])


def transduce_question(asked: Asked) -> TransduceQuestion:
    """Return the question that the output of a search answers, or a given target."""
    task, text, engine = asked.task, asked.source, asked.predictor.engine
    names = task.source.names(text)
    asked.refuse_longer("text", len(names), "give a shorter text")
    engine.check(len(names))
    request = engine.own(task.search_request(task.rows([text]), [0], asked.search))
    request = replace(request, on_step=lambda rows, outputs: asked.on_step())
    best, tree = asked.search.explain(engine.stepper(), request)
    if asked.target is None:
        output = Tokens(best.tokens, list(map(task.target.name, best.tokens)), ())
        asked.refuse_longer("the answer", len(output.ids) + 1, "give a smaller max_length")
        notes = [Note("drawn.tree")] if tree is None else []
    else:
        output = tokens_of(task.target, asked.target)
        refuse_longer(asked.model, "decoder", len(output.ids) + 1)
        best, notes = _forced(asked, request.source, output, tree)
        asked.refuse_longer("target", len(output.ids) + 1, "give a shorter one")
    tokens = (*output.names, SPECIALS[EOS])
    question = TransduceQuestion(asked=asked, source=request.source, tokens=(*output.ids, EOS))
    facts = QuestionFacts(
        source=TokenizedText(text, tuple(names)),
        target=TokenizedText(asked.target or task.target.decode(output.ids), tokens),
        steps=question.steps(task.target.name, NON_OUTPUT_IDS, tokens),
        forced=asked.forced,
        inputs=(SPECIALS[BOS], *tokens[:-1]),
        score=best.score,
        truncated=best.truncated,
        unknown_tokens=(*task.source.unknown(text), *output.unknown),
        tree=None if tree is None else tree.as_dict(task.target),
        notes=tuple(notes),
    )
    return replace(question, facts=facts)


def _forced(
    asked: Asked, source: Padded, output: Tokens, tree: SearchTree | None
) -> tuple[Hypothesis, list[Note]]:
    """Return a given target as if the search had found it, and what must be known of that."""
    scoring: Scoring = getattr(asked.search, "scoring", Scoring("none"))
    (forced,) = score_targets(asked.predictor.engine.stepper(), source, [output.ids], scoring)
    notes = [Note("target.given")]
    if tree is not None:
        notes.append(Note("target.tree"))
    if scoring.coverage_penalty:
        notes.append(Note("target.coverage"))
    return forced, [*notes, *unknown_notes(output.unknown)]
