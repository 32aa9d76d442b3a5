"""Tables and bars of the decoding bench."""

from pathlib import Path

from interleaved import Setting, output_of

BEAM, GREEDY, GREEDY_ONE = "beam 5, batch 32", "beam 1, batch 32", "beam 1, batch 1"
BEAM_ONE, ALONE = "beam 5, batch 1", "beam 1, one a call"
# half of the bench, our system, the peer, setting, least ratio
BARS = [
    *(
        ("translation", f"ours-{peer}", peer, setting, 0.95)
        for peer in ("ctranslate2", "ctranslate2-int8")
        for setting in (GREEDY, BEAM, GREEDY_ONE, BEAM_ONE, ALONE)
    ),
    ("translation", "ours", "ctranslate2", GREEDY, 0.7),
    ("translation", "ours", "ctranslate2", BEAM, 0.85),
    ("translation", "ours", "transformers", BEAM, 2.0),
    ("translation", "ours", "eole", BEAM, 2.0),
    ("translation", "ours", "joey", BEAM, 4.0),
    ("translation", "ours", "ctranslate2", GREEDY_ONE, 0.6),
    ("translation", "ours", "eole", GREEDY_ONE, 6.0),
    ("g2p", "ours-lstm", "yoyodyne-lstm", GREEDY, 6.0),
    ("g2p", "ours-transformer", "yoyodyne-transformer", GREEDY, 5.0),
]
Rates = dict[str, dict[str, dict]]


def median(rates: Rates, system: str, setting: str) -> float | None:
    """The median of a system; of CTranslate2 that of the better use of two threads."""
    if system.startswith("ctranslate2"):
        end = system.removeprefix("ctranslate2")
        names = [f"ctranslate2-{threads}{end}" for threads in ("1x2", "2x1")]
    else:
        names = [system]
    found = [rates[name][setting]["median"] for name in names if name in rates]
    return max(found, default=None)


def bars(record: dict) -> list[dict]:
    """Each bar with what was measured."""
    found = []
    for half, ours, peer, setting, least in BARS:
        rates = record.get(half, {})
        mine, theirs = median(rates, ours, setting), median(rates, peer, setting)
        ratio = round(mine / theirs, 2) if mine and theirs else None
        reached = None if ratio is None else ratio >= least
        what = f"{ours} against {peer}, {setting}"
        found.append({"bar": what, "least": least, "measured": ratio, "reached": reached})
    scores = record.get("quality", {})
    both = [scores.get(name, {}).get("bleu") for name in ("ours", "ours-int8")]
    loss = round(both[0] - both[1], 2) if None not in both else None
    reached = None if loss is None else loss <= 0.3
    what = "BLEU that int8 loses, beam 5"
    return [*found, {"bar": what, "most": 0.3, "measured": loss, "reached": reached}]


def quality(systems: list[str], settings: list[Setting], work: Path) -> dict[str, dict]:
    """BLEU of each system at beam 5, and the share of outputs that are the same as ours."""
    import sacrebleu

    beam = next(setting for setting in settings if setting.name == BEAM)
    references = (work / "references.txt").read_text(encoding="utf-8").split("\n")[: beam.count]
    found: dict[str, dict] = {}
    for system in systems:
        outputs = text_of(output_of(work, system, beam))
        found[system] = {"bleu": round(sacrebleu.corpus_bleu(outputs, [references]).score, 2)}
        for setting in settings if "ours" in systems else []:
            pairs = list(
                zip(*(text_of(output_of(work, s, setting)) for s in ("ours", system)), strict=True)
            )
            same = sum(one == other for one, other in pairs) / len(pairs)
            found[system][f"as ours, {setting.name}"] = round(same, 3)
    return found


def text_of(path: Path) -> list[str]:
    """Outputs in pieces put together as text."""
    lines = path.read_text(encoding="utf-8").removesuffix("\n").split("\n")
    return ["".join(line.split(" ")).replace("\u2581", " ").strip() for line in lines]


def print_rates(rates: Rates, settings: list[Setting]) -> None:
    """Medians of all systems and settings."""
    names = [setting.name for setting in settings]
    print("\n| system | " + " | ".join(names) + " | tokens |")
    print("|---|" + "---|" * (len(names) + 1))
    for system, found in rates.items():
        cells = [f"{found[name]['median']:,.1f}" for name in names]
        print(f"| {system} | {' | '.join(cells)} | {found[names[0]]['length']} |")


def print_bars(verdicts: list[dict]) -> None:
    """Each bar as met, missed or not measured."""
    print("\n| bar | wanted | measured | |\n|---|---|---|---|")
    for verdict in verdicts:
        wanted = f">= {verdict['least']}" if "least" in verdict else f"<= {verdict['most']}"
        word = {True: "met", False: "**missed**", None: "not measured"}[verdict["reached"]]
        print(f"| {verdict['bar']} | {wanted} | {verdict['measured']} | {word} |")
