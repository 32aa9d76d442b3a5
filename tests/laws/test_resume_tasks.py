"""Laws of resuming, for each task: an interrupted run ends with the very weights of a whole one."""

from pathlib import Path

import pytest
import torch

from regard.core.errors import UserError
from regard.storage.run_files import read_config
from regard.storage.weights import save_weights
from regard.training.checkpoint import save_checkpoint
from regard.training.session import records
from regard.training.transfer import PretrainedModel, read_pretrained

from .toys import TOYS, Case, begin, cases, check_same, in_a_new_process, in_parts, one_of_each_kind

EVERY = one_of_each_kind([case for toy in TOYS for case in cases(toy)])
RESUMED = ("tag", "balanced", "regress-vectors", "language-model", "words")
RESUMED += ("classify-images", "classify-sounds")  # with augmentation, which is on by default
TRAINED = [case for case in EVERY if case.toy in RESUMED and case.kind != "ngram"]
# The encoders of these are resumed in the tasks above, the decoders in test_resume.py.
TRAINED += [
    next(case for case in EVERY if case.toy == toy) for toy in ("several", "captions", "dictation")
]
SEQUENTIAL = [c for c in EVERY if c.kind in ("causal-recurrent", "causal-window")]
TRAINING = {"batch_tokens": 12, "lr": 0.01}


@pytest.mark.parametrize("case", TRAINED, ids=lambda case: case.name)
def test_resume_is_exact(case: Case, tmp_path: Path) -> None:
    config = case.config(training=TRAINING | {"steps": 4, "optimizer": {"kind": "adamw"}})
    whole, _, again = in_parts(tmp_path, config, TOYS[case.toy].pairs, stop=2)
    check_same(whole, again)


@pytest.mark.parametrize("accumulate", [1, 2])
@pytest.mark.parametrize("case", SEQUENTIAL, ids=lambda case: case.name)
def test_memory_that_is_carried_on(case: Case, accumulate: int, tmp_path: Path) -> None:
    """In the middle of an epoch it is not nothing, and it comes back; a new epoch has none."""
    training = TRAINING | {"epochs": 2, "accumulation_steps": accumulate}
    config = case.config(training=training, task={"window_order": "sequential"})
    pairs = TOYS[case.toy].pairs
    whole, first, again = in_parts(tmp_path, config, pairs, stop=2)
    check_same(whole, again)
    assert whole.corpus.sequential and first.carry is not None and whole.carry is None

    forgetful = begin(tmp_path / "forgetful", config, pairs)
    for _ in records(forgetful):
        forgetful.carry = None
    with pytest.raises(AssertionError):
        check_same(whole, forgetful)


def test_frozen_weights(tmp_path: Path) -> None:
    """They stay as they began, in both parts of the run; all others move."""
    case = next(case for case in EVERY if case.name.startswith("tag-recurrent"))
    training = TRAINING | {"steps": 5, "freeze": ["frontend.words", "encoder"]}
    config = case.config(training=training)
    pairs = TOYS[case.toy].pairs
    before = begin(tmp_path / "before", config, pairs).model.state_dict()
    whole, _, again = in_parts(tmp_path, config, pairs, stop=3)
    check_same(whole, again)
    stayed = {name for name, p in again.model.state_dict().items() if torch.equal(p, before[name])}
    frozen = {name for name in before if name.startswith(("frontend.words.", "encoder."))}
    assert frozen and stayed == frozen


def origin_of(toy: str, folder: Path) -> PretrainedModel:
    """A model that was trained a little, to start from."""
    cases_ = [case for case in EVERY if case.toy == toy and case.kind == "masked-recurrent"]
    config = cases_[0].config(training=TRAINING | {"steps": 2})
    run = begin(folder, config, TOYS[toy].pairs)
    list(records(run))
    save_weights(run.model, folder / "model.safetensors")
    return read_pretrained(folder, read_config(folder))


@pytest.mark.parametrize(
    ("toy", "start"),
    [("tag", "words"), ("classify", "language-model"), ("transduce", "language-model")],
)
def test_a_run_that_started_from_another_model(toy: str, start: str, tmp_path: Path) -> None:
    """Which weights were loaded, and so learn more slowly, is known again from the folder."""
    origin = origin_of(start, tmp_path / "origin")
    training = TRAINING | {"steps": 5, "pretrained_lr_factor": 0.25}
    config = Case(toy, {}, toy).config(training=training)
    pairs = TOYS[toy].pairs
    run = begin(tmp_path / "begin", config, pairs, origin)
    own = run.model.state_dict()
    assert run.pretrained_weights and all(
        torch.equal(own[n], origin.tensors[n]) for n in run.pretrained_weights
    )
    assert set(run.pretrained_weights) < {name for name, _ in run.model.named_parameters()}

    whole, first, again = in_parts(tmp_path, config, pairs, 3, origin)
    check_same(whole, again)
    assert first.pretrained_weights == again.pretrained_weights == run.pretrained_weights
    factors = {
        name: group["factor"]
        for group in again.optimizers[0].param_groups
        for parameter in group["params"]
        for name, p in again.model.named_parameters()
        if p is parameter
    }
    loaded = set(run.pretrained_weights)
    assert factors == {n: 0.25 if n in loaded else 1.0 for n in factors} and loaded <= set(factors)


@pytest.mark.parametrize("case", EVERY, ids=lambda case: case.name)
def test_closed_form_or_a_clear_error(case: Case, tmp_path: Path) -> None:
    """`closed_form` solves n-grams and linear regression of vectors; other models raise an error.

    A solved run is finished: nothing is left to do after its checkpoint.
    """
    config = case.config(training={"optimizer": {"kind": "closed_form"}})
    run = begin(tmp_path, config, TOYS[case.toy].pairs)
    if case.kind != "ngram" and (case.toy, case.kind) != ("regress-vectors", "linear"):
        with pytest.raises(
            UserError, match=r"training\.optimizer\.kind=closed_form: only supported for linear"
        ):
            list(records(run))
        return
    (record,) = records(run)
    assert (record.step, record.progress) == (1, 1.0)
    run.state.finished = True
    save_checkpoint(run)
    again = in_a_new_process(tmp_path, TOYS[case.toy].pairs)
    assert list(records(again)) == []
    check_same(run, again)


@pytest.mark.parametrize("kind", ["mae", "huber"])
def test_only_squares_are_solved(kind: str, tmp_path: Path) -> None:
    case = next(c for c in EVERY if (c.toy, c.kind) == ("regress-vectors", "linear"))
    exact = {"optimizer": {"kind": "closed_form"}}
    run = begin(
        tmp_path, case.config(training=exact, objective={"kind": kind}), TOYS[case.toy].pairs
    )
    with pytest.raises(UserError, match="closed_form"):
        list(records(run))
