"""Random searches over random models of every decoder kind, for laws that hold for all of them."""

import random
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any

import torch
from torch import nn

from regard.data.tensors.padded import Padded, pad
from regard.data.tensors.special import EOS
from regard.inputs.input import InputShape
from regard.search import Beam, Hypothesis, Sample, SearchRequest, TokenConstraints

from .conftest import MODELS, SOURCE_SIZE, TARGET_SIZE

SIZES = (7, 1)  # sentences in a batch
LETTERS = range(5, TARGET_SIZE)


def decoder_kind(number: int) -> str:
    """The kind of a model's decoder; of a recurrent one also its cell."""
    decoder: Any = MODELS[number].decoder
    return decoder.kind if decoder.kind != "recurrent" else f"recurrent-{decoder.cell}"


KINDS = {
    kind: [n for n in range(len(MODELS)) if decoder_kind(n) == kind]
    for kind in sorted(set(map(decoder_kind, range(len(MODELS)))))
}


@cache
def built(number: int) -> nn.Module:
    """A model in double precision: what is equal on paper is equal then to fifteen places.

    In single precision two outputs may come so close that another order of summation, which is
    all that a batch is, decides between them.
    """
    return (
        MODELS[number]
        .build(InputShape("text", SOURCE_SIZE), TARGET_SIZE, shared=False)
        .double()
        .eval()
    )


@dataclass(frozen=True)
class Case:
    """A random model, random sources and a random search: all of it follows from the seed."""

    kind: str
    seed: int

    @cached_property
    def chance(self) -> random.Random:
        return random.Random(f"{self.kind} {self.seed}")

    @cached_property
    def number(self) -> int:
        return KINDS[self.kind][self.seed % len(KINDS[self.kind])]  # each comes

    @cached_property
    def model(self) -> nn.Module:
        """The model with weights of this case; the next case has others."""
        model = built(self.number)
        weights = torch.Generator().manual_seed(self.seed)
        strength = self.chance.choice([0.2, 0.4, 0.7])
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.normal_(0, strength, generator=weights)
        return model

    @cached_property
    def sources(self) -> list[list[int]]:
        """Sources of one to nine tokens, 64 or fewer of them."""
        letters, many = range(5, SOURCE_SIZE), self.chance.choice([64, 16, 12, 9])
        lengths = [self.chance.choice([0, 1, 2, 3, 5, 8]) for _ in range(many)]
        return [[*self.chance.choices(letters, k=n), EOS] for n in lengths]

    @cached_property
    def limits(self) -> list[int]:
        return [self.chance.randint(1, 7) for _ in self.sources]

    @cached_property
    def attends(self) -> bool:
        return MODELS[self.number].decoder.cross.kind != "none"

    @cached_property
    def search(self) -> Beam | Sample:
        """A beam in three cases of four, else sampling."""
        chance = self.chance
        both = {
            "min_length": chance.choice([0, 0, 2]),
            "no_repeat_ngram": chance.choice([0, 0, 1, 2]),
        }
        if chance.random() < 0.25:
            return Sample(
                temperature=chance.choice([0, 0.5, 1, 1.5]),
                top_k=chance.choice([None, 1, 3]),
                top_p=chance.choice([None, 0.6, 0.9]),
                min_p=chance.choice([None, 0.1]),
                seed=chance.randint(1, 1000),
                **both,
            )
        beam = chance.randint(1, 5)
        return Beam(
            beam=beam,
            length_norm=chance.choice(["average", "gnmt", "none"]),
            length_penalty=chance.choice([0, 0.6, 0.75, 1, 1.5]),
            coverage_penalty=chance.choice([0, 0, 0.3]) if self.attends else 0,
            stopping=chance.choice(["no_gain", "beam_full", "optimal", "first"]),
            beam_groups=chance.choice([g for g in range(1, beam + 1) if beam % g == 0]),
            diversity_penalty=chance.choice([0, 0.5, 2]),
            **both,
        )

    @cached_property
    def nbest(self) -> int:
        return self.chance.choice([1, 1, 2, 4])

    @cached_property
    def constraints(self) -> list[TokenConstraints] | None:
        """Constraints of some of the sentences, in every third case."""
        if self.chance.random() < 2 / 3:
            return None
        return [
            self._constraint() if self.chance.random() < 0.4 else TokenConstraints()
            for _ in self.sources
        ]

    def _constraint(self) -> TokenConstraints:
        chance = self.chance
        prefix = tuple(chance.choices(LETTERS, k=chance.randint(0, 3)))
        banned = (
            ((chance.choice(LETTERS), chance.choice(LETTERS)),) if chance.random() < 0.5 else ()
        )
        require: tuple[tuple[int, ...], ...] = ()
        if isinstance(self.search, Beam) and not banned and not self.search.no_repeat_ngram:
            count = chance.randint(0, 2)
            require = tuple(
                tuple(chance.choices(LETTERS, k=chance.randint(1, 2))) for _ in range(count)
            )
        return TokenConstraints(prefix, require, banned)

    def parts(self) -> list[tuple[list[int], int]]:
        """Batches: which of the sentences, in which order, and how much more padding."""
        many = len(self.sources)
        sizes = (many, *SIZES) if self.chance.random() < 0.2 else SIZES
        rows = [self.chance.sample(range(many), k=size) for size in sizes]
        return [(row, self.chance.choice([0, 0, 1, 5])) for row in rows]

    def run(self, stepper: Any, rows: list[int], padding: int = 0) -> list[list[Hypothesis]]:
        """The outputs for these sentences, together in one batch."""
        source = pad([self.sources[row] for row in rows])
        more = (0, padding)
        data = nn.functional.pad(source.data, more)
        source = Padded(data, nn.functional.pad(source.mask, more))
        constraints = None if self.constraints is None else [self.constraints[row] for row in rows]
        limits = torch.tensor([self.limits[row] for row in rows])
        request = SearchRequest(source, limits, self.nbest, constraints=constraints)
        return self.search.run(stepper, request)
