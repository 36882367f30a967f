"""Machines that `reap` found, as text."""

from __future__ import annotations

from widelane.models.reap import Fate, ReapReport, ReapRow
from widelane.reports.clean import clean_line
from widelane.reports.paper import Paper, Style, plural

_STYLES: dict[Fate, Style] = {Fate.DUE: "warn", Fate.DELETED: "good", Fate.DELETING: "warn", Fate.KEPT: "dim"}


def reap_report(report: ReapReport, paper: Paper) -> str:
    """A line a machine with why it stays or goes, lanes that didn't answer, and what to type next."""
    lines: list[str] = []
    if report.rows:
        heads = ["machine", "where", "type", "state", "fate", "why"]
        lines += [*paper.table(heads, [_row(row, paper) for row in report.rows]), ""]
    for lane in report.unasked:
        lines += paper.wrap(f"{clean_line(lane.lane)} didn't answer: {clean_line(lane.message)}", "")
        lines += paper.wrap(f"fix: {clean_line(lane.hint)}", "  ") if lane.hint else []
    lines.append(_sum(report))
    return "\n".join(lines) + "\n"


def _row(row: ReapRow, paper: Paper) -> list[str]:
    place = f"{clean_line(row.lane)} {clean_line(row.zone)}" if row.zone != row.lane else clean_line(row.lane)
    fate = paper.paint(row.fate.value, _STYLES[row.fate])
    return [clean_line(row.name), place, clean_line(row.machine_type), row.state, fate, clean_line(row.detail)]


def _sum(report: ReapReport) -> str:
    count = plural(len(report.rows), "machine")
    gone = sum(row.fate is Fate.DELETED for row in report.rows)
    if not report.deleting and report.left:
        return f"{count}, {report.left} to delete: `widelane reap --yes` does"
    left = f", {report.left} still there" if report.left else ""
    return f"{count}, {gone} deleted{left}" if report.deleting else f"{count}, none to delete"
