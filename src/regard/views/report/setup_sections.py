"""Report sections on what a run started from, settings and data, and on its diagnosis."""

import json
import re
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from regard.config.yaml_text import InvalidYaml, parse_yaml
from regard.core.options import flatten
from regard.storage.run_folder import Record
from regard.views.report.html_parts import code, note, section, sentences, table
from regard.views.report.pictures import label_pictures
from regard.views.report.zipf import COUNTS

_COLUMNS = re.compile(r"\s{2,}")  # between the columns of a plain-text table
_LABELS = ("label", "tag")  # heads of columns with labels of the user
_TOKENS = ("most frequent", "rare characters")  # names of rows with tokens of the user


def settings_section(settings: Record, config: str) -> str:
    """Return what the user set, in one paragraph, and the automatic settings by reason.

    settings: content of settings.json. config: content of config.yaml.
    """
    changed, auto = settings.get("changed") or {}, settings.get("auto") or []
    values = {key: value for key, (_, value) in changed.items()}
    chosen = {str(one.get("key")) for one in auto}
    keys = settings.get("user", [key for key in values if key not in chosen])  # of older runs
    users = set(keys) - chosen  # of a section with other settings, `kind` may be automatic
    by_user = {key: value for key, value in (_values(config) | values).items() if key in users}
    reasons: dict[str, dict[str, Any]] = {}
    for one in auto:
        reasons.setdefault(str(one.get("reason", "")), {})[str(one.get("key"))] = one.get("value")
    rows = [
        f'<tr><td>{_assignments(some)}</td><td class="reason">{escape(reason)}</td></tr>'
        for reason, some in reasons.items()
    ]
    return section(
        "Settings",
        f"<h3>Set by you</h3><p>{_assignments(by_user)}</p>" if by_user else "",
        f"<h3>Set automatically</h3>{table('settings', '', rows)}" if rows else "",
    )


def _values(config: str) -> dict[str, Any]:
    """Return the settings of config.yaml by dotted key; empty if it is corrupted."""
    try:
        tree = parse_yaml(config)
    except InvalidYaml:
        return {}
    return flatten(tree) if isinstance(tree, dict) else {}


def _assignments(values: Mapping[str, Any]) -> str:
    return " ".join(code(f"{key}={_format(value)}") for key, value in values.items())


def _format(value: Any) -> str:
    if isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False, indent=1 if isinstance(value, dict) else None)


def check_section(check: Record) -> str:
    """Return the result of the data check. check: content of check.json."""
    if not check:
        return ""
    lines = check.get("lines")
    if not isinstance(lines, list):
        counted = {key: value for key, value in check.items() if key not in COUNTS}
        return section("Data", f"<pre>{escape(_format(counted))}</pre>", style="data")
    parts, block = list[str](), list[str]()
    for line in [*map(str, lines), ""]:
        if line.strip():
            block.append(line)
        elif block:
            parts.append(_block(block))
            block = []
    return section("Data", *parts, label_pictures(check.get("pictures")), style="data")


def _block(lines: Sequence[str]) -> str:
    """Return the lines between two blank lines: paragraphs, or a table if they have columns."""
    rows = [_COLUMNS.split(line.strip()) for line in lines]
    width = max(map(len, rows))
    if width == 1:
        return "".join(f"<p>{escape(line)}</p>" for line in lines)
    for line, row in zip(lines, rows, strict=True):
        if line.startswith(" ") and len(row) < width:  # the first cell is empty
            row.insert(0, "")
    has_labels = rows[0][0] in _LABELS
    found = [_row(row, has_labels and index > 0) for index, row in enumerate(rows)]
    return table("checked", "", found)


def _row(cells: Sequence[str], has_label: bool) -> str:
    ours, users = "<td>", '<td translate="no">'
    first, more = users if has_label else ours, users if cells[0] in _TOKENS else ours
    rest = "".join(f"{more}{escape(cell)}</td>" for cell in cells[1:])
    return f"<tr>{first}{escape(cells[0])}</td>{rest}</tr>"


def diagnosis_section(diagnosis: Record) -> str:
    """Return a table of the findings, or an empty string if there is no diagnosis."""
    findings = diagnosis.get("findings")
    if not isinstance(findings, list):
        return ""
    rows = [_finding(finding) for finding in findings if isinstance(finding, dict)]
    step, skipped = diagnosis.get("step"), diagnosis.get("skipped") or {}
    notes = [f"After step {step}."] if step is not None else []
    notes += [f"Skipped: {name} ({reason})." for name, reason in skipped.items()]
    found = table("findings", "", rows) if rows else "<p>No problems found.</p>"
    return section("Diagnosis", note(sentences(notes)), found)


def _finding(finding: Record) -> str:
    severity, name, evidence, fix = (
        escape(str(finding.get(key, ""))) for key in ("severity", "name", "evidence", "fix")
    )
    return (
        f'<tr class="{severity}"><td>{severity}</td><td><strong translate="no">{name}</strong><br>'
        f'{evidence}<br><span class="note">{fix}</span></td></tr>'
    )
