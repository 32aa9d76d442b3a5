"""Statistics of the training data, from which unset settings are chosen."""

from dataclasses import dataclass

LARGE_TOKENS = 500_000  # from this many tokens on, defaults favor speed
SMALL_VOCABULARY = 128  # tokens; up to this size, short embeddings suffice


@dataclass(frozen=True)
class DataStats:
    """Statistics of the training data.

    tokens: number of tokens of all examples, source and target. outputs: size of the target
    vocabulary, or number of labels. subwords: whether tokens are words or subwords, not
    characters. labels: whether predictions are labels. vectors: values per input vector (0 for
    text). inputs: size of the source vocabulary (0: unknown). source: kind of input.
    """

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
        """Return the data size as text, the reason printed for most automatic settings."""
        examples = f"{self.examples:,} examples" if self.examples > 1 else ""
        tokens = f"{self.tokens:,} tokens" if self.tokens > self.examples else ""
        return ", ".join(filter(None, (examples, tokens))) or "1 example"

    @property
    def is_large(self) -> bool:
        """Return whether the data is large, so that defaults favor speed."""
        return self.tokens >= LARGE_TOKENS

    @property
    def has_few_tokens(self) -> bool:
        """Return whether the data is large but both vocabularies need only short embeddings."""
        return (
            0 < self.inputs <= SMALL_VOCABULARY
            and self.outputs <= SMALL_VOCABULARY
            and self.is_large
        )
