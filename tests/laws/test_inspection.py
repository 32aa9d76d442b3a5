"""Laws of inspection: what is shown of a model is what it does, in the shape that readers know."""

import base64
import itertools
import json
import math
from typing import Any

import pytest
import torch

import regard
from regard.config.load import flatten
from regard.core.errors import UserError
from regard.core.options import kinds_of
from regard.estimators import KINDS, Estimator
from regard.nn.kernels import Attention
from regard.nn.kernels.kernel import Shape
from regard.tasks.transduce import TransduceTask
from regard.views.inspection import Inspection
from regard.views.inspection.inspection_page import pack_arrays

from ..unpacking import unpacked
from .toys import IMAGES, SOUNDS, TOYS, Case, built, cases, predictor

TEXTS = {
    "transduce": "abba",
    "tag": "Ann saw Unbelievably",
    "language-model": "ab",
    "words": "Ann saw a dog",
    "classify-vectors": "0.5, -1, 3",
    "regress-vectors": "0.5, -1, 3",
    "nodes": '{"nodes": [[0, 1], [2], [3, 4]], "edges": [[0, 1], [1, 2]]}',
    "classify-graphs": '{"nodes": [[0, 1], [2], [3, 4]], "edges": [[0, 1], [1, 2]]}',
}
SETTINGS = ("kind", "cell", "bidirectional", "cross", "input_feeding", "pooling", "head")
WHOLE = ("kind", "encoder.kind", "decoder.kind", "frontend.kind", "pooling", "head")


def covering(toys: list[str]) -> list[Case]:
    """Cases in which every value of the settings that count here comes at least once: those of
    whole models for each toy, those of their parts for one toy of a task."""
    met: set[tuple[str, str, Any]] = set()
    found = []
    for toy in toys:
        for case in cases(toy):
            flat = flatten(case.model).items()
            here = {
                (toy if key in WHOLE else TOYS[toy].task, key, value)
                for key, value in flat
                if key.split(".")[-1] in SETTINGS
            }
            if not here <= met:
                met |= here
                found.append(case)
    return found


EACH = covering([toy for toy in TOYS if toy not in ("balanced", "synthesis")])
WRITERS = [case for case in EACH if case.toy == "transduce"]
SEARCHED = [case for case in WRITERS if case.config().model.gives == "steps"]
PARALLEL = [case for case in WRITERS if case not in SEARCHED]


def estimator_of(case: Case) -> Estimator:
    run = built(case)
    return KINDS[run.config.task.kind]()._set_predictor(predictor(run))


def look(case: Case, **given: Any) -> tuple[Estimator, Inspection]:
    """Return the inspection of an output with several tokens."""
    estimator = estimator_of(case)
    if case.toy == "transduce":
        given |= least_length(case)
    media = {"image": IMAGES[0], "sound": SOUNDS[0]}
    source = media.get(TOYS[case.toy].reads, TEXTS.get(case.toy, "abba cab"))
    return estimator, regard.inspect(estimator, source, **given)


def least_length(case: Case) -> dict[str, int]:
    """The setting for several tokens, if its search has it: with CTC the frames decide."""
    return {"min_length": 3} if "min_length" in type(case.config().search).model_fields else {}


SHAPE = Shape(4, 1, causal=False)
UNNORMALIZED = {
    name for name, kind in kinds_of(Attention).items() if not kind().build(SHAPE).normalized
}


def values(case: Case, *names: str) -> set[Any]:
    """The values of settings of these names, in any part."""
    flat = {key.removesuffix(".kind"): value for key, value in flatten(case.model).items()}
    kinds = {value for key, value in flatten(case.model).items() if key.endswith("kind")}
    return {v for key, v in flat.items() if key.split(".")[-1] in names} | (
        kinds if "kind" in names else set()
    )


def attends(case: Case) -> bool:
    """Whether a model has attention of any kind."""
    return bool(
        values(case, "cross") - {"none"}
        or {"transformer", "gat"} & values(case, "kind")
        or "attention" in values(case, "pooling")
    )


def fills_gaps(case: Case) -> bool:
    """Whether a model hides each token one at a time."""
    return case.kind.startswith("masked")


def gated(case: Case) -> bool:
    """Whether a model has gates."""
    return bool(values(case, "cell") & {"gru", "lstm"})


def sides(found: dict[str, Any]) -> dict[str, int]:
    """How long each axis is."""
    return {
        "source": len(found["source"]["tokens"]),
        "target": len(found["target"]["tokens"]),
        "inputs": len(found["inputs"]),
        "one": 1,
    }


def check_shape(numbers: list[Any], *shape: int) -> None:
    assert torch.tensor(numbers).shape == shape
    assert torch.tensor(numbers).isfinite().all()


def check_attention(found: dict[str, Any], unnormalized: bool, ahead: bool) -> None:
    """ahead: whether the decoder sees positions to the right, as parallel decoders do."""
    size = sides(found)
    for one in found["attention"]:
        heads = len(one["heads"])
        check_shape(one["heads"], heads, size[one["rows"]], size[one["columns"]])
        weights = torch.tensor(one["heads"], dtype=torch.double)
        if not unnormalized:
            sums = torch.ones(weights.shape[:2], dtype=torch.double)
            torch.testing.assert_close(weights.sum(-1), sums, atol=1e-5, rtol=0)
        for row, columns in enumerate(one["hidden"]):
            assert len(columns) == weights.shape[2]
            assert (
                weights[:, row, [at for at, bit in enumerate(columns) if bit == "1"]] == 0
            ).all()
        check_shape(one["entropy"], heads)
        assert all(0 <= h <= math.log(weights.shape[2]) + 1e-6 for h in one["entropy"])
        assert len(one["ablation_delta"]) in (0, heads)
        if one["part"] == "decoder" and not ahead:
            assert torch.equal(weights.triu(1), torch.zeros_like(weights))  # no future


def check_rest(found: dict[str, Any]) -> None:
    size = sides(found)
    saliency = found["saliency"]
    for one in [saliency, (saliency or {}).get("decoder_inputs")]:
        if one is not None:
            check_shape(one["values"], size[one["rows"]], size[one["columns"]])
            # with images, only that of decoder inputs, which may not count for a short output
            assert "picture" in found or max(map(max, one["values"])) > 0
            assert min(map(min, one["values"])) >= 0
    for gate in found["gates"]:
        check_shape(gate["mean"], size[gate["rows"]])
        units = torch.tensor(gate["units"])
        assert units.shape[0] == size[gate["rows"]]
        torch.testing.assert_close(units.mean(-1), torch.tensor(gate["mean"]), atol=1e-5, rtol=0)
        if gate["gate"] in ("input", "forget", "output", "reset", "update"):
            assert units.min() >= 0 and units.max() <= 1


def check_picture(found: dict[str, Any]) -> None:
    """Maps over the image have one row per output part, and grids one position per source token."""
    picture, parts = found["picture"], len(found["steps"])
    height, width, channels = picture["pixels"]["shape"]
    assert base64.b64decode(picture["pixels"]["u8"]) == IMAGES[0].pixels.tobytes()
    check_shape(picture["saliency"], parts, height, width)
    if found["target"]["text"]:  # the end of an empty output may be certain
        assert torch.tensor(picture["saliency"]).abs().max() > 0
    if grid := picture["grid"]:
        count = grid["before"] + grid["rows"] * grid["columns"]
        assert count == len(found["source"]["tokens"])
    for layer in picture["maps"]:
        values = torch.tensor(layer["values"])
        assert len(values) == len(layer["channels"]) <= layer["total"]
    if one := picture["class_map"]:
        last = next(layer for layer in picture["maps"] if layer["name"] == one["name"])
        check_shape(one["values"], parts, *torch.tensor(last["values"]).shape[1:])
    assert bool(picture["class_map"]) == bool(picture["maps"])
    if one := picture["filters"]:
        assert torch.tensor(one["values"]).shape[-1] == channels


@pytest.mark.parametrize("case", EACH, ids=lambda case: case.name)
def test_every_inspection_has_the_shape_that_readers_know(case: Case) -> None:
    """All axes have the length of their tokens, all numbers are finite, JSON brings all back."""
    found = look(case)[1].as_dict()
    assert found["format"] == 1 and found["model"]["task"] == TOYS[case.toy].task
    assert len(found["steps"]) == len(found["target"]["tokens"]) > 0
    assert json.loads(json.dumps(found, allow_nan=False)) == found
    kinds = values(case, "attention", "cross") | values(case, "kind")
    check_attention(found, bool(kinds & UNNORMALIZED), case.config().model.gives == "fill")
    check_rest(found)
    seen = "vectors" not in case.toy
    assert bool(found["attention"]) == (attends(case) and seen)
    assert bool(found["gates"]) == (gated(case) and seen)
    pictured = TOYS[case.toy].reads == "image"
    assert ("picture" in found) == pictured
    assert ("sound" in found) == (TOYS[case.toy].reads == "sound")
    if pictured:
        check_picture(found)
    else:
        assert (found["saliency"] is None) == (case.kind == "ngram")


@pytest.mark.parametrize("case", EACH[::8], ids=lambda case: case.name)
def test_packed_arrays_come_back(case: Case) -> None:
    """Two bytes a number: off by half a step, of which there are 65,535 between least and most."""
    found = look(case)[1].as_dict()
    small = json.loads(json.dumps(pack_arrays(found)))
    pairs = [
        (one[key], other[key])
        for part, key in (("attention", "heads"), ("gates", "units"))
        for one, other in zip(found[part], small[part], strict=True)
    ]
    if found["saliency"] is not None:
        pairs.append((found["saliency"]["values"], small["saliency"]["values"]))
    for one, other in pairs:
        numbers = torch.tensor(one, dtype=torch.double)
        step = float(numbers.max() - numbers.min().clamp(max=0)) / 65535
        torch.testing.assert_close(
            torch.tensor(unpacked(other), dtype=torch.double), numbers, atol=step, rtol=0
        )


@pytest.mark.parametrize(
    ("case", "stopping"),
    list(
        zip(SEARCHED, itertools.cycle(["beam_full", "no_gain", "first", "optimal"]), strict=False)
    ),
    ids=lambda one: getattr(one, "name", one),
)
def test_the_tree_leads_to_the_prediction(case: Case, stopping: str) -> None:
    """Its best path is the output of `predict`, its other path that of greedy search."""
    estimator, found = look(case, beam=3, stopping=stopping)
    text, least = [found.source.text], {"min_length": 3}
    (answer,) = estimator.predict_detailed(text, beam=3, stopping=stopping, **least)
    (greedy,) = estimator.predict_detailed(text, beam=1, **least)
    tree, task = found.tree, estimator.task_
    assert tree is not None and isinstance(task, TransduceTask)
    assert found.target.text == tree["best"] == answer.text and tree["greedy"] == greedy.text
    assert (
        found.score == pytest.approx(answer.score, abs=1e-4) and found.truncated == answer.truncated
    )
    assert tree["scores"]["best"] == pytest.approx(answer.score, abs=1e-4)
    assert tree["scores"]["greedy"] == pytest.approx(greedy.score, abs=1e-4)
    for way, tokens in (("best", answer.tokens), ("greedy", greedy.tokens)):
        nodes = [node for node in tree["nodes"] if node[way]]
        assert [node["token"] for node in nodes] == [*tokens, "<eos>"]
        parents = [None, *(node["id"] for node in nodes[:-1])]
        assert [node["parent"] for node in nodes] == parents and nodes[-1]["status"] == "finished"
        logs = [math.log(node["probability"]) for node in nodes]
        assert nodes[-1]["total"] == pytest.approx(sum(logs), abs=1e-4)


@pytest.mark.parametrize("case", SEARCHED[::2], ids=lambda case: case.name)
def test_probabilities_are_those_of_scores(case: Case) -> None:
    """Also of a target that is given, whatever the search would have said."""
    estimator, found = look(case, target="cab")
    assert isinstance(estimator, regard.Transducer)
    (row,) = estimator.log_likelihoods([(found.source.text, "cab")])
    assert found.forced and found.target.text == "cab"
    assert [step.token for step in found.steps] == row["tokens"]
    for step, score in zip(found.steps, row["token_logprobs"], strict=True):
        assert step.probability is not None and math.log(step.probability) == pytest.approx(
            score, abs=1e-4
        )
        chances = [step.probability, *(p for _, p in step.alternatives)]
        assert sum(chances) <= 1 + 1e-5 and chances[1:] == sorted(chances[1:], reverse=True)
        assert step.token not in dict(step.alternatives)


@pytest.mark.parametrize(
    "case",
    [case for case in EACH if attends(case) and not fills_gaps(case)][::3]
    + [case for case in EACH if attends(case) and fills_gaps(case)],
    ids=lambda case: case.name,
)
def test_ablated_heads_are_those_knocked_out_by_hand(case: Case) -> None:
    """One head at a time, in a pass of its own: the change of the sum of what is scored."""
    estimator, found = look(case)
    bare = TOYS[case.toy].task == "regress" or fills_gaps(case)  # a target would raise an error
    target = None if bare else again(found)
    if target == "":  # the model ends at once, and no text stands for EOS alone
        return
    changes = [(one, head) for one in found.attention for head in range(len(one.ablation_delta))]
    assert changes or not found.attention
    forced = look(case, target=target)[1] if target else found
    for one, head in changes[:: max(1, len(changes) // 2)]:
        with regard.ablate(estimator, {one.name: [head]}):
            _, other = look(case, target=target)
        change = total(case, other) - total(case, forced)
        assert change == pytest.approx(one.ablation_delta[head], abs=2e-4)


def again(found: Inspection) -> str:
    """The answer as a target."""
    prompt = found.source.text if found.model["task"] == "language-model" else ""
    return found.target.text.removeprefix(prompt)


def total(case: Case, found: Inspection) -> float:
    """The sum of what is scored; with a CRF or CTC, whose parts depend on each other, the score."""
    if found.model["task"] == "tag" or case.config().model.gives == "frames":
        assert found.score is not None
        return found.score
    return sum(
        math.log(s.probability) if s.probability is not None else s.value or 0.0
        for s in found.steps
    )


@pytest.mark.parametrize("case", PARALLEL, ids=lambda case: case.name)
def test_parallel_models_have_passes_instead_of_a_tree(case: Case) -> None:
    """Their outputs have no order, so that no target has a probability token by token."""
    estimator, found = look(case)
    (answer,) = estimator.predict_detailed([found.source.text], **least_length(case))
    assert found.tree is None and found.search is not None
    assert found.target.text == answer.text
    assert isinstance(estimator, regard.Transducer)
    with pytest.raises(UserError, match="token by token, this one outputs f"):
        estimator.log_likelihoods([(found.source.text, "cab")])
