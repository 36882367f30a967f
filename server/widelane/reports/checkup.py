"""What a look at the set-up found, as text."""

from __future__ import annotations

from widelane.models.checkup import CheckStatus, DoctorReport
from widelane.reports.clean import clean_line
from widelane.reports.paper import Paper, Style, plural

_STYLES: dict[CheckStatus, Style] = {CheckStatus.OK: "good", CheckStatus.WARN: "warn", CheckStatus.FAIL: "bad"}


def checkup_report(report: DoctorReport, paper: Paper) -> str:
    """Each lane with its checks; what is wrong has its fix below it. The counts come last."""
    lines: list[str] = []
    lane = ""
    width = max((len(check.name) for check in report.checks), default=0)
    for check in report.checks:
        if check.lane != lane:
            lane = check.lane
            lines += [*([""] if lines else []), paper.paint(clean_line(lane), "strong")]
        word = paper.paint(f"{check.status.value:<4}", _STYLES[check.status])
        start = f"  {word}  {check.name:<{width}}  "
        hanging = " " * (10 + width)
        lines += paper.wrap(clean_line(check.message), start, hanging) or [start.rstrip()]
        if check.fix:
            lines += paper.wrap(f"fix: {clean_line(check.fix)}", hanging, hanging + "     ")
    counts = {status: sum(check.status is status for check in report.checks) for status in CheckStatus}
    lines += ["", f"{plural(len(report.checks), 'check')}: {_counted(counts)}"]
    return "\n".join(lines) + "\n"


def _counted(counts: dict[CheckStatus, int]) -> str:
    words = [f"{count} {status.value}" for status, count in counts.items() if count]
    return ", ".join(words) or "nothing was looked at"
