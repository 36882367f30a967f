"""The answer of quota_check as text."""

from __future__ import annotations

from widelane.models.quota import QuotaBinding, QuotaReport, RungQuota
from widelane.reports.clean import clean_line
from widelane.reports.paper import Paper
from widelane.reports.plan import admits_word


def quota_report(report: QuotaReport, paper: Paper) -> str:
    """The largest admitted width, then every rung with the metric that binds it."""
    width = f"largest admitted width {report.largest_width}" if report.largest_width else "no width is admitted"
    lines = [f"{paper.paint(width, 'strong')}  project {clean_line(report.project)}, read {report.taken_at}"]
    if report.note:
        lines += paper.wrap(clean_line(report.note), "  ")
    if report.rungs:
        heads = (">width", "machine type", "model", "region", "admits", "binding metric")
        lines += ["", *paper.table(heads, [_row(rung, paper) for rung in report.rungs])]
    return "\n".join(lines) + "\n"


def _row(rung: RungQuota, paper: Paper) -> tuple[str, ...]:
    return (
        str(rung.width),
        rung.machine_type,
        rung.provisioning_model.value,
        rung.region or "-",
        admits_word(rung.admits, None, paper),
        _binding(rung.binding),
    )


def _binding(binding: QuotaBinding | None) -> str:
    if binding is None:
        return "-"
    usage = "?" if binding.usage is None else f"{binding.usage:g}"
    limit = "?" if binding.limit is None else f"{binding.limit:g}"
    return f"{binding.metric}: {usage} of {limit} used, needs {binding.needed:g}"
