"""quota: which rungs the project's quotas admit."""

from __future__ import annotations

import click

from widelane.cli import console, exit_codes
from widelane.cli.given import AS_JSON, SIM, open_desk, plan_arguments
from widelane.reports.quota import quota_report
from widelane.tools.quota_check import QuotaCheckInput, quota_check


@click.command("quota")
@click.argument("plan", metavar="[PLAN]", required=False)
@click.option("--width", type=click.IntRange(min=1), metavar="N", help="Instead of a plan: GPUs on one machine.")
@click.option("--intent", default="", metavar="INTENT", help="With --width: the kind of work.")
@click.option(
    "--from",
    "files",
    multiple=True,
    metavar="FILE",
    help="Instead of asking: a saved answer (gcloud regions describe or project-info describe, as JSON). Repeatable.",
)
@AS_JSON
@SIM
def quota_verb(
    plan: str | None, width: int | None, intent: str, files: tuple[str, ...], as_json: bool, sim: str | None
) -> int:
    """Say which rungs the project's quotas admit, and which metric binds."""
    given = {"width": width or 0, "intent": intent, "from_files": files}
    given |= plan_arguments(plan) if plan is not None else {}
    report = quota_check(QuotaCheckInput.model_validate(given), open_desk(sim))
    console.show(report, as_json, quota_report)
    return exit_codes.of_quota(report)
