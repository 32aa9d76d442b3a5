"""Statistics of the training data, from which unset settings are chosen."""

from dataclasses import dataclass

LARGE_TOKENS = 500_000  # from this many tokens on, defaults favor speed
SMALL_VOCABULARY = 128  # tokens; short embeddings suffice


@dataclass(frozen=True)
class DataStats:
    """Statistics of the training data. tokens: of all sides and examples; outputs: size of the
    target vocabulary or number of labels; subwords: whether tokens are words or subwords; labels:
    whether predictions are labels; vectors: values per vector (0 for text); inputs: size of the
    source vocabulary; source: the kind of input."""

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
        """Return the reason of most automatic settings: the data size."""
        examples = f"{self.examples:,} examples" if self.examples > 1 else ""
        tokens = f"{self.tokens:,} tokens" if self.tokens > self.examples else ""
        return ", ".join(filter(None, (examples, tokens))) or "1 example"

    @property
    def is_large(self) -> bool:
        """Return whether the data is large, so that defaults favor speed."""
        return self.tokens >= LARGE_TOKENS

    @property
    def has_few_tokens(self) -> bool:
        """Return whether the vocabulary is so small that short embeddings suffice."""
        return (
            0 < self.inputs <= SMALL_VOCABULARY
            and self.outputs <= SMALL_VOCABULARY
            and self.is_large
        )
