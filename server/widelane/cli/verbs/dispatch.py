"""dispatch and wait: start a run, and stay with it to its end."""

from __future__ import annotations

from typing import TypedDict, Unpack

import click

from widelane.cli import console, exit_codes
from widelane.cli.given import AS_JSON, RUN, SIM, open_client, open_desk, plan_arguments
from widelane.cli.stay import Detached, stay
from widelane.models.dispatch import DispatchAnswer
from widelane.reports.findings import check_report
from widelane.reports.status import status_report, summary_report
from widelane.tools.dispatch import DispatchInput, dispatch
from widelane.tools.plan_width import PlanWidthInput, plan_width

_SAID = {
    "plan_revise": "nothing was created: the verdict is REVISE",
    "dry_run": "nothing was created: this was a dry run",
    "started": "run {run} started",
    "adopted": "run {run} does this work already",
    "already_done": "nothing was created: run {run} did all of this before (--fresh runs it again)",
}


class _Asked(TypedDict):
    phase: str
    plan_digest: str
    fresh: bool
    dry_run: bool
    detach: bool
    as_json: bool
    sim: str | None


@click.command("dispatch")
@click.argument("plan", metavar="PLAN")
@click.option("--phase", default="", metavar="NAME", help="Only this phase; its earlier ones must be done.")
@click.option("--plan-digest", default="", metavar="DIGEST", help="Refuse unless this is the plan's digest.")
@click.option("--fresh", is_flag=True, help="Run units again that have a result already.")
@click.option("--dry-run", is_flag=True, help="Judge the plan and start nothing.")
@click.option("--detach", is_flag=True, help="Return once the run is started.")
@AS_JSON
@SIM
def dispatch_verb(plan: str, **asked: Unpack[_Asked]) -> int:
    """Judge a plan, walk its ladder, run its units and let the machine go.

    On REVISE nothing is created. Ctrl-C stops watching (exit code 130); the run goes on.
    """
    desk = open_desk(asked["sim"])
    where = plan_arguments(plan)
    as_json = asked["as_json"]
    verdict = plan_width(PlanWidthInput(**where), desk)
    if not as_json:
        console.out(check_report(verdict, plan, console.paper()))
    digest = "" if asked["dry_run"] else asked["plan_digest"] or verdict.plan_digest
    answer = dispatch(DispatchInput(**where, phase=asked["phase"], plan_digest=digest, fresh=asked["fresh"]), desk)
    console.note(_said(answer))
    if answer.run_id is None or asked["detach"] or (answer.state is not None and not answer.state.live):
        if as_json:
            console.out(console.as_structured(answer))
        return exit_codes.of_answer(answer)
    try:
        status = stay(desk.runs, answer.run_id, quiet_stdout=as_json)
    except Detached:
        return exit_codes.INTERRUPTED
    if as_json:
        console.out(console.as_structured(answer.model_copy(update={"state": status.state, "phases": status.phases})))
    else:
        console.out(summary_report(status, console.paper()))
    return exit_codes.of_state(status.state)


def _said(answer: DispatchAnswer) -> str:
    return _SAID.get(answer.reason, answer.next_step or answer.reason).format(run=answer.run_id)


@click.command("wait")
@RUN
@click.option("--timeout", type=click.FloatRange(min=0), metavar="SECONDS", help="Stop waiting then, with exit code 3.")
@AS_JSON
def wait_verb(run: str, timeout: float | None, as_json: bool) -> int:
    """Stay with a run until it ends. Ctrl-C stops watching (exit code 130); the run goes on."""
    runs = open_client()
    run_id = runs.status(run).run_id
    try:
        status = stay(runs, run_id, quiet_stdout=as_json, timeout=timeout)
    except Detached:
        return exit_codes.INTERRUPTED
    console.show(status, as_json, status_report if status.state.live else summary_report)
    if status.state.live:
        console.error("timeout", f"run {run_id} still goes on after {timeout:g} s", f"widelane wait {run_id}")
        return exit_codes.UNJUDGED
    return exit_codes.of_state(status.state)
