"""check and plan: judge a plan, in short and in full."""

from __future__ import annotations

import json

import click

from widelane.cli import console, exit_codes
from widelane.cli.crash import Net
from widelane.cli.given import AS_JSON, SIM, open_desk, plan_arguments
from widelane.errors import InputError
from widelane.models.verdict import PlanVerdict
from widelane.reports.findings import check_report
from widelane.reports.plan import plan_report
from widelane.tools.desk import Desk
from widelane.tools.mending import mend_file
from widelane.tools.plan_width import PlanWidthInput, plan_width


@click.command("check")
@click.argument("plans", metavar="PLAN...", nargs=-1, required=True)
@click.option("--fix", is_flag=True, help="Change in the plan's file what a finding leaves no choice about.")
@AS_JSON
def check_verb(plans: tuple[str, ...], fix: bool, as_json: bool) -> int:
    """Judge plans and print their findings. With --json, one line a plan that can be read."""
    desk = open_desk()
    worst = exit_codes.DONE
    for path in plans:
        with Net() as net:
            verdict = _mended(path, desk) if fix else plan_width(PlanWidthInput(**plan_arguments(path)), desk)
            if as_json:
                console.out(json.dumps(verdict.model_dump(mode="json")) + "\n")
            else:
                console.out(check_report(verdict, path, console.paper()))
            net.code = exit_codes.of_verdict(verdict.verdict)
        worst = max(worst, net.code)
    return worst


def _mended(path: str, desk: Desk) -> PlanVerdict:
    """The verdict on a plan after its file was mended; what was changed is told beside the result."""
    if path == "-":
        raise InputError("--fix changes a file, and the plan came on stdin", hint="name the plan's file")
    done = mend_file(path, desk)
    if done.changed:
        console.note(f"{path}: changed {', '.join(done.changed)}")
    return done.verdict


@click.command("plan")
@click.argument("plan", metavar="PLAN")
@AS_JSON
@SIM
def plan_verb(plan: str, as_json: bool, sim: str | None) -> int:
    """Judge a plan: verdict, what each width gives, findings, and the ladder that would be walked."""
    verdict = plan_width(PlanWidthInput(**plan_arguments(plan)), open_desk(sim))
    console.show(verdict, as_json, lambda result, paper: plan_report(result, plan, paper))
    return exit_codes.of_verdict(verdict.verdict)
