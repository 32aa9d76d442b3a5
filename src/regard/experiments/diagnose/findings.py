"""What a diagnosis says: findings, the figures they rest on, and what could not be looked at."""

from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal

Severity = Literal["problem", "hint", "note"]
SEVERITIES: tuple[Severity, ...] = ("problem", "hint", "note")
Figures = dict[str, Any]  # of one probe, ready for JSON

# Causes before what follows from them: the first problem in this order is the one to mend first.
ORDER = (
    "source-tokens-unknown",
    "target-tokens-unknown",
    "source-and-target-swapped",
    "dev-of-another-kind",
    "targets-unrelated-to-sources",
    "learning-rate-too-high",
    "learning-rate-too-low",
    "dropout-too-high",
    "model-too-small",
    "training-broke-off",
    "source-not-used",
    "too-few-examples",
    "overfits",
    "nothing-learned",
    "cannot-learn-one-batch",
    "answers-collapsed",
    "answers-empty",
    "answers-cut",
    "answers-repeat",
    "too-few-steps",
    "still-improving",
    "loss-spikes",
    "gradient-always-clipped",
    "gradient-vanishes",
    "attention-uniform",
    "units-dead",
    "gates-saturated",
    "dev-lengths-differ",
    "long-inputs-worse",
    "late-tokens-worse",
    "weights-frozen",
)


@dataclass(frozen=True)
class Finding:
    """One thing that is wrong or odd. evidence: a sentence with figures; change: what to do."""

    name: str
    severity: Severity
    evidence: str
    change: str
    weight: float = 0.0  # among rivals that explain the same thing, the heavier one comes first


@dataclass
class Diagnosis:
    """All findings, worst and most basic first; figures by probe; why a probe was left out."""

    findings: list[Finding]
    figures: dict[str, Figures] = field(default_factory=dict)
    left_out: dict[str, str] = field(default_factory=dict)
    step: int = 0  # of the run when it was looked at

    @property
    def problems(self) -> list[Finding]:
        """The findings that make a model bad."""
        return [finding for finding in self.findings if finding.severity == "problem"]

    def as_dict(self) -> dict[str, Any]:
        """All of it, ready for JSON."""
        findings = [asdict(finding) for finding in self.findings]
        for finding in findings:
            del finding["weight"]
        figures = {name: found for name, found in self.figures.items() if name != "facts"}
        left = {"left_out": self.left_out}
        return {"step": self.step, "findings": findings, "figures": figures} | left


RIVALS = ("learning-rate-too-high", "learning-rate-too-low", "dropout-too-high", "model-too-small")


def ranked(findings: list[Finding]) -> list[Finding]:
    """Problems first, and among them causes before what follows from them.

    Of several changes that would each mend the training loss the one that mends most comes first;
    those that mend less than half as much are hints.
    """
    rivals = sorted((f for f in findings if f.name in RIVALS), key=lambda f: -f.weight)
    weak = [f for f in rivals if f.weight < rivals[0].weight / 2]
    findings = [replace(f, severity="hint") if f in weak else f for f in findings]
    places = {f.name: ORDER.index(f.name) for f in findings}
    if rivals:
        first = min(places[f.name] for f in rivals)
        places |= {f.name: first + place / 10 for place, f in enumerate(rivals)}  # type: ignore[misc]
    return sorted(findings, key=lambda f: (SEVERITIES.index(f.severity), places[f.name]))
