"""What open settings are chosen from: the size and the kind of the training data."""

from dataclasses import dataclass

LARGE = 500_000  # tokens from which on a model is made for speed
FEW = 128  # tokens of a vocabulary that short vectors tell apart


@dataclass(frozen=True)
class DataStats:
    """Statistics of the training data. tokens: of all sides, over all examples; outputs: tokens or
    labels that can be predicted; subwords: whether tokens are words or pieces of words; labels:
    whether predictions are labels; vectors: values per vector, if examples are vectors; inputs:
    tokens that a source may have; source: the kind of its input."""

    examples: int
    tokens: int
    outputs: int
    subwords: bool
    labels: bool = False
    vectors: int = 0
    inputs: int = 0
    source: str = "text"

    @property
    def reason(self) -> str:
        """What most settings are chosen by."""
        examples = f"{self.examples:,} examples" if self.examples > 1 else ""
        tokens = f"{self.tokens:,} tokens" if self.tokens > self.examples else ""
        return ", ".join(filter(None, (examples, tokens))) or "1 example"

    @property
    def is_large(self) -> bool:
        """Whether the data is large enough for models that are made for speed."""
        return self.tokens >= LARGE

    @property
    def has_few_tokens(self) -> bool:
        """Whether tokens are so few that short vectors tell them apart as well as long ones."""
        return 0 < self.inputs <= FEW and self.outputs <= FEW and self.is_large
