"""What `regard diagnose` found, as a section of the page."""

from html import escape

from regard.storage.run_folder import Record


def diagnosis_section(diagnosis: Record) -> str:
    """The findings as a table, worst first; nothing for a run that was not diagnosed."""
    findings = diagnosis.get("findings")
    if not isinstance(findings, list):
        return ""
    rows = "".join(_row(finding) for finding in findings if isinstance(finding, dict))
    table = f'<table class="findings">{rows}</table>' if rows else "<p>Nothing found.</p>"
    step = diagnosis.get("step")
    left = diagnosis.get("left_out") or {}
    notes = [f"After step {step}."] if step is not None else []
    notes += [f"Not looked at: {name} ({why})." for name, why in left.items()]
    note = f'<p class="note">{escape(" ".join(notes))}</p>' if notes else ""
    return f"<section><h2>Diagnosis</h2>{note}{table}</section>"


def _row(finding: Record) -> str:
    severity, name, evidence, change = (
        escape(str(finding.get(key, ""))) for key in ("severity", "name", "evidence", "change")
    )
    return (
        f'<tr class="{severity}"><td>{severity}</td><td><strong>{name}</strong><br>{evidence}'
        f'<br><span class="note">{change}</span></td></tr>'
    )
