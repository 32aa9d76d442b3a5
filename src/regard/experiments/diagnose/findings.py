"""The result of a diagnosis: findings, the statistics behind them, and skipped probes."""

from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal

Severity = Literal["problem", "warning", "note"]
SEVERITIES: tuple[Severity, ...] = ("problem", "warning", "note")
Statistics = dict[str, Any]  # results of one probe, ready for JSON

# Causes before consequences: fix the first problem in this order first.
ORDER = (
    "source-oov",
    "target-oov",
    "source-and-target-swapped",
    "dev-distribution-shift",
    "targets-independent-of-sources",
    "learning-rate-too-high",
    "learning-rate-too-low",
    "dropout-too-high",
    "model-too-small",
    "training-aborted",
    "source-ignored",
    "too-little-data",
    "overfitting",
    "unsuited-architecture",
    "unsuited-settings",
    "stopped-too-early",
    "worse-than-ngram",
    "no-better-than-baseline",
    "dev-no-better-than-baseline",
    "barely-better-than-baseline",
    "cannot-overfit-one-batch",
    "predictions-collapsed",
    "predictions-empty",
    "predictions-truncated",
    "predictions-repetitive",
    "too-few-steps",
    "not-converged",
    "less-than-one-epoch",
    "loss-spikes",
    "gradient-always-clipped",
    "vanishing-gradients",
    "uniform-attention",
    "dead-units",
    "saturated-gates",
    "dev-lengths-differ",
    "long-inputs-worse",
    "late-positions-worse",
    "weights-frozen",
)


@dataclass(frozen=True)
class Finding:
    """A problem, warning or note. evidence: a sentence with numbers. fix: what to change."""

    name: str
    severity: Severity
    evidence: str
    fix: str
    weight: float = 0.0  # ranks competing explanations: the largest weight comes first


@dataclass
class Diagnosis:
    """Ranked findings, the statistics of each probe, and the reason for each skipped probe."""

    findings: list[Finding]
    statistics: dict[str, Statistics] = field(default_factory=dict)
    skipped: dict[str, str] = field(default_factory=dict)
    step: int = 0  # last step of the run when it was diagnosed

    @property
    def problems(self) -> list[Finding]:
        """Return the findings with severity `problem`, which explain a bad model."""
        return [finding for finding in self.findings if finding.severity == "problem"]

    def as_dict(self) -> dict[str, Any]:
        """Return the diagnosis as a dictionary, ready for JSON."""
        findings = [asdict(finding) for finding in self.findings]
        for finding in findings:
            del finding["weight"]
        stats = {name: found for name, found in self.statistics.items() if name != "metadata"}
        report = {"step": self.step, "findings": findings, "statistics": stats}
        return report | {"skipped": self.skipped}


# Competing explanations, of a large training loss and of a dev loss that trials reduce.
RIVALS = (
    ("learning-rate-too-high", "learning-rate-too-low", "dropout-too-high", "model-too-small"),
    ("unsuited-architecture", "unsuited-settings", "stopped-too-early"),
)


def ranked(findings: list[Finding]) -> list[Finding]:
    """Return the findings sorted: problems first, and causes before consequences.

    Among `RIVALS`, the change that lowers the loss most comes first. Changes with less than half
    of that effect become warnings.
    """
    positions = {f.name: float(ORDER.index(f.name)) for f in findings}
    for group in RIVALS:
        rivals = sorted((f for f in findings if f.name in group), key=lambda f: -f.weight)
        if not rivals:
            continue
        weak = [f for f in rivals if f.weight < rivals[0].weight / 2]
        findings = [replace(f, severity="warning") if f in weak else f for f in findings]
        first = min(positions[f.name] for f in rivals)
        positions |= {f.name: first + position / 10 for position, f in enumerate(rivals)}
    return sorted(findings, key=lambda f: (SEVERITIES.index(f.severity), positions[f.name]))
