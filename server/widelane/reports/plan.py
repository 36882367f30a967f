"""The answer of plan_width as text: verdict, findings, what each width gives, and the ladder."""

from __future__ import annotations

from itertools import groupby

from widelane.models.quota import Admits, QuotaBinding
from widelane.models.verdict import PhaseVerdict, PlanVerdict, Rung
from widelane.reports.clean import clean_line
from widelane.reports.findings import finding_lines, tally, verdict_word
from widelane.reports.paper import Paper, duration, plural


def plan_report(verdict: PlanVerdict, origin: str, paper: Paper) -> str:
    """The whole verdict on a plan; `origin` is what its findings are placed in."""
    head = f"{verdict_word(verdict.verdict, paper)}  {clean_line(origin)}  {tally(verdict)}"
    lines = [head, paper.paint(f"plan digest {verdict.plan_digest}", "dim")]
    for phase in verdict.phases:
        lines += ["", *_phase(phase, origin, paper)]
    return "\n".join(lines) + "\n"


def _phase(phase: PhaseVerdict, origin: str, paper: Paper) -> list[str]:
    lines = [f"{paper.paint(clean_line(phase.name), 'strong')}  {verdict_word(phase.verdict, paper)}  {_width(phase)}"]
    for finding in phase.findings:
        lines += finding_lines(finding, origin, paper)
    if phase.widths and phase.requested_width:
        lines += ["", *_widths(phase, paper)]
    if phase.ladder:
        lines += ["", *_ladder(phase, paper)]
    return lines


def _width(phase: PhaseVerdict) -> str:
    if phase.requested_width == 0:
        return "no GPU"
    width = f"width {phase.requested_width}"
    if phase.recommended_width != phase.requested_width:
        width += f", recommended {phase.recommended_width}"
    bound = "" if phase.binding in ("", "asked") else f", bound by {clean_line(phase.binding)}"
    return f"{width}  {plural(phase.units, 'unit')}{bound}"


def _widths(phase: PhaseVerdict, paper: Paper) -> list[str]:
    marks = {phase.recommended_width: "recommended"}
    if phase.requested_width != phase.recommended_width or phase.binding == "asked":
        marks[phase.requested_width] = "asked"
    rows = [
        (
            str(row.width),
            duration(row.wall_hours),
            f"{row.efficiency:.0%}",
            str(row.waves),
            str(row.stranded_gpus or "-"),
            marks.get(row.width, ""),
        )
        for row in phase.widths
    ]
    return paper.table((">width", ">wall clock", ">efficiency", ">waves", ">stranded", ""), rows)


def _ladder(phase: PhaseVerdict, paper: Paper) -> list[str]:
    rows = [
        (
            str(number),
            str(rung.width),
            rung.lane,
            rung.machine_type,
            rung.provisioning_model.value,
            admits_word(rung.admits, rung.binding_quota, paper),
            zones(rung),
        )
        for number, rung in enumerate(phase.ladder, start=1)
    ]
    lines = paper.table((">rung", ">width", "lane", "machine type", "model", "quota", "zones"), rows)
    if not phase.requested_width:
        return lines
    return [*lines, *paper.wrap(f"{phase.length.value}: {clean_line(phase.length_reason)}", "  ")]


def zones(rung: Rung) -> str:
    """The zones of a rung, region written once: `us-central1-a,c europe-west4-b`."""
    regions = groupby(rung.zones, key=lambda zone: zone.rpartition("-")[0])
    return " ".join(f"{region}-{','.join(zone.rpartition('-')[2] for zone in group)}" for region, group in regions)


def admits_word(admits: Admits, binding: QuotaBinding | None, paper: Paper) -> str:
    """yes, unknown, or no with the metric that denies."""
    if admits is Admits.YES:
        return paper.paint("yes", "good")
    if admits is Admits.UNKNOWN:
        return paper.paint("unknown", "dim")
    return paper.paint("no", "bad") + (f": {binding.metric}" if binding is not None else "")
