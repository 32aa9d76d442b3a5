"""Whether this version fills in unset settings as an older one does.

usage: python bench/filled.py OLD [--cases 4000]
OLD is a folder with a checkout. Both fill in the settings of each recipe on each built-in data set
and on made-up data of all sizes, and random settings of every task, kind, optimizer and budget. The
filled settings and the list of auto settings must be equal. Exits with 1 if anything differs.
"""

import argparse
import json
import os
import random
import subprocess
import sys
from itertools import product
from pathlib import Path
from typing import Any

import yaml
from older_names import has_old_names, new_setting, old_setting
from surroundings import REPOSITORY

Tree = dict[str, Any]
VALUES: dict[str, list[Any]] = {  # of settings that may be left open
    "width": [9, 64, 96, 512],
    "layers": [1, 4],
    "heads": [1, 3, 4],
    "feedforward_width": [100],
    "dropout": [0.0, 0.2],
    "cross": ["dot", "additive", "none"],
    "cell": ["rnn", "gru", "lstm"],
    "embedding_width": [0, 32],
    "pooling": ["max", "last"],
    "batch_tokens": [300, 2000],
    "lr": [1e-3],
    "budget": [60, "1h"],
    "steps": [50, 100_000],
    "epochs": [2, 30],
    "patience": [3],
    "validate_every": [10],
    "accumulation_steps": [4],
}
SIZES = [10**2, 3 * 10**3, 10**4, 10**5, 4 * 10**5, 10**6, 10**7, 10**8]


def stats_of(draw: random.Random, task: str) -> Tree:
    """Made-up data of a task, in the words of the oldest version."""
    tokens = draw.choice(SIZES)
    stats: Tree = {"examples": max(1, tokens // draw.choice([1, 8, 20])), "tokens": tokens}
    stats |= {"vocabulary": draw.choice([2, 60, 8000]), "subwords": draw.random() < 0.5}
    stats |= {"task": task, "source": "words" if task == "tag" else "text"}
    if task in ("classify", "regress") and draw.random() < 0.5:
        stats |= {"vectors": 4, "source": "vectors", "tokens": stats["examples"]}
    if task == "transduce":
        stats["inputs"] = draw.choice([60, 8000])
    return stats


def some(draw: random.Random, options: Any, share: float) -> Tree:
    """Values for a random share of the settings of an options class."""
    names = [name for name in VALUES if name in options.model_fields]
    return {name: draw.choice(VALUES[name]) for name in names if draw.random() < share}


def random_tree(draw: random.Random, task: str) -> Tree:
    """Random settings of a task: a kind in each slot, or none, and some sizes."""
    from regard.config.configs import CONFIGS
    from regard.core.options import kinds_of, members

    def kind(owner: Any, name: str, share: float) -> tuple[Any, Tree]:
        field = owner.model_fields[name]
        kinds: Any = kinds_of(field.annotation)
        if not kinds:
            return members(field.annotation)[0], {}
        default = getattr(field.default, "kind", None)
        picked = draw.choice(list(kinds)) if default is None or draw.random() < share else default
        return kinds[picked], {"kind": picked}

    share = draw.choice([0.0, 0.1, 0.3, 0.9])
    config = CONFIGS[task]
    model, tree = kind(config, "model", 0.7)
    tree |= some(draw, model, share)
    for side in [name for name in ("encoder", "decoder") if name in model.model_fields]:
        part, section = kind(model, side, 0.7)
        tree[side] = section | some(draw, part, share)
    training = config.model_fields["training"].default.__class__
    optimizer = kind(training, "optimizer", 0.6)[1]
    sections = {"training": some(draw, training, share) | {"optimizer": optimizer}}
    if tree.get("kind") != "masked":
        sections["objective"] = kind(config, "objective", 0.0 if task == "language-model" else 1)[1]
    return {"task": {"kind": task}, "model": tree, **sections}


def all_cases(count: int) -> list[Tree]:
    """What is filled: a tree of settings, and made-up data or the name of built-in data."""
    from regard.config.configs import CONFIGS
    from regard.config.load import check_config, read_recipe
    from regard.config.recipe_files import recipe_names
    from regard.data.sources.builtin import BUILTIN, builtin_task

    draw, found = random.Random(1), list[Tree]()
    for recipe in recipe_names():
        tree = read_recipe(recipe)
        task = check_config(tree, recipe).task.kind
        found += [{"tree": tree, "stats": stats_of(draw, task)} for _ in range(40)]
    pairs = [recipe for recipe in recipe_names() if "task" not in read_recipe(recipe)]
    found += [
        {"tree": read_recipe(recipe) if recipe else {}, "data": data}
        for data, recipe in product(BUILTIN, ["", "g2p", *pairs])
        if builtin_task(data) == "transduce"
    ]
    for _ in range(count):
        task = draw.choice(list(CONFIGS))
        found.append({"tree": random_tree(draw, task), "stats": stats_of(draw, task)})
    return found


def made_up(stats: Tree) -> Any:
    """Return made-up statistics of data."""
    from regard.core.data_stats import DataStats

    task = stats["task"]
    renamed = {"tokens": stats["tokens"], "outputs": stats["vocabulary"]}
    kept = {k: v for k, v in stats.items() if k not in ("tokens", "vocabulary", "task")}
    return DataStats(**renamed, **kept, labels=task in ("tag", "classify"))


def fill_case(case: Tree) -> Any:
    """Return the filled settings and the auto settings by new names; or "error"."""
    import regard
    from regard.config import defaults
    from regard.config.load import check_config, flatten
    from regard.core.errors import UserError
    from regard.data.sources.builtin import builtin

    old = has_old_names(Path(regard.__file__).parents[1])
    fill = defaults.fill if old else defaults.fill_defaults
    try:
        config = check_config(_old_tree(case["tree"]) if old else case["tree"], "settings")
        if "stats" in case:
            stats = made_up(case["stats"])
        else:
            task, options, _ = config.task.fit(builtin(case["data"]).train[:5000], config.model)
            config = config.model_copy(update={"task": options})
            stats = task.stats(task.corpus(builtin(case["data"]).train[:5000]))
        full, chosen = fill(config, stats)
    except UserError:
        return "error"
    filled = dict(flatten(yaml.safe_load(full.dump())))
    auto = [(one.key, one.value) for one in chosen]
    if old:
        filled = dict(new_setting(key, value) for key, value in filled.items())
        auto = [new_setting(key, value) for key, value in auto]
    return [filled, [[key, repr(value)] for key, value in auto]]


def _old_tree(tree: Tree, path: str = "") -> Tree:
    """Return nested settings with old names."""
    found: Tree = {}
    for key, value in tree.items():
        if isinstance(value, dict):
            found[key] = _old_tree(value, f"{path}{key}.")
            continue
        text = value if isinstance(value, str) else ""
        name, _, old = old_setting(f"{path}{key}={text}").partition("=")
        found[name.rpartition(".")[2]] = old if isinstance(value, str) else value
    return found


def run(source: Path, args: Tree) -> list[Tree]:
    """Return the cases with the results of the version in a folder."""
    found = subprocess.run(
        [sys.executable, __file__, "--worker"],
        env=os.environ | {"PYTHONPATH": str(source / "src"), "OMP_NUM_THREADS": "1"},
        input=json.dumps(args),
        capture_output=True,
        text=True,
        check=False,
    )
    if found.returncode:
        sys.exit(found.stderr)
    return json.loads(found.stdout)


def main() -> int:
    """Compare both versions; return 1 if anything differs."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("old", type=Path)
    parser.add_argument("--cases", type=int, default=4000)
    given = parser.parse_args()
    now = run(REPOSITORY, {"count": given.cases})
    then = run(given.old.resolve(), {"cases": now})
    different = [pair for pair in zip(then, now, strict=True) if pair[0] != pair[1]]
    for old, new in different[:5]:
        print(json.dumps({key: old[key] for key in old if key != "result"}))
        for name, case in (("then", old), ("now", new)):
            result = case["result"]
            print(
                f"{name}: {result if isinstance(result, str) else chr(10).join(map(str, result))}"
            )
    errors = sum(isinstance(case["result"], str) for case in then)
    print(f"{len(then)} cases, {errors} of them errors: {len(different)} differ")
    return int(bool(different))


if __name__ == "__main__":
    if sys.argv[1:] == ["--worker"]:
        args = json.load(sys.stdin)
        cases = args.get("cases") or all_cases(args["count"])
        print(json.dumps([case | {"result": fill_case(case)} for case in cases]))
        sys.exit()
    sys.exit(main())
