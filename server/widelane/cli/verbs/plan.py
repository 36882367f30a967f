"""check and plan: judge a plan, in short and in full."""

from __future__ import annotations

import json

import click

from widelane.cli import console, exit_codes
from widelane.cli.crash import Net
from widelane.cli.given import AS_JSON, SIM, open_desk, plan_arguments
from widelane.reports.findings import check_report
from widelane.reports.plan import plan_report
from widelane.tools.plan_width import PlanWidthInput, plan_width


@click.command("check")
@click.argument("plans", metavar="PLAN...", nargs=-1, required=True)
@AS_JSON
def check_verb(plans: tuple[str, ...], as_json: bool) -> int:
    """Judge plans and print their findings. With --json, one line a plan that can be read."""
    desk = open_desk()
    worst = exit_codes.DONE
    for path in plans:
        with Net() as net:
            verdict = plan_width(PlanWidthInput(**plan_arguments(path)), desk)
            if as_json:
                console.out(json.dumps(verdict.model_dump(mode="json")) + "\n")
            else:
                console.out(check_report(verdict, path, console.paper()))
            net.code = exit_codes.of_verdict(verdict.verdict)
        worst = max(worst, net.code)
    return worst


@click.command("plan")
@click.argument("plan", metavar="PLAN")
@AS_JSON
@SIM
def plan_verb(plan: str, as_json: bool, sim: str | None) -> int:
    """Judge a plan: verdict, what each width gives, findings, and the ladder that would be walked."""
    verdict = plan_width(PlanWidthInput(**plan_arguments(plan)), open_desk(sim))
    console.show(verdict, as_json, lambda result, paper: plan_report(result, plan, paper))
    return exit_codes.of_verdict(verdict.verdict)
