"""What an inspection says beside its numbers: sentences, each with a key for other languages."""

from typing import Any

# Pages have the same in Chinese, under the same keys: look/notes.js.
SENTENCES = {
    "attention.none": "This model has no attention.",
    "heads.dear": "Heads were not silenced: with {tokens} gaps that would take too long.",
    "gates.means": "Of the gates only the means are kept: more than {most} numbers.",
    "unknown.p": "p of a token that training never saw is that of <unk>.",
    "drawn.tree": "The answer was drawn, so there is no tree of a search; a beam has one.",
    "target.given": "The target was given, and the model is held to it.",
    "target.tree": "The tree is that of the model's own search.",
    "target.coverage": "The score of a given target leaves coverage out.",
    "follows.best": (
        "What follows the text is the most probable token each time, at most {most} tokens."
    ),
    "follows.drawn": "What follows the text is drawn, at most {most} tokens.",
    "follows.room": "It ends after {room}: the model looks back on {reach} tokens at most.",
    "counts": "An n-gram model only counts: it has no attention, no layers and no gradients.",
    "gaps.hidden": "Each token was hidden in turn; p is that of the token that stands there.",
    "gaps.silenced": (
        "A silenced head has the change of log p of all tokens together, each hidden in turn."
    ),
    "gaps.attention": "Attention is that of the text with nothing hidden.",
    "crf": (
        "The head is a CRF: p of a tag is summed over all ways to tag the other words, and the "
        "score is log p of all tags together."
    ),
    "vector": (
        "A vector is read at once, so there is no attention. Gradients are by numbers of mean 0 "
        "and deviation 1, as the model reads them."
    ),
    "number.gradients": "Gradients are those of the number itself, in its own unit.",
    "number.heads": (
        "Gradients and silenced heads are measured by the number itself, in its own unit."
    ),
    "number.several": "A silenced head has the sum of the changes of all numbers.",
}


class Note(str):
    """A sentence. key, values: what it says, for who says it in another language."""

    key: str
    values: dict[str, Any]

    def __new__(cls, key: str, **values: Any) -> "Note":
        shown = {name: f"{value:,}" for name, value in values.items()}
        note = super().__new__(cls, SENTENCES[key].format(**shown))
        note.key, note.values = key, values
        return note

    def as_dict(self) -> dict[str, Any]:
        """Ready for JSON, without the sentence."""
        return {"key": self.key, "values": self.values}
