"""Two processes train as one does: the same losses, the same scores, each other's checkpoints."""

import json
from typing import Any

import pytest
import torch
import two
from forks import Forks

HALF = ("bfloat16-ddp", "float16-fsdp")
WHOLE = [name for name in two.RUNS if name not in HALF]


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """All runs of `two.py` by one process with four batches an update, and by two with two."""
    folder = tmp_path_factory.mktemp("processes")
    one = {n: two.whole_and_parts(n, folder / "one" / n, accumulate=4) for n in two.RUNS}
    both = Forks(lambda: two.main(folder), count=2)
    _, said = both.communicate()
    assert both.poll() == 0, said[-3000:]
    return {"folder": folder, "one": one, **json.loads((folder / "two.json").read_text())}


@pytest.mark.parametrize("name", WHOLE)
def test_two_processes_have_the_losses_of_one(found: dict[str, Any], name: str) -> None:
    one, both = (
        torch.tensor(found["one"][name]["losses"]),
        torch.tensor(found["two"][name]["losses"]),
    )
    assert len(one) == two.STEPS and one[-1, 0] < one[0, 0]
    torch.testing.assert_close(one, both, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("kind", ["adafactor", "muon"])
def test_optimizers_that_need_whole_matrices_are_errors(found: dict[str, Any], kind: str) -> None:
    said = found["unsupported"][kind]
    assert said.startswith(f"training.optimizer.kind={kind}: not supported with")
    assert said.endswith("use adamw, or training.parallel=ddp")


@pytest.mark.parametrize("name", HALF)
def test_half_precision_learns_the_same(found: dict[str, Any], name: str) -> None:
    """The noise is the same, so only rounding differs."""
    exact = torch.tensor(found["one"]["transformer-ddp"]["losses"])[:, 0]
    for number in ("one", "two"):
        half = torch.tensor(found[number][name]["losses"])[:, 0]
        assert not torch.equal(half, exact)
        torch.testing.assert_close(half, exact, atol=0.05, rtol=0)


@pytest.mark.parametrize("name", two.RUNS)
def test_resume_is_exact_with_two_processes(found: dict[str, Any], name: str) -> None:
    both = found["two"][name]
    assert both["losses"][3:] == both["rest"]
    place = found["folder"] / "two" / name
    assert (place / "whole.safetensors").read_bytes() == (place / "parts.safetensors").read_bytes()


@pytest.mark.parametrize("name", WHOLE)
def test_two_processes_resume_where_one_stopped(found: dict[str, Any], name: str) -> None:
    one, other = (torch.tensor(found["one"][name]["rest"]), torch.tensor(found["other"][name]))
    torch.testing.assert_close(one, other, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("name", WHOLE)
def test_one_process_resumes_where_two_stopped(found: dict[str, Any], name: str) -> None:
    run = two.again(name, found["folder"] / "two" / name / "parts")
    assert run.batches == 4 and run.state.step == 3
    rest = torch.tensor(two.losses(run))
    torch.testing.assert_close(rest, torch.tensor(found["two"][name]["rest"]), atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("name", WHOLE)
def test_validation_in_shares_gives_the_same_scores(found: dict[str, Any], name: str) -> None:
    one, both = found["one"][name], found["two"][name]
    assert both["answers"] == one["answers"] and both["scores"].keys() == one["scores"].keys()
    assert both["dev"] == pytest.approx(one["dev"], abs=1e-5)
    assert both["fresh"] == pytest.approx(one["fresh"], abs=1e-5) != one["dev"]
    assert both["scores"] == pytest.approx(one["scores"], abs=1e-3)
