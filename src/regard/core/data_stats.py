"""Statistics of the training data, from which unset settings are chosen."""

from dataclasses import dataclass, field

from regard.core.formatting import duration
from regard.core.machine import Machine

LARGE_TOKENS = 500_000  # from this many tokens on, defaults favor speed
SMALL_VOCABULARY = 128  # tokens; up to this size, short embeddings suffice


@dataclass(frozen=True)
class DataStats:
    """Statistics of the training data.

    tokens: number of tokens of all examples, source and target. outputs: size of the target
    vocabulary, or number of labels. subwords: whether tokens are words or subwords, not
    characters. labels: whether predictions are labels. vectors: values per input vector (0 for
    text). grid: height and width of images. frames: whether source tokens are windows of sounds.
    inputs: size of the source vocabulary (0: unknown). source: kind of input. edges: number of
    edges of graphs, in both directions. target_tokens: number of target tokens (0: none, or
    unknown).
    longest_target: tokens of the longest target. length_change: largest difference between the
    lengths of target and source. Both count EOS (0: unknown).
    machine: speed of this machine. budget: training time in seconds (0: unlimited).
    """

    examples: int
    tokens: int
    outputs: int
    subwords: bool
    labels: bool = False
    vectors: int = 0
    grid: tuple[int, int] = (0, 0)
    frames: bool = False
    inputs: int = 0
    source: str = "text"
    edges: int = 0
    target_tokens: int = 0
    longest_target: int = 0
    length_change: int = 0
    machine: Machine = field(default_factory=Machine)
    budget: float = 0.0

    @property
    def reason(self) -> str:
        """Return data size and budget as text, the reason printed for most automatic settings."""
        examples = f"{self.examples:,} examples" if self.examples > 1 else ""
        tokens = f"{self.tokens:,} tokens" if self.tokens > self.examples else ""
        size = ", ".join(filter(None, (examples, tokens))) or "1 example"
        return f"{size}, {duration(self.budget)} of training" if self.budget else size

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
