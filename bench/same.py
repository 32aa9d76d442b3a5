"""Whether this version computes what an older one computed, bit for bit.

usage: python bench/same.py OLD [--only NAME ...] [--work FOLDER] [--steps 50]
OLD is a commit of this repository or a folder with a checkout. Both versions train the same small
models on real data (REGARD_DATA) with fixed threads and seeds, one after the other, and predict
with them. Compared are: losses and gradient norms (as hex), every weight by name and byte, the
filled settings, and the predictions: greedy, beam, sampling, constraints, alignments, int8 weights,
ONNX, CTranslate2. No number is stored here: only old against new. Ends with 1 if anything differs.
"""

import argparse
import gzip
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import yaml
from older_names import (
    OPTIONS,
    has_old_names,
    new_prediction,
    new_record,
    new_setting,
    new_weight,
    old_setting,
)
from safetensors.numpy import load_file
from surroundings import REPOSITORY, RESULTS, folder, machine

CLOCK = ("elapsed_seconds", "tokens_per_second")  # fields of metrics.jsonl that no two runs share
WORDS, SENTENCES = 1000, 300


@dataclass(frozen=True)
class Case:
    """A model that both versions train. data: of `DATA`; after: names of `PREDICTIONS`."""

    name: str
    data: str
    settings: tuple[str, ...] = ()
    words: tuple[str, ...] = ()
    threads: int = 2
    processes: int = 1
    resume: bool = False
    after: tuple[str, ...] = ()


def sides(*settings: str) -> tuple[str, ...]:
    """The same settings for encoder and decoder."""
    return tuple(f"model.{side}.{one}" for side in ("encoder", "decoder") for one in settings)


TRANSFORMER = sides("kind=transformer", "layers=2", "width=64", "dropout=0.1")
LSTM = sides("kind=recurrent", "layers=2", "width=64", "dropout=0.1")
SEARCHES = ("greedy", "beam", "sample", "constraints", "alignments", "nbest", "alternatives")
ENGINES = ("int8", "int8-beam", "onnx", "ctranslate2")
CASES = [
    Case("lstm", "g2p", LSTM, after=(*SEARCHES, "int8", "int8-beam", "onnx")),
    Case("transformer", "m30k", TRANSFORMER, after=(*SEARCHES, *ENGINES)),
    Case(
        "transformer-post",
        "g2p",
        (*TRANSFORMER, *sides("norm_position=post")),
        after=("greedy", "beam", "onnx", "ctranslate2"),
    ),
    Case(
        "transformer-rms-gelu",
        "g2p",
        (*TRANSFORMER, *sides("norm=rms", "activation=gelu", "positions.kind=learned")),
        after=("greedy", "beam", "int8"),
    ),
    Case(
        "transformer-to-gru",
        "g2p",
        (
            *("model.encoder.kind=transformer", "model.encoder.layers=2", "model.encoder.width=64"),
            *("model.decoder.kind=recurrent", "model.decoder.cell=gru", "model.decoder.width=64"),
            "model.decoder.cross=additive",
        ),
        after=("greedy", "beam", "alignments", "int8"),
    ),
    Case(
        "lstm-to-transformer",
        "g2p",
        (
            *("model.encoder.kind=recurrent", "model.encoder.layers=1", "model.encoder.width=64"),
            *("model.decoder.kind=transformer", "model.decoder.layers=2"),
            *("model.decoder.width=64", "model.encoder.bidirectional=false"),
        ),
        after=("greedy", "beam"),
    ),
    Case(
        "input_feeding",
        "g2p",
        (*LSTM, "model.decoder.input_feeding=true", "model.decoder.cross=scaled_dot"),
        after=("greedy", "beam"),
    ),
    Case(
        "fixed-context",
        "g2p",
        (*LSTM, *sides("cell=rnn"), "model.decoder.cross=none", "model.encoder.layers=1"),
        after=("greedy", "beam"),
    ),
    Case("window-encoder", "g2p", ("model.encoder.kind=window",), after=("greedy",)),
    Case("defaults-g2p", "g2p", after=("greedy", "beam")),
    Case("accumulate", "g2p", (*TRANSFORMER, "training.accumulation_steps=2")),
    Case("bfloat16", "g2p", (*TRANSFORMER, "training.precision=bfloat16"), threads=1),
    Case("two-processes", "g2p", TRANSFORMER, threads=1, processes=2),
    Case("resumed", "g2p", (*LSTM, "training.average.kind=ema"), resume=True, after=("greedy",)),
    Case("tagger", "ewt", ("model.encoder.layers=1",), after=("labels",)),
    Case(
        "tagger-crf",
        "ewt",
        (
            *("model.encoder.kind=transformer", "model.encoder.layers=1", "model.head=crf"),
            *("model.encoder.width=64", "model.frontend.char_encoder=lstm"),
        ),
        after=("labels",),
    ),
    Case("classifier", "trec", after=("labels",)),
    Case(
        "classifier-attention",
        "trec",
        (
            "model.encoder.kind=transformer",
            "model.pooling=attention",
            "model.frontend.token_dropout=0.1",
        ),
        after=("labels",),
    ),
    Case("vectors", "vectors", after=("labels",)),
    Case("vectors-transformer", "vectors", ("model.encoder.kind=transformer",), after=("labels",)),
    Case("regressor", "numbers", ("model.encoder.kind=recurrent",), after=("labels",)),
    Case(
        "gpt",
        "text",
        ("model.decoder.kind=transformer", "model.decoder.layers=2", "model.decoder.width=64"),
        after=("continuations",),
    ),
    Case(
        "lstm-language-model", "text", ("model.decoder.kind=recurrent",), after=("continuations",)
    ),
    Case("window-language-model", "text", ("model.decoder.kind=window",)),
    Case("masked", "text", ("model.kind=masked", "model.encoder.kind=transformer")),
    Case("ngram", "text", ("model.kind=ngram",), after=("continuations",)),
]

# What is asked of trained models: words of the command `predict`.
PREDICTIONS: dict[str, tuple[str, ...]] = {
    "greedy": ("--beam", "1", "--token-scores"),
    "beam": ("--beam", "5", "--token-scores"),
    "nbest": ("--beam", "5", "--nbest", "3", "--beam-groups", "5"),
    "sample": ("--sample", "--seed", "3", "--top-p", "0.9"),
    "constraints": ("--beam", "3", "--min-length", "3", "--no-repeat-ngram", "2"),
    "alignments": ("--beam", "2", "--alignments"),
    "alternatives": ("--alternatives", "3"),
    "int8": ("--beam", "1", "--quantize", "int8", "--token-scores"),
    "int8-beam": ("--beam", "5", "--quantize", "int8"),
    "onnx": ("--beam", "2", "--engine", "onnx"),
    "ctranslate2": ("--beam", "5", "--engine", "ctranslate2"),
    "labels": (),
    "continuations": ("--max-length", "30", "--seed", "5"),
}


def lines(path: Path, count: int) -> list[str]:
    """The first lines of a gzipped file."""
    with gzip.open(path, "rt", encoding="utf-8", newline="\n") as file:
        return [line.rstrip("\n") for line in islice(file, count)]


def prepare(work: Path, data: Path) -> dict[str, tuple[list[str], list[str]]]:
    """By name of data: the words that name them for `train`, and inputs for `predict`."""
    work.mkdir(parents=True, exist_ok=True)

    def write(name: str, content: list[str]) -> str:
        path = work / name
        path.write_text("\n".join(content) + "\n", encoding="utf-8")
        return str(path)

    def pair(name: str, train: list[str], dev: list[str]) -> list[str]:
        return [write(f"{name}.train.tsv", train), "--dev", write(f"{name}.dev.tsv", dev)]

    g2p, m30k = data / "cmudict_g2p", data / "multi30k"
    words = lines(g2p / "dev.tsv.gz", WORDS)
    found = {
        "g2p": (
            pair("g2p", lines(g2p / "train.tsv.gz", 20000), words[:200]),
            [line.split("\t")[0] for line in words],
        )
    }
    parts = {
        (part, side): lines(m30k / f"{part}.{side}.gz", count)
        for part, count in (("train", 8000), ("val", SENTENCES))
        for side in ("en", "de")
    }
    both = {
        part: [
            "\t".join(text.replace("\t", " ") for text in one)
            for one in zip(parts[part, "en"], parts[part, "de"], strict=True)
        ]
        for part in ("train", "val")
    }
    found["m30k"] = (pair("m30k", both["train"], both["val"][:100]), parts["val", "en"])
    tagged = {part: _sentences(data / "ud_english_ewt", part) for part in ("train", "dev")}
    conll = {part: "\n\n".join(rows).split("\n") for part, rows in tagged.items()}
    found["ewt"] = (
        [
            *("--task", "tag", write("ewt.train.tsv", conll["train"])),
            *("--dev", write("ewt.dev.tsv", conll["dev"])),
        ],
        [" ".join(row.split("\t")[0] for row in rows.split("\n")) for rows in tagged["dev"]],
    )
    trec = {part: _trec(data / "trec", part) for part in ("train", "dev")}
    found["trec"] = (
        ["--task", "classify", *pair("trec", trec["train"], trec["dev"])],
        [line.split("\t")[0] for line in trec["dev"]],
    )
    found["numbers"] = (
        [
            *("--task", "regress"),
            *pair("numbers", *([_lengths(row) for row in trec[p]] for p in ("train", "dev"))),
        ],
        [line.split("\t")[0] for line in trec["dev"]],
    )
    vectors = [_vector(i) for i in range(600)]
    found["vectors"] = (
        ["--task", "classify", *pair("vectors", vectors[:500], vectors[500:])],
        [line.rsplit("\t", 1)[0].replace("\t", ",") for line in vectors[500:]],
    )
    text = lines(data / "small_texts" / "tinyshakespeare.train.txt.gz", 6000)
    found["text"] = (
        [
            *("--task", "language-model", write("text.train.txt", text[:5500])),
            *("--dev", write("text.dev.txt", text[5500:])),
        ],
        ["ROMEO:", "What", "the king"],
    )
    return found


def _sentences(place: Path, part: str) -> list[str]:
    """Sentences of a CoNLL-U file, a word and its tag a line."""
    name = place / f"en_ewt-ud-{part}.conllu.gz"
    found: list[str] = []
    rows: list[str] = []
    for line in lines(name, 40000):
        cells = line.split("\t")
        if not line and rows:
            found.append("\n".join(rows))
            rows = []
        elif len(cells) > 3 and cells[0].isdecimal():
            rows.append(f"{cells[1].replace(' ', '')}\t{cells[3]}")
    return found[: 1200 if part == "train" else SENTENCES]


def _trec(place: Path, part: str) -> list[str]:
    """Questions and their coarse classes, a pair a line."""
    rows = [line.split("\t") for line in lines(place / f"{part}.tsv.gz", 3000)]
    return [f"{text}\t{label}" for label, _, text in rows]


def _lengths(row: str) -> str:
    """A question and how long it is."""
    text = row.split("\t")[0]
    return f"{text}\t{len(text) / 10}"


def _vector(i: int) -> str:
    """Three numbers and a class that follows from them."""
    numbers = [((i * step) % 97) / 10 for step in (7, 31, 53)]
    return "\t".join([*map(str, numbers), "high" if sum(numbers) > 14 else "low"])


@dataclass
class Version:
    """A checkout, and where its runs go."""

    name: str
    source: Path
    out: Path
    old_names: bool = False

    @classmethod
    def of(cls, name: str, checkout: Path, out: Path) -> "Version":
        """Return the version in a checkout."""
        out.mkdir(parents=True, exist_ok=True)
        source = checkout / "src"
        return cls(name, source, out, has_old_names(source))

    def setting(self, text: str) -> str:
        """Return KEY=VALUE as this version names it."""
        return old_setting(text) if self.old_names else text

    def options(self, words: tuple[str, ...], case: "Case") -> list[str]:
        """Return options of `predict` as this version names them."""
        if not self.old_names:
            return list(words)
        length = {"--max-length": "--length"} if case.data == "text" else {}
        return [(OPTIONS | length).get(word, word) for word in words]

    def _environment(self, threads: int) -> dict[str, str]:
        """Return the environment in which this version runs."""
        return os.environ | {
            "PYTHONPATH": str(self.source),
            "OMP_NUM_THREADS": str(threads),
            "MKL_NUM_THREADS": str(threads),
            "XDG_CACHE_HOME": str(self.out / "cache"),
        }

    def call(self, words: list[str], log: Path, threads: int = 2, processes: int = 1) -> str:
        """What `regard` prints; the log gets the rest."""
        start = [sys.executable, "-m"]
        if processes > 1:
            start += ["torch.distributed.run", "--standalone"]
            start += ["--nproc-per-node", str(processes), "-m"]
        with open(log, "a", encoding="utf-8") as errors:
            errors.write(" ".join(words) + "\n")
            errors.flush()
            done = subprocess.run(
                [*start, "regard", *words],
                env=self._environment(threads),
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                check=False,
            )
        if done.returncode:
            last = log.read_text(errors="replace").strip().splitlines()[-1:]
            raise RuntimeError(f"{self.name}: regard {words[0]} failed: {''.join(last)} ({log})")
        return done.stdout

    def train(self, case: Case, data: list[str], steps: int) -> Path:
        """The run folder of a case."""
        out, log = self.out / case.name, self.out / f"{case.name}.log"
        shutil.rmtree(out, ignore_errors=True)
        log.unlink(missing_ok=True)
        settings = [
            *case.settings,
            "training.batch_tokens=2000",
            f"training.validate_every={steps // 2}",
        ]
        settings.append("training.validation_examples=60")
        if case.resume:
            settings.append(f"training.checkpoint_every={steps // 2}")
        exact = any("ngram" in one for one in case.settings)
        if exact:
            settings = list(case.settings)
        words = ["train", *data, "--out", str(out), *case.words]
        words += [word for one in settings for word in ("--set", self.setting(one))]
        steps_words = [] if exact else ["--steps", str(steps)]
        if case.resume:
            self._killed(words + steps_words, out, log, case.threads)
            self.call([*words, *steps_words, "--resume"], log, case.threads)
        else:
            self.call(words + steps_words, log, case.threads, case.processes)
        return out

    def _killed(self, words: list[str], out: Path, log: Path, threads: int) -> None:
        """The same as `call`, but killed at the first checkpoint."""
        with open(log, "a", encoding="utf-8") as errors:
            process = subprocess.Popen(
                [sys.executable, "-m", "regard", *words],
                env=self._environment(threads),
                stdout=errors,
                stderr=errors,
            )
        while process.poll() is None and not any(out.glob("*/*.json")):
            time.sleep(0.005)
        process.kill()
        if process.wait() == 0:
            raise RuntimeError(f"{self.name}: ended before it was killed ({log})")

    def predict(self, case: Case, run: Path, kind: str, inputs: Path) -> str:
        """The predictions of a run, as printed."""
        words = self.options(PREDICTIONS[kind], case)
        if kind == "alternatives":
            texts = inputs.read_text(encoding="utf-8").splitlines()[:4]
            log = self.out / f"{case.name}.log"
            command = ["predict", str(run), *words, "--json", "--"]
            return self._renamed("".join(self.call([*command, text], log) for text in texts))
        words = ["predict", str(run), "--input", str(inputs), "--json", *words]
        return self._renamed(self.call(words, self.out / f"{case.name}.log"))

    def _renamed(self, text: str) -> str:
        """Return predictions with new names."""
        if not self.old_names:
            return text
        return "".join(f"{new_prediction(line)}\n" for line in text.splitlines())


def exact(value: Any) -> Any:
    """Numbers as hex, so that nothing is rounded."""
    if isinstance(value, float):
        return value.hex()
    if isinstance(value, dict):
        return {key: exact(one) for key, one in value.items() if key not in CLOCK}
    return [exact(one) for one in value] if isinstance(value, list) else value


def log_of(run: Path) -> list[Any]:
    """Return the records of a run without its clock."""
    text = (run / "metrics.jsonl").read_text(encoding="utf-8")
    return [exact(new_record(json.loads(line))) for line in text.splitlines()]


def settings_of(run: Path, version: Version) -> dict[str, Any]:
    """The filled settings by path, under their new names."""

    def walk(tree: Any, path: str) -> Iterator[tuple[str, Any]]:
        if isinstance(tree, dict) and tree:
            for key, value in tree.items():
                yield from walk(value, f"{path}.{key}" if path else key)
        else:
            yield path, tree

    found = dict(walk(yaml.safe_load((run / "config.yaml").read_text()), ""))
    if version.old_names:
        found = dict(new_setting(key, value) for key, value in found.items())
    return {key.removesuffix(".kind"): value for key, value in found.items()}


def compare(case: Case, runs: list[Path], versions: list[Version]) -> list[str]:
    """What differs between two trained runs."""
    found = []
    logs = [log_of(run) for run in runs]
    for old, new in zip(*logs, strict=False):
        if old != new:
            names = [key for key in {*old, *new} if old.get(key) != new.get(key)]
            step = f"{old['kind']} at step {old['step']}"
            shown = ", ".join(f"{n} {old.get(n)} now {new.get(n)}" for n in sorted(names)[:2])
            found.append(f"{step}: {shown}")
            break
    if len(logs[0]) != len(logs[1]):
        found.append(f"{len(logs[0])} records then, {len(logs[1])} now")
    settings = [settings_of(run, v) for run, v in zip(runs, versions, strict=True)]
    for key in settings[0]:
        if settings[0][key] != settings[1].get(key):
            found.append(f"setting {key}: {settings[0][key]!r} then, {settings[1].get(key)!r} now")
    weights = [
        {new_weight(name): value for name, value in load_file(run / "model.safetensors").items()}
        for run in runs
    ]
    if weights[0].keys() != weights[1].keys():
        odd = sorted(weights[0].keys() ^ weights[1].keys())
        found.append(f"weights of one only: {', '.join(odd[:3])}")
    for name in weights[0].keys() & weights[1].keys():
        old, new = weights[0][name], weights[1][name]
        if old.dtype != new.dtype or old.shape != new.shape or old.tobytes() != new.tobytes():
            found.append(f"weight {name} differs")
    return found


def differing(old: str, new: str) -> str | None:
    """The first predictions that differ, and how many do."""
    if old == new:
        return None
    rows = list(zip(old.splitlines(), new.splitlines(), strict=False))
    bad = [(one, other) for one, other in rows if one != other]
    count = f"{len(bad)} of {len(rows)} differ"
    return f"{count}: {bad[0][0][:90]} now {bad[0][1][:90]}" if bad else "another number of lines"


def checkout(name: str, work: Path) -> Path:
    """The folder of a checkout: the folder itself, or a clone at that commit."""
    if Path(name).is_dir():
        return Path(name).resolve()
    place = work / f"checkout-{name}"
    if not place.exists():
        subprocess.run(["git", "clone", "-q", str(REPOSITORY), str(place)], check=True)
    subprocess.run(["git", "-C", str(place), "checkout", "-q", name], check=True)
    return place


def main() -> int:
    """Runs all cases; 1 if anything differs."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("old")
    parser.add_argument("--only", nargs="*", default=[])
    parser.add_argument("--work", type=Path, default=REPOSITORY / "runs" / "bench-same")
    parser.add_argument("--steps", type=int, default=50)
    parser.add_argument("--keep-old", action="store_true", help="do not run OLD again")
    given = parser.parse_args()
    data = folder("REGARD_DATA", "../shared/data")
    if data is None:
        return 2
    work = given.work.resolve()
    sources = prepare(work / "data", data)
    versions = [
        Version.of("old", checkout(given.old, work), work / "old"),
        Version.of("new", REPOSITORY, work / "new"),
    ]
    results: dict[str, Any] = {}
    for case in CASES:
        if given.only and case.name not in given.only:
            continue
        train, texts = sources[case.data]
        inputs = work / "data" / f"{case.data}.inputs.txt"
        inputs.write_text("\n".join(texts) + "\n", encoding="utf-8")
        found: dict[str, list[str]] = {}
        runs = []
        for version in versions:
            kept = version.out / case.name / "model.safetensors"
            again = not (given.keep_old and version.name == "old" and kept.exists())
            runs.append(version.train(case, train, given.steps) if again else kept.parent)
        found["training"] = compare(case, runs, versions)
        for kind in case.after:
            both = []
            for version, run in zip(versions, runs, strict=True):
                place = version.out / f"{case.name}.{kind}.jsonl"
                if version.name == "new" or not (given.keep_old and place.exists()):
                    place.write_text(version.predict(case, run, kind, inputs), encoding="utf-8")
                both.append(place.read_text(encoding="utf-8"))
            odd = differing(*both)
            count = len(both[1].splitlines())
            found[f"{kind} ({count})"] = [] if odd is None else [odd]
        results[case.name] = found
        bad = [f"{name}: {one}" for name, odd in found.items() for one in odd]
        print(
            f"{case.name}: " + ("same: " + ", ".join(found) if not bad else "DIFFERS"), flush=True
        )
        for line in bad:
            print(f"    {line}", flush=True)
    differ = [name for name, found in results.items() if any(found.values())]
    commits = [
        subprocess.run(
            ["git", "-C", str(version.source), "rev-parse", "--short", "HEAD"],
            capture_output=True,
            text=True,
            check=True,
        ).stdout.strip()
        for version in versions
    ]
    print(f"{commits[0]} and {commits[1]}: {len(results) - len(differ)} of {len(results)} the same")
    if not given.only:
        RESULTS.mkdir(exist_ok=True)
        record = {"machine": machine(), "commits": commits, "cases": results}
        (RESULTS / "same.json").write_text(json.dumps(record, indent=1) + "\n")
    return int(bool(differ))


if __name__ == "__main__":
    sys.exit(main())
