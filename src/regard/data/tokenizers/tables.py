"""The kinds of tokenizers whose vocabulary is a list of tokens."""

from regard.data.tokenizers.features import FeatureTokenizer
from regard.data.tokenizers.tokenizer import (
    CharTokenizer,
    TableTokenizer,
    WhitespaceTokenizer,
    WordTokenizer,
)

TABLES: dict[str, type[TableTokenizer]] = {
    table.kind: table
    for table in (CharTokenizer, FeatureTokenizer, WordTokenizer, WhitespaceTokenizer)
}
