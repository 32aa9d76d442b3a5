"""The bar chart of bench/results/decoding.json, for the README.

usage: python bench/decoding_chart.py [--result bench/results/decoding.json] [--out FILE]
"""

import argparse
import json
from pathlib import Path

from decoding_report import median
from surroundings import REPOSITORY, RESULTS

from regard.views.figures.style import COLORS, FAINT, INK, new_figure, panels, save, styled

SETTINGS = {
    "beam 1, batch 32": "greedy, batch of 32",
    "beam 5, batch 32": "beam 5, batch of 32",
    "beam 1, batch 1": "greedy, batch of 1",
    "beam 5, batch 1": "beam 5, batch of 1",
}
SYSTEMS = {
    "ours": "regard",
    "ours-int8": "regard int8",
    "ctranslate2": "CTranslate2",
    "ctranslate2-int8": "CTranslate2 int8",
    "transformers": "transformers",
    "eole": "Eole",
    "joey": "JoeyNMT",
}
OTHERS = "#c3c6cb"


def main() -> None:
    """Draws what was measured."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--result", type=Path, default=RESULTS / "decoding.json")
    parser.add_argument("--out", type=Path, default=REPOSITORY / "docs" / "decoding.png")
    args = parser.parse_args()
    rates = json.loads(args.result.read_text())["translation"]
    draw(rates, args.out)
    print(args.out)


def draw(rates: dict[str, dict[str, dict]], out: Path) -> None:
    """One panel a setting, a bar a system; ours in color."""
    with styled():
        figure = new_figure(7.2, 6.4, "Translations a second on two CPU cores, the same weights")
        for axes, (setting, title) in zip(panels(figure, 2, 2), SETTINGS.items(), strict=True):
            found = {name: median(rates, name, setting) for name in SYSTEMS}
            shown = {name: rate for name, rate in found.items() if rate is not None}
            ours = [name.startswith("ours") for name in shown]
            places = range(len(shown))
            axes.barh(
                places,
                list(shown.values()),
                color=[COLORS[0] if one else OTHERS for one in ours],
                height=0.72,
            )
            axes.set_yticks(places, [SYSTEMS[name] for name in shown], fontsize=10)
            for tick, one in zip(axes.get_yticklabels(), ours, strict=True):
                tick.set_color(COLORS[0] if one else INK)
                tick.set_fontweight("bold" if one else "normal")
            most = max(shown.values())
            for place, rate in zip(places, shown.values(), strict=True):
                text = f"{rate:,.0f}" if rate >= 10 else f"{rate:.1f}"
                axes.text(rate + most * 0.02, place, text, va="center", fontsize=10, color=INK)
            axes.invert_yaxis()
            axes.set_xlim(0, most * 1.2)
            axes.set_xticks([])
            axes.grid(False)
            axes.spines[["bottom", "left"]].set_visible(False)
            axes.tick_params(length=0)
            axes.set_title(title, fontsize=11.5)
        figure.supxlabel(
            "Multi30k test_2016, English to German; Transformer 4+4 layers, width 128", color=FAINT
        ).set_fontsize(9)
        save(figure, out)


if __name__ == "__main__":
    main()
