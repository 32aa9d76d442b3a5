"""The forced pass of a masked language model: the probability of each token if it is masked.

Shapes: n copies of the text, S tokens, V vocabulary size.
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
from regard.tasks.inspection.batched_pass import encode_text, log_odds, output_steps, unknown_notes
from regard.tasks.inspection.forced_pass import (
    ForcedOutput,
    ForcedPass,
    InspectionRequest,
    TokenizedText,
)
from regard.tasks.inspection.notes import Note

MAX_ABLATION_COST = 5e10  # encoder parameters x tokens, summed over all copies: a few seconds


@dataclass(frozen=True, kw_only=True)
class MaskedPass(ForcedPass):
    """The forced pass over a text in which any token can be masked.

    words: the words with their characters, if the model also reads characters.
    """

    source: Padded  # (1, S) tokens, or indices of word forms
    tokens: tuple[int, ...]
    words: WordRows | None = None

    def logits(self, masked: list[int]) -> Tensor:
        """Return the logits (n, V) at these positions, each masked in its own copy."""
        source = self.source.copies(len(masked))
        is_masked = torch.zeros(source.data.shape, dtype=torch.bool)
        is_masked[torch.arange(len(masked)), masked] = True
        mask = MASK if self.words is None else 0  # form 0 represents masked words
        return self._run(source._replace(data=source.data.masked_fill(is_masked, mask)), is_masked)

    def output_scores(self, parts: list[int]) -> Tensor:
        return log_odds(self.logits(parts), [self.tokens[part] for part in parts])

    def forward(self) -> None:
        """Run the model once over the text without masks."""
        self._run(self.source, torch.ones(self.source.data.shape, dtype=torch.bool))

    def _run(self, source: Padded, positions: Tensor) -> Tensor:
        """Return the logits at these positions."""
        batch = Batch(source if self.words is None else self.words.with_chars(source))
        device = self.request.device
        return self.request.model(batch.to(device), positions.to(device)).logits.float()

    def chunks(self) -> list[list[int]]:
        """Return all positions, in chunks whose copies fit into memory."""
        positions, size = list(range(len(self.tokens))), self.max_copies()
        return [positions[start : start + size] for start in range(0, len(positions), size)]

    def total_score(self, copies: int) -> Tensor:
        """Return the sum (1,) of the log probabilities of all tokens, each masked in turn."""
        total = 0.0
        for chunk in self.chunks():
            self.request.on_step()
            tokens = torch.tensor([[self.tokens[n]] for n in chunk])
            logp = self.logits(chunk).log_softmax(-1).cpu()
            total += float(logp.gather(1, tokens).double().sum())
        return torch.tensor([total], dtype=torch.double)

    def max_total_copies(self) -> int:
        return 1

    def too_expensive(self, heads: int) -> bool:
        """Return whether head ablation takes too long: each head needs one copy per token."""
        weights = num_parameters(self.request.model.encoder)
        return heads * len(self.tokens) ** 2 * weights > MAX_ABLATION_COST

    def lengths(self) -> tuple[int, int]:
        return len(self.tokens), len(self.tokens)

    def notes(self, internals: Sequence[Note]) -> tuple[Note, ...]:
        keys, notes = {note.key for note in internals}, list[Note]()
        if "attention.none" not in keys:
            notes.append(Note("masked.attention"))
            notes += [Note("masked.ablation")] if "heads.skipped" not in keys else []
        return super().notes((*notes, *internals))


def masked_pass(request: InspectionRequest) -> MaskedPass:
    """Return the forced pass over a text, with the probability of each token if masked."""
    task, text = request.task, request.source
    if request.forced:
        raise UserError(
            "target: not supported: a masked language model has no output of its own",
            help="drop the target",
        )
    forced_pass, names = _read(request)
    tokens, max_length = forced_pass.tokens, task.options.context_length
    if not tokens:
        raise UserError("text: empty, so no token can be masked")
    request.check_length("text", len(tokens), "shorten the text")
    if len(tokens) > max_length:
        raise UserError(
            f"text: {len(tokens):,} tokens exceed the context of {max_length:,} tokens",
            help="shorten the text",
        )
    with torch.inference_mode():
        probabilities = [
            forced_pass.logits(chunk).softmax(-1).cpu() for chunk in forced_pass.chunks()
        ]
    unknown_tokens = tuple(name for name, id in zip(names, tokens, strict=True) if id == UNK)
    shown = TokenizedText(text, tuple(names))
    steps = output_steps(
        torch.cat(probabilities), tokens, task.tokenizer.name, NON_OUTPUT_IDS, names
    )
    output = ForcedOutput(
        source=shown,
        target=shown,
        steps=steps,
        unknown_tokens=unknown_tokens,
        notes=(Note("masked.tokens"), *unknown_notes(unknown_tokens)),
    )
    return replace(forced_pass, output=output)


def _read(request: InspectionRequest) -> tuple[MaskedPass, list[str]]:
    """Tokenize the text. Return its forced pass, and the printable name of each token."""
    task, text = request.task, request.source
    if task.chars is None:
        ids, names, _ = encode_text(task.tokenizer, text)
        return MaskedPass(request=request, source=pad([ids]), tokens=tuple(ids)), names
    words = text.split()
    rows = split_words([words], task.tokenizer, task.chars)
    ids, source = rows.row(0).tolist(), rows.sentences.all()
    forced_pass = MaskedPass(request=request, source=source, tokens=tuple(ids), words=rows)
    return forced_pass, list(map(printable, words))
