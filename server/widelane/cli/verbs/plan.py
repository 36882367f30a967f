"""check and plan: judge a plan, in short and in full."""

from __future__ import annotations

import json
from pathlib import Path

import click

from widelane.cli import console, exit_codes
from widelane.cli.crash import Net
from widelane.cli.given import AS_JSON, SIM, open_desk, plan_arguments
from widelane.errors import InputError
from widelane.models.verdict import PlanVerdict
from widelane.reports.chart import width_chart
from widelane.reports.explain import explanation
from widelane.reports.findings import check_report
from widelane.reports.plan import plan_report
from widelane.tools.desk import Desk
from widelane.tools.explained import explained, write_picture
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
@click.option(
    "--explain", is_flag=True, help="Instead: the arithmetic of one phase, and bars of what each width gives."
)
@click.option("--phase", metavar="NAME", help="With --explain: this phase, where the plan has more than one with GPUs.")
@click.option("--svg", metavar="FILE", help="With --explain: write the bars to this file as a picture, too.")
@AS_JSON
@SIM
def plan_verb(plan: str, explain: bool, phase: str | None, svg: str | None, as_json: bool, sim: str | None) -> int:
    """Judge a plan: verdict, what each width gives, findings, and the ladder that would be walked."""
    if (phase is not None or svg is not None) and not explain:
        raise click.UsageError("--phase and --svg go with --explain")
    if explain and as_json:
        raise click.UsageError("--explain is for people; --json has the same numbers without it")
    parsed, verdict = open_desk(sim).judged(PlanWidthInput(**plan_arguments(plan)))
    if explain:
        one, judged = explained(parsed, verdict, phase)
        if svg is not None:
            write_picture(Path(svg), width_chart(judged))
        console.out(explanation(one, judged, console.paper()))
    else:
        console.show(verdict, as_json, lambda result, paper: plan_report(result, plan, paper))
    return exit_codes.of_verdict(verdict.verdict)
