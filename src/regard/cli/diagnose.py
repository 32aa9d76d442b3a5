"""The command `regard diagnose`."""

import json
import sys
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from regard.cli.command_options import Debug, Json, check_model_folder
from regard.core.errors import info

if TYPE_CHECKING:
    from regard.experiments.diagnose.findings import Diagnosis


def diagnose(
    run: Annotated[
        str, typer.Argument(metavar="RUN", help="Run folder.", callback=check_model_folder)
    ],
    quick: Annotated[
        bool,
        typer.Option(
            "--quick", help="Check only the training log and the data; do not run the model."
        ),
    ] = False,
    json_object: Json = False,
    debug: Debug = False,
) -> None:
    """Explain why a model performs badly and how to fix it (exit code 1 if problems are found)."""
    from regard.core.files import write_json
    from regard.core.memory import tune_malloc
    from regard.experiments.diagnose.examine import examine
    from regard.views.report import update_report

    folder = Path(run)
    tune_malloc()
    diagnosis = examine(folder, quick, info)
    write_json(folder / "diagnosis.json", diagnosis.as_dict())
    update_report(folder)
    if json_object:
        print(json.dumps(diagnosis.as_dict(), ensure_ascii=False))
    else:
        for line in _lines(diagnosis):
            print(line)
    if diagnosis.problems:
        sys.exit(1)


def _lines(diagnosis: "Diagnosis") -> list[str]:
    """Return the findings as lines of text."""
    from regard.experiments.diagnose.baseline_stats import baseline_line

    wrapped = textwrap.TextWrapper(96, initial_indent="  ", subsequent_indent="  ").wrap
    found = []
    for finding in diagnosis.findings:
        found.append(f"{finding.severity}: {finding.name}")
        found += [*wrapped(finding.evidence), *wrapped(f"help: {finding.fix}")]
    if not diagnosis.problems:
        found.insert(0, "no problems" + ("; warnings:" if diagnosis.findings else " found"))
    if baselines := diagnosis.statistics.get("baselines"):
        found.insert(0, baseline_line(baselines))
    return found + [f"skipped: {name} ({reason})" for name, reason in diagnosis.skipped.items()]
