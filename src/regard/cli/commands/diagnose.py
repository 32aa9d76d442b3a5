"""What `regard diagnose` does, without the parsing of its words."""

import json
import sys
import textwrap
from pathlib import Path

from regard.core.errors import say
from regard.core.files import write_json
from regard.core.memory import keep_freed_memory
from regard.experiments.diagnose.examine import examine
from regard.experiments.diagnose.findings import Diagnosis
from regard.views.report import write_report

DIAGNOSIS = "diagnosis.json"


def diagnose_command(run: str, quick: bool, json_object: bool) -> None:
    """Says why a model is bad, and leaves with code 1 where something is."""
    folder = Path(run)
    keep_freed_memory()
    diagnosis = examine(folder, quick, say)
    write_json(folder / DIAGNOSIS, diagnosis.as_dict())
    write_report(folder)
    if json_object:
        print(json.dumps(diagnosis.as_dict(), ensure_ascii=False))
    else:
        for line in lines(diagnosis):
            print(line)
    if diagnosis.problems:
        sys.exit(1)


def lines(diagnosis: Diagnosis) -> list[str]:
    """The findings as text."""
    found = []
    for finding in diagnosis.findings:
        found.append(f"{finding.severity}: {finding.name}")
        found += textwrap.wrap(finding.evidence, 96, initial_indent="  ", subsequent_indent="  ")
        found += textwrap.wrap(
            f"do: {finding.change}", 96, initial_indent="  ", subsequent_indent="  "
        )
    if not diagnosis.problems:
        found.insert(0, "no problem found" + (", but:" if diagnosis.findings else ""))
    for name, why in diagnosis.left_out.items():
        found.append(f"not looked at: {name} ({why})")
    return found
