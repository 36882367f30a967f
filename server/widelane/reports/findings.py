"""Findings as people and editors read them: `file:line:column: error code: message`."""

from __future__ import annotations

from widelane.models.verdict import Finding, PlanVerdict, Severity, Verdict
from widelane.reports.clean import clean_line
from widelane.reports.paper import Paper, Style, plural

_VERDICT_STYLES: dict[Verdict, Style] = {Verdict.PASS: "good", Verdict.REVISE: "bad"}


def verdict_word(verdict: Verdict, paper: Paper) -> str:
    """PASS or REVISE, painted."""
    return paper.paint(verdict.value, _VERDICT_STYLES[verdict])


def finding_lines(finding: Finding, origin: str, paper: Paper) -> list[str]:
    """One finding: its place, code and message, then the fix, then why it was accepted."""
    place = f"{clean_line(origin)}:{finding.line}:{finding.column}"
    counts = finding.severity is Severity.ERROR and finding.accepted is None
    word = paper.paint(finding.severity.value, "bad" if counts else "warn")
    lines = [f"  {place}: {word} {paper.paint(finding.code.value, 'strong')}"]
    lines += paper.wrap(clean_line(finding.message), "      ")
    if finding.fix:
        lines += paper.wrap(f"fix: {clean_line(finding.fix)}", "      ", "           ")
    if finding.accepted is not None:
        lines += paper.wrap(f"accepted: {clean_line(finding.accepted)}", "      ", "           ")
    return lines


def tally(verdict: PlanVerdict) -> str:
    """How many findings of each kind: `2 errors, 1 advice`."""
    found = [finding for phase in verdict.phases for finding in phase.findings]
    errors = sum(finding.severity is Severity.ERROR and finding.accepted is None for finding in found)
    accepted = sum(finding.accepted is not None for finding in found)
    advice = sum(finding.severity is Severity.ADVICE and finding.accepted is None for finding in found)
    parts = [plural(errors, "error")] * bool(errors)
    parts += [f"{accepted} accepted"] * bool(accepted)
    parts += [f"{advice} advice"] * bool(advice)
    return ", ".join(parts) or "no findings"


def check_report(verdict: PlanVerdict, origin: str, paper: Paper) -> str:
    """The short answer: a verdict line, then every finding."""
    lines = [f"{verdict_word(verdict.verdict, paper)}  {clean_line(origin)}  {tally(verdict)}"]
    for phase in verdict.phases:
        for finding in phase.findings:
            lines += finding_lines(finding, origin, paper)
    return "\n".join(lines) + "\n"
