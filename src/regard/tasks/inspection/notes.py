"""Notes of an inspection: remarks for the user, each with a key for translation."""

from typing import Any

# views/pages/notes.js has the Chinese translations under the same keys.
NOTES = {
    "attention.none": "This model has no attention.",
    "heads.skipped": "Head ablation skipped: too slow for {tokens} masked tokens.",
    "gates.means": "Only the means of the gates are kept: more than {limit} values.",
    "unknown.p": "The probability of an unknown token is that of <unk>.",
    "folded": "Characters that the training data does not have were read as: {changes}.",
    "smoothing": (
        "Trained with label smoothing {rate}: the target probability of the correct token was "
        "{percent} %, so probabilities rarely exceed it."
    ),
    "sampled.tree": "Sampled output: no search tree (use beam search for one).",
    "target.forced": "Forced decoding: the target was given.",
    "target.tree": "The tree is that of the model's own search.",
    "target.coverage": "The score of the given target excludes the coverage penalty.",
    "target.passes": "Lengths and passes are those of the model's own search.",
    "fill.first": (
        "Probabilities, attention and gradients are those of the first pass, in which all tokens "
        "are masked; that of <eos> is the probability of the length."
    ),
    "fill.eos": (
        "Probabilities, attention and gradients are those of the first pass, in which all tokens "
        "are masked. Positions after <eos> are not part of the output."
    ),
    "frames.parts": (
        "Each frame is shown; {blank} is a blank. Equal adjacent tokens are one token. The score "
        "is the log probability of the output."
    ),
    "continuation.greedy": "The continuation is greedy, at most {limit} tokens.",
    "continuation.sampled": "The continuation is sampled, at most {limit} tokens.",
    "continuation.context": "It stops after {tokens} tokens: the context length is {context}.",
    "ngram": "An n-gram model has no attention, no layers and no gradients.",
    "masked.tokens": "Each token is masked in turn; p is the probability of the original token.",
    "masked.ablation": (
        "Ablation is the change of the summed log probability of all tokens, each masked in turn."
    ),
    "masked.attention": "Attention is that of the text without masks.",
    "crf": (
        "CRF output layer: p of a tag is its marginal over all tag sequences; the score is the log "
        "probability of the tag sequence."
    ),
    "vector": (
        "A vector is read as one position, so there is no attention. Gradients are with respect to "
        "the standardized features."
    ),
    "graph.cut": (
        "{nodes} nodes influence the prediction: only the nearest {limit} are computed, so values "
        "are approximate."
    ),
    "graph.shown": "Only {limit} of {nodes} nodes within two edges are shown.",
    "picture.gradients": (
        "Saliency is gradient x input. Pixels are standardized, so the mean color has none."
    ),
    "picture.maps": "This model has no feature maps, so there is no class activation map.",
    "picture.filters": "This model has no filters that read the pixels of a window.",
    "picture.channels": "Of each layer, the feature maps with the largest means are shown.",
    "positions.many": "Attention is omitted: {count} positions, but the limit is {limit}.",
    "number.gradients": "Gradients are those of the predicted number, in its own unit.",
    "number.heads": "Gradients and ablation refer to the predicted number, in its own unit.",
    "number.several": "Ablation is the sum of the changes of all predicted numbers.",
}


class Note(str):
    """A remark as English text. key, values: key and arguments of its translations."""

    key: str
    values: dict[str, Any]

    def __new__(cls, key: str, **values: Any) -> "Note":
        formatted = {
            name: value if isinstance(value, str) else f"{value:,}"
            for name, value in values.items()
        }
        note = super().__new__(cls, NOTES[key].format(**formatted))
        note.key, note.values = key, values
        return note

    def as_dict(self) -> dict[str, Any]:
        """Return key and values for JSON, without the English text."""
        return {"key": self.key, "values": self.values}
