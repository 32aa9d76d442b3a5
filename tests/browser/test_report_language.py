"""Chinese reports have no English texts but code, names of settings, and data of the user."""

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import expect

from regard.views.report.report_page import write_report

from .conftest import Tab

TASKS = ("transduce", "tag", "classify", "regress", "language-model")
VISIBLE = """() => {
  const outside = "[translate=no], code, pre, script, .switches";
  const walker = document.createTreeWalker(document.querySelector("main"), NodeFilter.SHOW_TEXT);
  const found = [document.title.split("：").at(-1)];
  while (walker.nextNode()) {
    const parent = walker.currentNode.parentElement;
    const marked = parent.closest("[translate], code, pre, script, .switches");
    const isOurs = !marked || marked.getAttribute("translate") === "yes";
    if (isOurs) found.push(walker.currentNode.data.trim());
  }
  for (const name of ["aria-label", "title", "data-label"])
    for (const node of document.querySelectorAll(`main [${name}]`))
      if (!node.closest(outside)) found.push(node.getAttribute(name));
  return found.filter(Boolean);
}"""
NAMES = re.compile(  # files, options, settings, metrics, values of settings
    r"--[\w-]+|\S*[_=/|]\S*|\w+\.[a-z]\w*|\b(char|bpe|word|whitespace|cpu|vectors|text|mse|mae)\b"
)
LABELS = r"参考 .*?，预测 .*?："  # of the user, in a title
TERMS = re.compile(
    rf"{LABELS}|U.FFFD|\b(regard|BLEU|chrF|F1|PER|NFC|LSTM|GRU|Transformer|dropout|sacrebleu|"
    r"RMSE|MAE)\b"
)


def english(texts: list[str]) -> list[str]:
    """Return the texts that have an English word."""
    return [t for t in texts if re.search(r"[A-Za-z]{3,}", TERMS.sub("", NAMES.sub("", t)))]


def with_words_of_the_user(folder: Path, target: Path) -> Path:
    """Return a copy of a run folder with the name of a run and of its labels in Chinese."""
    shutil.copytree(folder, target)
    about = json.loads((target / "run.json").read_text())
    (target / "run.json").write_text(json.dumps(about | {"name": "运行"}))
    return target


@pytest.mark.parametrize("task", TASKS)
def test_a_chinese_report_has_no_english_text(
    tab: Tab, models: Callable[[str], Any], tmp_path: Path, task: str
) -> None:
    folder = with_words_of_the_user(models(task).run, tmp_path / "run")
    page = tab(write_report(folder).as_uri(), locale="zh-CN")
    texts = page.evaluate(VISIBLE)
    assert len(texts) > 50
    assert english(texts) == []


def test_a_chinese_comparison_has_no_english_text(
    tab: Tab, models: Callable[[str], Any], command: Callable[..., Any], tmp_path: Path
) -> None:
    runs = [with_words_of_the_user(models("tag").run, tmp_path / name) for name in ("甲", "乙")]
    said = command("report", *runs, "--out", tmp_path / "compare.html")
    assert said.code == 0, said.err
    page = tab((tmp_path / "compare.html").as_uri(), locale="zh-CN")
    assert english(page.evaluate(VISIBLE)) == []


def test_words_of_the_user_are_not_translated(
    tab: Tab, models: Callable[[str], Any], tmp_path: Path
) -> None:
    """Not even those that the report uses itself."""
    folder = with_words_of_the_user(models("transduce").run, tmp_path / "run")
    sample = {"step": 10**6, "source": "train", "references": ["time", "step"], "prediction": "dev"}
    with open(folder / "samples.jsonl", "a") as file:
        file.write(json.dumps(sample) + "\n")
    page = tab(write_report(folder).as_uri(), locale="zh-CN")
    row = page.locator(".samples tr").last
    expect(row).to_contain_text("train")
    expect(row).to_contain_text("dev")
    expect(row.locator("small")).to_contain_text("或")
    page.locator("[data-language=en]").click()
    expect(page.locator("h2").first).to_have_text("Training")
    expect(row.locator("small")).to_contain_text("or")


FINDING = {
    "severity": "problem",
    "name": "learning-rate-too-high",
    "evidence": "60 steps from random initialization with a learning rate of 0.001 instead of 0.1 "
    "reach a training loss of 0.52; the full run (300 steps) reached 2.31 (constant baseline 2.40)",
    "fix": "--set training.lr=0.001 (now 0.1)",
}


def test_findings_are_translated_with_their_numbers(
    tab: Tab, models: Callable[[str], Any], tmp_path: Path
) -> None:
    folder = with_words_of_the_user(models("transduce").run, tmp_path / "run")
    found = {"findings": [FINDING], "step": 300, "skipped": {"trials": "no text side"}}
    (folder / "diagnosis.json").write_text(json.dumps(found))
    page = tab(write_report(folder).as_uri(), locale="zh-CN")
    expect(page.locator(".findings")).to_contain_text(
        "从随机初始化训练 60 步（学习率 0.001，而非 0.1）的训练损失为 0.52；"
        "完整运行（300 步）为 2.31（常数基线 2.40）"
    )
    expect(page.locator(".findings .note")).to_have_text("--set training.lr=0.001（当前 0.1）")
    assert english(page.evaluate(VISIBLE)) == []
