"""Whether the laws catch six planted faults, one for each family of laws, and name them.

usage: python bench/faults.py [--checkout FOLDER] [--only NAME ...] [--workers 2]
Each fault is planted in a copy of the sources; then `tests/laws` must fail there, and among the
failures must be one of the laws that are there for it. Ends with 1 if a fault is missed.
"""

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from surroundings import REPOSITORY, RESULTS, machine


@dataclass(frozen=True)
class Fault:
    """What is changed in a file of src/regard, and the laws of which one must name it."""

    name: str
    file: str
    old: str
    new: str
    laws: tuple[str, ...]


FAULTS = [
    Fault(
        "a kernel sees the future",
        "nn/kernels/softmax.py",
        "attn_mask=hidden, is_causal=whole",
        "attn_mask=hidden, is_causal=False",
        ("the_future_is_invisible", "steps_equal_one_pass", "no_query_sees"),
    ),
    Fault(
        "a norm counts padding",
        "nn/norms.py",
        "return F.layer_norm(x, self.normalized_shape, self.weight, self.bias, self.eps)",
        "normed = F.layer_norm(x, self.normalized_shape, self.weight, self.bias, self.eps)\n"
        "        return normed / (1 + x.square().mean((0, 1)))",
        ("in_a_batch", "padding_is_invisible", "padding_and_other_rows"),
    ),
    Fault(
        "a select forgets a leaf",
        "data/tensors/tree.py",
        "    if isinstance(tree, list | tuple):\n        return type(tree)(tree_map",
        "    if isinstance(tree, tuple):\n        return tree\n"
        "    if isinstance(tree, list):\n        return type(tree)(tree_map",
        ("select_commutes", "beams_share_the_memory"),
    ),
    Fault(
        "an objective divides",
        "objectives/cross_entropy.py",
        "return Loss(loss, len(labels)",
        "return Loss(loss / len(labels), len(labels)",
        ("the_loss_is_additive", "the_gradient_is_additive"),
    ),
    Fault(
        "a twin ignores the kernel",
        "nn/attention.py",
        'if not claim(self.kernel, "fuses"):',
        "if False:",
        ("a_part_that_is_not_plain", "twin"),
    ),
    Fault(
        "a search depends on the batch",
        "search/beam.py",
        "full = live.limits <= live.tokens.shape[-1] + 1",
        "full = live.limits.min() <= live.tokens.shape[-1] + 1 + 0 * live.limits",
        ("depends_on_its_batch", "alone"),
    ),
]


def planted(fault: Fault, checkout: Path, place: Path) -> None:
    """A copy of the checkout with the fault in it."""
    for name in ("src", "tests", "pyproject.toml"):
        source = checkout / name
        (shutil.copytree if source.is_dir() else shutil.copy)(source, place / name)
    path = place / "src" / "regard" / fault.file
    text = path.read_text()
    if text.count(fault.old) != 1:
        raise SystemExit(f"{fault.file}: {fault.old!r} is there {text.count(fault.old)} times")
    path.write_text(text.replace(fault.old, fault.new))


def failures(place: Path, workers: int) -> tuple[list[str], str]:
    """The names of the laws that fail, and the last line of pytest."""
    spread = ["-n", str(workers)] if workers else []
    words = [
        sys.executable,
        "-m",
        "pytest",
        "tests/laws",
        "-q",
        "--tb=no",
        "-p",
        "no:cacheprovider",
    ]
    done = subprocess.run(
        [*words, *spread, "-rfE"],
        cwd=place,
        env=os.environ | {"PYTHONPATH": str(place / "src"), "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    found = re.findall(r"^(?:FAILED|ERROR) (\S+)", done.stdout, re.MULTILINE)
    last = re.findall(r"^\d+ (?:failed|passed).*", done.stdout, re.MULTILINE)
    return found, "".join(last[-1:])


def main() -> int:
    """Plants each fault; 1 if one is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--checkout", type=Path, default=REPOSITORY)
    parser.add_argument("--only", nargs="*", default=[])
    parser.add_argument("--workers", type=int, default=2)
    given = parser.parse_args()
    caught: dict[str, object] = {}
    for fault in FAULTS:
        if given.only and fault.name not in given.only:
            continue
        with tempfile.TemporaryDirectory() as folder:
            planted(fault, given.checkout, Path(folder))
            found, last = failures(Path(folder), given.workers)
        names = sorted({one.rpartition("::")[2].partition("[")[0] for one in found})
        named = [name for name in names if any(law in name for law in fault.laws)]
        caught[fault.name] = {"failures": len(found), "laws": names, "named": named}
        print(f"{fault.name}: {len(found)} failures, named by {', '.join(named) or 'NO TEST'}")
        print(f"    {last}", flush=True)
    missed = [name for name, one in caught.items() if not one["named"]]  # type: ignore[index]
    print(f"{len(caught) - len(missed)} of {len(caught)} caught by name")
    RESULTS.mkdir(exist_ok=True)
    record = {"machine": machine(), "faults": caught}
    (RESULTS / "faults.json").write_text(json.dumps(record, indent=1) + "\n")
    return int(bool(missed))


if __name__ == "__main__":
    sys.exit(main())
