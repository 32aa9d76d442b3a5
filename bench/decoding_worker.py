"""Holds one loaded model; answers a JSON line on stdin with a JSON line on stdout.

usage: decoding_worker.py SYSTEM MODEL TEXTS PIECES LONGEST
    SYSTEM: ours ours-int8 ours-onnx ours-ctranslate2 ctranslate2-1x2 ctranslate2-2x1 (these three
            also -int8) transformers eole joey yoyodyne-lstm yoyodyne-transformer
A line asks {beam, batch, count, alone, output}: the first `count` inputs in one call or, alone,
each in a call of its own. The answer is {seconds, processor, sentences, tokens}, processor being
the seconds of all cores. Loading is outside the clock. Ours cuts text into pieces and joins them
inside the clock; the others get pieces, and turn them into numbers and back inside the clock. This
file runs in the environments of the peers, so it imports each system only where it is asked for.
"""

import copy
import json
import os
import resource
import sys
import time
from collections.abc import Callable
from importlib import metadata
from pathlib import Path

THREADS = 2
ALPHA = 0.75  # score = log p / length^alpha
UNK, EOS, PAD = 1, 3, 0  # in the vocabularies of ours
Outputs = list[list[str]]
Run = Callable[[int, int, slice], Outputs]  # beam, batch, which inputs


def ours(model: str, texts: list[str], longest: int, quantize: str | None) -> Run:
    """regard, as `regard predict` calls it."""
    import regard

    estimator = regard.load(model, quantize=quantize)

    def run(beam: int, batch: int, which: slice) -> Outputs:
        search = {"beam": beam, "length_penalty": ALPHA, "max_length": longest}
        found = estimator.predict_detailed(texts[which], batch_size=batch, **search)
        return [list(one.tokens) for one in found]

    return run


def ctranslate2(
    model: str, pieces: Outputs, longest: int, threads: tuple[int, int], kind: str
) -> Run:
    """CTranslate2 with several translators and threads; tokens are ids as strings."""
    import ctranslate2 as package

    tokens, numbers = tokens_of(model)
    rows = [[str(numbers.get(piece, UNK)) for piece in row] + [str(EOS)] for row in pieces]
    inter, intra = threads
    translator = package.Translator(
        model, device="cpu", compute_type=kind, inter_threads=inter, intra_threads=intra
    )

    def run(beam: int, batch: int, which: slice) -> Outputs:
        found = translator.translate_batch(
            rows[which],
            beam_size=beam,
            max_batch_size=batch,
            batch_type="examples",
            length_penalty=ALPHA,
            max_decoding_length=longest,
        )
        return [[tokens[int(id)] for id in one.hypotheses[0]] for one in found]

    return run


def tokens_of(model: str) -> tuple[list[str], dict[str, int]]:
    """Tokens by number, and numbers by token."""
    tokens = json.loads(Path(model, "tokens.json").read_text(encoding="utf-8"))
    return tokens, {token: id for id, token in enumerate(tokens)}


def transformers(model: str, pieces: Outputs, longest: int) -> Run:
    """transformers' `generate`, its batches sorted by length."""
    import torch
    from transformers import PegasusForConditionalGeneration

    torch.set_num_threads(THREADS)
    network = PegasusForConditionalGeneration.from_pretrained(model).eval()
    tokens, numbers = tokens_of(model)

    @torch.inference_mode()
    def run(beam: int, batch: int, which: slice) -> Outputs:
        rows = [[numbers.get(piece, UNK) for piece in row] + [EOS] for row in pieces[which]]
        order = sorted(range(len(rows)), key=lambda i: len(rows[i]))
        found: Outputs = [[] for _ in rows]
        for first in range(0, len(order), batch):
            part = order[first : first + batch]
            length = max(len(rows[i]) for i in part)
            data = torch.tensor([rows[i] + [PAD] * (length - len(rows[i])) for i in part])
            outputs = network.generate(
                input_ids=data,
                attention_mask=(data != PAD).long(),
                num_beams=beam,
                do_sample=False,
                max_new_tokens=longest,
                early_stopping=beam > 1,
                length_penalty=ALPHA if beam > 1 else None,
                use_cache=True,
            )
            for i, row in zip(part, outputs.tolist(), strict=True):
                found[i] = [tokens[id] for id in row[1:] if id not in (PAD, EOS)]
        return found

    return run


def eole(model: str, pieces: Outputs, longest: int) -> Run:
    """Eole's inference engine. Its sources have no end token, ours have one: it is written out."""
    import torch

    torch.set_num_threads(THREADS)
    from eole.config.run import PredictConfig
    from eole.inference_engine import InferenceEnginePY

    lines = [" ".join([*row, "</s>"]) for row in pieces]

    def engine(beam: int, batch: int) -> InferenceEnginePY:
        return InferenceEnginePY(
            PredictConfig(
                model_path=[model],
                src="dummy",
                beam_size=beam,
                batch_size=batch,
                batch_type="sents",
                max_length=longest,
                length_penalty="avg",
                alpha=ALPHA,
                gpu_ranks=[],
                world_size=0,
                compute_dtype="fp32",
                seed=1,
            )
        )

    engines = {(beam, batch): engine(beam, batch) for beam in (1, 5) for batch in (1, 32)}

    def run(beam: int, batch: int, which: slice) -> Outputs:
        _, _, found = engines[beam, batch].infer_list(lines[which])
        return [one[0].split() for one in found]

    return run


def joey(model: str, pieces: Outputs, longest: int) -> Run:
    """JoeyNMT's `predict`; the longest output is its own default, 1.5 times the source."""
    import torch

    torch.set_num_threads(THREADS)
    from joeynmt.config import load_config, parse_global_args
    from joeynmt.prediction import predict, prepare

    settings = parse_global_args(load_config(Path(model, "config.yaml")), rank=0, mode="test")
    network, _, _, test = prepare(settings, rank=0, mode="test")

    def run(beam: int, batch: int, which: slice) -> Outputs:
        data = copy.copy(test)
        data.data = {side: rows[which] for side, rows in test.data.items()}
        data.has_trg = False
        data.reset_indices()
        wanted = settings.test._replace(
            beam_size=beam,
            batch_size=batch,
            batch_type="sentence",
            beam_alpha=ALPHA,
            max_output_length=-1,
            eval_metrics=[],
        )
        found = predict(
            model=network,
            data=data,
            device=settings.device,
            n_gpu=0,
            compute_loss=False,
            args=wanted,
            autocast=settings.autocast,
        )
        return [[word for word in row if word not in ("</s>", "<pad>", "<s>")] for row in found[3]]

    return run


def load(system: str, model: str, texts: list[str], pieces: Outputs, longest: int) -> Run:
    """The run function of a system."""
    name, _, variant = system.partition("-")
    if name == "ours":
        return ours(model, texts, longest, "int8" if variant == "int8" else None)
    if name == "ctranslate2":
        threads = (1, 2) if variant.startswith("1x2") else (2, 1)
        kind = "int8" if "int8" in variant else "float32"
        return ctranslate2(model, pieces, longest, threads, kind)
    if name == "yoyodyne":
        import decoding_yoyodyne

        return decoding_yoyodyne.load(variant, model, texts, longest, THREADS)
    return {"transformers": transformers, "eole": eole, "joey": joey}[name](model, pieces, longest)


def read(path: str) -> list[str]:
    """The lines of a file."""
    return Path(path).read_text(encoding="utf-8").removesuffix("\n").split("\n")


def version(system: str) -> str:
    """The version of the package behind a system."""
    name = system.partition("-")[0]
    return metadata.version({"ours": "regard", "joey": "joeynmt"}.get(name, name))


def processor_time() -> float:
    """Seconds of all threads of this process and of its copies that have ended."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)


def main() -> None:
    """Load, print a line, then serve requests until stdin ends."""
    system, model, texts, pieces, longest = sys.argv[1:6]
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)  # what a system prints goes to the log
    cut = [line.split(" ") for line in read(pieces)]
    run = load(system, model, read(texts), cut, int(longest))
    for beam in (1, 5):
        run(beam, 32, slice(64))
    print(json.dumps({"ready": system, "version": version(system)}), file=answers)
    for line in sys.stdin:
        ask = json.loads(line)
        count = ask["count"]
        which = [slice(i, i + 1) for i in range(count)] if ask["alone"] else [slice(count)]
        began, worked = time.perf_counter(), processor_time()
        found = [row for part in which for row in run(ask["beam"], ask["batch"], part)]
        seconds = time.perf_counter() - began
        processor = processor_time() - worked
        if ask["output"]:
            lines = "".join(" ".join(row) + "\n" for row in found)
            Path(ask["output"]).write_text(lines, encoding="utf-8")
        tokens = sum(map(len, found))
        record = {"seconds": seconds, "processor": processor}
        record |= {"sentences": len(found), "tokens": tokens}
        print(json.dumps(record), file=answers)


if __name__ == "__main__":
    main()
