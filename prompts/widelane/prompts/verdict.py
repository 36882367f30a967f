"""A verdict as Markdown, for a prompt to carry."""

from __future__ import annotations

from widelane.models.verdict import Finding, PhaseVerdict, PlanVerdict


def section(verdict: PlanVerdict) -> str:
    """What the engine says of each phase: numbers, findings with their fixes."""
    head = f"Verdict of `plan_width`: {verdict.verdict.value}, plan_digest `{verdict.plan_digest}`."
    return "\n\n".join((head, *(_phase(phase) for phase in verdict.phases)))


def _phase(phase: PhaseVerdict) -> str:
    lines = [f"### {plain(phase.name)}: {phase.verdict.value}", "", _facts(phase)]
    if phase.widths:
        lines += ["", "| width | wall h | efficiency | idle GPUs |", "|---|---|---|---|"]
        lines += [
            f"| {row.width} | {row.wall_hours:.2f} | {row.efficiency:.2f} | {row.stranded_gpus} |"
            for row in phase.widths
        ]
    lines += ["", *(_finding(finding) for finding in phase.findings)] if phase.findings else ["", "No finding."]
    return "\n".join(lines)


def _facts(phase: PhaseVerdict) -> str:
    if not phase.requested_width:
        return "No GPU: it runs beside the machines."
    return (
        f"Requested width {phase.requested_width}, recommended {phase.recommended_width} (set by {phase.binding}), "
        f"down to {phase.min_width}; {phase.units} units of {phase.gpus_per_shard} GPU; {phase.length.value}: "
        f"{phase.length_reason}."
    )


def _finding(finding: Finding) -> str:
    head = f"- {finding.severity.value} `{finding.code.value}` (line {finding.line}):"
    accepted = f" Accepted: {plain(finding.accepted)}." if finding.accepted else ""
    return f"{head} {plain(finding.message)} Fix: {plain(finding.fix)}{accepted}"


def plain(text: str) -> str:
    """One line, so that a plan's words can't pass for a heading or an instruction block of the prompt."""
    return " ".join(text.split())
