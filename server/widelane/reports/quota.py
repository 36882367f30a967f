"""The answer of quota_check as text."""

from __future__ import annotations

from widelane.models.quota import Admits, PoolQuota, QuotaReport, RungQuota
from widelane.reports.clean import clean_line
from widelane.reports.paper import Paper, duration
from widelane.reports.plan import admits_word
from widelane.reports.status import when


def quota_report(report: QuotaReport, paper: Paper) -> str:
    """The largest admitted width, then every rung with the metric that binds it, and its region if there are more."""
    regions = sorted({rung.region for rung in report.rungs if rung.region})
    place = f"{clean_line(report.project)} {' '.join(regions[:1] if len(regions) == 1 else [])}".rstrip()
    age = "" if report.age_seconds is None else f", {duration(report.age_seconds / 3600)} ago"
    lines = [f"{paper.paint(_width(report), 'strong')}  project {place}, read {when(report.taken_at)}{age}"]
    if report.note:
        lines += paper.wrap(clean_line(report.note), "  ")
    if report.rungs:
        heads = [">width", "machine type", "model", "admits", "binding metric", ">used", ">needs"]
        rows = [_row(rung, paper) for rung in report.rungs]
        if len(regions) > 1:
            heads.insert(3, "region")
            for row, rung in zip(rows, report.rungs, strict=True):
                row.insert(3, rung.region or "-")
        lines += ["", *paper.table(heads, rows)]
    if report.pools:
        pools = [[pool.region or "-", pool.pool, _most(pool)] for pool in report.pools]
        lines += ["", *paper.table(["region", "pool", "largest width"], pools)]
    return "\n".join(lines) + "\n"


def _width(report: QuotaReport) -> str:
    if report.largest_width:
        return f"largest admitted width {report.largest_width}"
    unknown = any(rung.admits is Admits.UNKNOWN for rung in report.rungs)
    return "no width is known to be admitted" if unknown else "no width is admitted"


def _most(pool: PoolQuota) -> str:
    """The largest width of a pool, and a larger one that isn't known to be denied."""
    found = str(pool.largest_width or "none")
    more = pool.largest_possible_width
    return found if more <= pool.largest_width else f"{found}, perhaps {more}"


def _row(rung: RungQuota, paper: Paper) -> list[str]:
    start = [str(rung.width), rung.machine_type, rung.provisioning_model.value, admits_word(rung.admits, None, paper)]
    binding = rung.binding
    if binding is None:
        return [*start, "-", "-", "-"]
    listed = binding.usage is not None and binding.limit is not None
    used = f"{binding.usage:g}/{binding.limit:g}" if listed else "not listed"
    return [*start, binding.metric, used, f"{binding.needed:g}"]
