"""Every sentence that a report shows has a Chinese translation in chinese.json."""

import ast
import inspect
import json
import pkgutil
import re
from collections.abc import Iterator
from importlib import import_module
from importlib.resources import files
from types import ModuleType

import pytest

from regard.baselines import affix_rules, constant, nearest_neighbor, unigram
from regard.data.checks import (
    check,
    check_documents,
    check_frame,
    check_labels,
    check_sources,
    check_tags,
)
from regard.data.tokenizers import normalized, tokenizer_choice
from regard.experiments import diagnose
from regard.metrics.metric_names import LABELS
from regard.models import encoder_decoder, encoder_model, model_options
from regard.optim import schedules, training_options

CHINESE = json.loads(files("regard.views.report").joinpath("chinese.json").read_text("utf-8"))
VALUE = re.compile(r"\{\d+(?::\w)?\}")
MODELS = (model_options, encoder_model, encoder_decoder)
REASONS = (*MODELS, tokenizer_choice, normalized, training_options, schedules)
FINDINGS = [
    import_module(f"{diagnose.__name__}.{one.name}")
    for one in pkgutil.iter_modules(diagnose.__path__)
    if one.name.startswith("verdicts_") or one.name == "baseline_stats"
]
CHECKS = (check, check_documents, check_frame, check_labels, check_sources, check_tags)
NAMES = (affix_rules, constant, nearest_neighbor, unigram)
COMMAND = re.compile(r"--set [\w.=\[\]\0]*|^\.\w+=\w+|^s (?=have|that|with)|^[\w-]+$")  # or a name
# errors, and what only the terminal shows
INTERNAL = re.compile(
    r"tokens in vocabulary|labels, most frequent|words by rank|expected|not supported|"
    r"only supported|needs |invalid|must |seed|corrupted|longer than their frames"
)


def literals(module: ModuleType) -> Iterator[str]:
    """Yield the string constants of at least three words that functions return or yield."""
    tree = ast.parse(inspect.getsource(module))
    skipped = set[int]()
    for node in ast.walk(tree):
        if isinstance(node, ast.Raise | ast.Assert) or _is_description(node):
            skipped |= {id(child) for child in ast.walk(node)}
        body = getattr(node, "body", None)
        first = body[0] if isinstance(body, list) and body else None
        if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant):
            skipped.add(id(first.value))  # a docstring
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            text = COMMAND.sub(" ", node.value).strip()
            if id(node) not in skipped and len(re.findall(r"[A-Za-z]{2,}", text)) >= 3:
                yield text


def _is_description(node: ast.AST) -> bool:
    """Return whether a node is the description of a setting, which reports do not show."""
    return isinstance(node, ast.keyword) and node.arg in ("description", "help")


def known(text: str) -> bool:
    """Return whether a part of a sentence occurs in the English side of chinese.json."""
    return any(_words(text) in part for part in ENGLISH)


def _words(text: str) -> str:
    """Return a text without punctuation and commands."""
    return " ".join(re.sub(r"[;:,.()]", " ", COMMAND.sub(" ", text)).split())


ENGLISH = [_words(VALUE.sub("\0", english)) for english in CHINESE]


@pytest.mark.parametrize("module", (*FINDINGS, *CHECKS, *REASONS), ids=lambda one: one.__name__)
def test_sentences_of_reports_are_translated(module: ModuleType) -> None:
    missing = [t for t in literals(module) if not known(t) and not INTERNAL.search(t)]
    assert missing == [], "add these sentences to src/regard/views/report/chinese.json"


@pytest.mark.parametrize("module", NAMES, ids=lambda one: one.__name__)
def test_names_of_baselines_are_translated(module: ModuleType) -> None:
    found = [
        node.value.value
        for node in ast.walk(ast.parse(inspect.getsource(module)))
        if isinstance(node, ast.AnnAssign)
        and getattr(node.target, "id", "") == "name"
        and isinstance(node.value, ast.Constant)
    ]
    assert found and [name for name in found if name not in CHINESE] == []


def test_names_of_metrics_are_translated() -> None:
    assert [name for name in LABELS.values() if name not in CHINESE and len(name) > 2] == []


@pytest.mark.parametrize("english", [e for e in CHINESE if "{" in e])
def test_translations_use_the_values_of_the_sentence(english: str) -> None:
    chinese = CHINESE[english]
    values = re.findall(r"\{(\d+)", english)
    assert len(set(values)) == len(values)
    assert sorted(re.findall(r"\{(\d+)\}", chinese)) == sorted(values)
    assert ":" not in "".join(re.findall(r"\{[^}]*\}", chinese))


def test_every_translation_is_chinese() -> None:
    same = {"BLEU", "chrF", "F1"}
    assert [
        e
        for e, c in CHINESE.items()
        if not re.search(r"[\u3000-\u9fff\uff00-\uffef]", c)
        and e not in same
        and not e.startswith(("{1:t} \u2192", "\u2191"))
    ] == []
