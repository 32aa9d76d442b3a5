"""Ways to damage a model folder, each a function of a path and a random generator."""

import json
import os
import random
import shutil
import struct
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import yaml

HUGE = (10**9, 10**18, 10**30, -1, 0, 1e308, -(10**12), 2**31, 1_000_000)
TYPES = (None, True, "", "word", "1", 3, 2.5, [], {}, [1], {"a": 1}, ["a", "a"], [[[]]], "\ud800")
FORMS = (lambda n: "9" * n, lambda n: "[" * n, lambda n: '{"a":' * n, lambda n: "- " * n)
FIFO, DEVICE = "named pipe", "endless device"

Damage = Callable[[Path, random.Random], str]


def damage_folder(folder: Path, others: list[Path], chance: random.Random) -> str:
    """Damage a file of a run folder in a random way; return what was done. others: healthy runs."""
    path = chance.choice(list(files(folder)))
    kinds = {".json": change_json, ".yaml": change_yaml, ".jsonl": change_lines}
    special = {**kinds, ".safetensors": change_tensors}.get(path.suffix)
    if special is not None and chance.random() < 0.65:
        done = special(path, chance)
    elif chance.random() < 0.15:
        done = swap(path, folder, others, chance)
    else:
        done = chance.choice(GENERAL)(path, chance)
    return f"{path.relative_to(folder)}: {done}"


def files(folder: Path) -> Iterator[Path]:
    """Yield the files of a run that are read again, each of them as often as it matters."""
    for path in sorted(folder.rglob("*")):
        if (
            path.is_file()
            and path.suffix not in (".html", ".txt")
            and "checkpoint" not in str(path)
        ):
            name = path.relative_to(folder)
            weight = 3 if name.parts[0] in ("config.yaml", "vocabulary", "model.safetensors") else 1
            yield from [path] * weight


# any file


def truncate(path: Path, chance: random.Random) -> str:
    """Keep the first bytes only."""
    content = path.read_bytes()
    end = chance.choice([0, 1, chance.randrange(len(content)), len(content) - 1])
    path.write_bytes(content[:end])
    return f"truncated to {end} bytes"


def flip_bits(path: Path, chance: random.Random) -> str:
    """Flip one to twenty bits."""
    content = bytearray(path.read_bytes())
    count = chance.randint(1, 20)
    end = len(content) if chance.random() < 0.5 else min(len(content), 200)
    for _ in range(count):
        content[chance.randrange(end)] ^= 1 << chance.randrange(8)
    path.write_bytes(content)
    return f"{count} bits flipped"


def delete(path: Path, chance: random.Random) -> str:
    """Delete the file."""
    path.unlink()
    return "deleted"


def replace_by_folder(path: Path, chance: random.Random) -> str:
    """A folder of the same name."""
    path.unlink()
    path.mkdir()
    return "a folder"


def replace_by_pipe(path: Path, chance: random.Random) -> str:
    """A named pipe without a writer."""
    path.unlink()
    os.mkfifo(path)
    return FIFO


def replace_by_device(path: Path, chance: random.Random) -> str:
    """A link to a device that never ends."""
    path.unlink()
    path.symlink_to("/dev/zero")
    return DEVICE


def replace_by_link(path: Path, chance: random.Random) -> str:
    """A link to nothing, or to itself."""
    path.unlink()
    path.symlink_to(chance.choice(["nowhere", path.name]))
    return "a dangling link"


def randomize(path: Path, chance: random.Random) -> str:
    """Random bytes."""
    path.write_bytes(chance.randbytes(chance.choice([1, 100, 10_000])))
    return "random bytes"


def enlarge(path: Path, chance: random.Random) -> str:
    """A file of 20 GB that uses no disk."""
    os.truncate(path, 20 * 1024**3)
    return "20 GB"


def swap(path: Path, folder: Path, others: list[Path], chance: random.Random) -> str:
    """The content of another file of this run, or of the same file of another run."""
    sources = [file for file in files(folder) if file != path]
    for other in others:
        same = other / path.relative_to(folder)
        sources += [same] * 3 if same.is_file() else []
    source = chance.choice(sources)
    shutil.copyfile(source, path)
    return f"replaced by {source.parent.name}/{source.name}"


GENERAL: tuple[Damage, ...] = (
    *(truncate, flip_bits, delete, replace_by_folder, replace_by_pipe, replace_by_device),
    *(replace_by_link, randomize, enlarge),
)

# values


def change_json(path: Path, chance: random.Random) -> str:
    """Change the content of a JSON file."""
    text, done = changed(path.read_text("utf-8"), json.loads, json.dumps, chance)
    path.write_text(text, "utf-8")
    return done


def change_lines(path: Path, chance: random.Random) -> str:
    """Change one line of a JSONL file."""
    lines = path.read_text("utf-8").splitlines() or ["{}"]
    at = chance.randrange(len(lines))
    lines[at], done = changed(lines[at], json.loads, json.dumps, chance)
    path.write_text("".join(f"{line}\n" for line in lines), "utf-8")
    return f"line {at + 1}: {done}"


def change_yaml(path: Path, chance: random.Random) -> str:
    """Change the content of a YAML file, or use aliases."""
    if chance.random() < 0.1:
        levels = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
        for n in range(1, 11):
            levels.append(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]")
        path.write_text("\n".join([*levels, path.read_text("utf-8")]), "utf-8")
        return "nested aliases"
    text, done = changed(path.read_text("utf-8"), yaml.safe_load, yaml.safe_dump, chance)
    path.write_text(text, "utf-8")
    return done


def changed(
    text: str, load: Callable[[str], Any], dump: Callable[[Any], str], chance: random.Random
) -> tuple[str, str]:
    """Return the text with a changed value, and what was done."""
    draw = chance.random()
    if draw < 0.1:
        size = chance.choice([5000, 200_000])
        return chance.choice(FORMS)(size), "nested or long"
    tree = load(text)
    spots = [spot for spot in walk({"": tree}) if spot[1] != ""] or [({"": tree}, "")]
    owner, key = chance.choice(spots)
    before = repr(owner[key])[:40]
    if draw < 0.2:
        root = chance.choice([[], None, "x", 1, {}, [tree]])
        return dump(root), f"everything is {root!r:.20}"
    if draw < 0.3:
        marked = {**owner} if isinstance(owner, dict) else owner
        marked[key] = "HERE"
        if isinstance(owner, dict):
            owner.update(marked)
        long = chance.choice(["9" * 5000, "[" * 2000 + "]" * 2000, "1e999", "-" + "9" * 400])
        return dump(tree).replace('"HERE"', long).replace("HERE", long), f"{key}: {long[:9]}..."
    if draw < 0.4:
        del owner[key]
        return dump(tree), f"{key}: removed"
    owner[key] = chance.choice(HUGE if draw < 0.7 else TYPES)
    if isinstance(owner[key], str):
        owner[key] = owner[key].encode("utf-8", "replace").decode()
    return dump(tree), f"{key}: {before} is {owner[key]!r}"


def walk(tree: Any) -> Iterator[tuple[Any, Any]]:
    """Yield each container with each of its keys."""
    keys = list(tree) if isinstance(tree, dict) else range(len(tree))
    for key in keys:
        yield tree, key
        if isinstance(tree[key], dict | list):
            yield from walk(tree[key])


# weights


def change_tensors(path: Path, chance: random.Random) -> str:
    """Change the header or the numbers of a safetensors file."""
    content = path.read_bytes()
    (length,) = struct.unpack("<Q", content[:8])
    header, data = json.loads(content[8 : 8 + length]), bytearray(content[8 + length :])
    name = chance.choice([name for name in header if name != "__metadata__"])
    entry, draw = header[name], chance.random()
    if draw < 0.15:
        length = chance.choice([2**63, 2**62, 2**27, 10**6, 0])
        path.write_bytes(struct.pack("<Q", length) + content[8:])
        return f"header of {length} bytes"
    if draw < 0.5:
        start, end = entry["data_offsets"]
        value = chance.choice([b"\x00\x00\xc0\x7f", b"\x00\x00\x80\x7f", b"\xff\xff\x7f\x7f"])
        data[start:end] = (value * (end - start))[: end - start]
        done = f"{name}: all {struct.unpack('<f', value)[0]}"
    elif draw < 0.7:
        entry["shape"] = chance.choice([[], [0], [10**9, 10**9], entry["shape"][::-1], [1, 1, 1]])
        done = f"{name}: shape {entry['shape']}"
    elif draw < 0.85:
        entry["dtype"] = chance.choice(["I32", "F64", "BF16", "BOOL", "F8_E4M3", "what"])
        done = f"{name}: dtype {entry['dtype']}"
    else:
        header[chance.choice(["other", ""])] = header.pop(name)
        done = f"{name}: renamed"
    new = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(new)) + new + data)
    return done
