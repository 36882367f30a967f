"""status, list, cancel and release: look at runs, and end them."""

from __future__ import annotations

import json

import click

from widelane.cli import console, exit_codes
from widelane.cli.given import AS_JSON, NAMED_RUN, RUN, open_client, open_desk
from widelane.models.dispatch import RunStatus
from widelane.reports.status import runs_report, status_report
from widelane.reports.timeline import timeline_report
from widelane.tools.dispatch_status import DispatchStatusInput, dispatch_status
from widelane.tools.release import ReleaseInput, release


@click.command("status")
@RUN
@click.option("--timeline", is_flag=True, help="Every event of it instead, with its time; as JSON, the events.")
@AS_JSON
def status_verb(run: str, timeline: bool, as_json: bool) -> int:
    """Where a run stands (the newest when none is named): an id, a unique prefix of one, or `last`."""
    desk = open_desk()
    status = dispatch_status(DispatchStatusInput(run_id=run), desk)
    if not timeline:
        console.show(status, as_json, status_report)
        return exit_codes.of_state(status.state)
    events = desk.runs.events(status.run_id)
    if as_json:
        told = [event.model_dump(mode="json") for event in events]
        console.out(json.dumps({"run_id": status.run_id, "state": status.state.value, "events": told}, indent=2) + "\n")
    else:
        console.out(timeline_report(status, events, console.paper()))
    return exit_codes.of_state(status.state)


@click.command("list")
@AS_JSON
def list_verb(as_json: bool) -> None:
    """Every run, newest first."""
    runs = open_client().runs()
    if as_json:
        console.out(json.dumps({"runs": [run.model_dump(mode="json") for run in runs]}, indent=2) + "\n")
    else:
        console.out(runs_report(runs, console.paper()))


@click.command("cancel")
@NAMED_RUN
@AS_JSON
def cancel_verb(run: str, as_json: bool) -> None:
    """Stop a run and let its machines go. Units that are done stay done."""
    status = open_client().cancel(run, by="the command line")
    console.show(status, as_json, status_report)
    _say_what_follows(status)


@click.command("release")
@NAMED_RUN
@AS_JSON
def release_verb(run: str, as_json: bool) -> None:
    """Let go of whatever a run still holds; a live run ends with it. Repeating it changes nothing."""
    status = release(ReleaseInput(run_id=run), open_desk())
    console.show(status, as_json, status_report)
    _say_what_follows(status)


def _say_what_follows(status: RunStatus) -> None:
    if status.state.live:
        console.note(f"asked: its machines are being let go; `widelane wait {status.run_id}` stays until they are")
