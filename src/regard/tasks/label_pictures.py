"""Pictures of labeled examples, for reports: examples per label, and confident mistakes."""

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from regard.core.png import thumbnail_url
from regard.data.reading.read import Example, Pair
from regard.inputs.input import Input
from regard.tasks.values import Prediction

MAX_LABELS = 20
MAX_PICTURES = 10  # per label, or per pair of labels
MAX_CONFUSIONS = 8  # pairs of labels


def picture_url(source: Any, reader: Input) -> str:
    """Return a source as the data URL of a small picture; "" if it has none."""
    pixels = reader.picture(source)
    return "" if pixels is None else thumbnail_url(pixels)


def label_pictures(pairs: Sequence[Pair], labels: Sequence[str], reader: Input) -> dict[str, Any]:
    """Return pictures of the first examples of each of the first labels, as data URLs."""
    found: dict[str, list[str]] = {label: [] for label in labels[:MAX_LABELS]}
    missing = set(found)
    for pair in pairs:
        for label in missing.intersection(pair.target):
            if not (url := picture_url(pair.source, reader)):
                return {}
            found[label].append(url)
            if len(found[label]) == MAX_PICTURES:
                missing.remove(label)
        if not missing:
            break
    return {label: urls for label, urls in found.items() if urls}


def mistakes(
    predictions: Sequence[Prediction], examples: Sequence[Example], reader: Input
) -> list[dict[str, Any]]:
    """Return the most frequent confusions of two labels with pictures, most confident first."""
    groups: dict[tuple[str, str], list[tuple[float, Example]]] = defaultdict(list)
    for prediction, example in zip(predictions, examples, strict=True):
        expected, predicted = ", ".join(example.references[0]), prediction.text
        if expected != predicted:
            groups[expected, predicted].append((prediction.confidence or 0.0, example))
    most = sorted(groups.items(), key=lambda group: -len(group[1]))[:MAX_CONFUSIONS]
    found = []
    for (expected, predicted), wrong in most:
        wrong.sort(key=lambda pair: -pair[0])
        pictures = [
            {
                "name": reader.text(example.source),
                "confidence": round(100 * confidence, 1),
                "image": picture_url(example.source, reader),
            }
            for confidence, example in wrong[:MAX_PICTURES]
        ]
        if not all(picture["image"] for picture in pictures):
            return []
        found.append(
            {"expected": expected, "predicted": predicted, "count": len(wrong), "images": pictures}
        )
    return found
