"""reap: find machines with our label, and delete those that outlived their work."""

from __future__ import annotations

import click

from widelane.cli import console, exit_codes
from widelane.cli.given import SIM, open_desk
from widelane.dispatcher.reaping import reap_machines
from widelane.reports.reap import reap_report


@click.command("reap")
@click.argument("lanes", metavar="[LANE]...", nargs=-1)
@click.option("--yes", is_flag=True, help="Delete what is due. Without it, nothing is deleted.")
@click.option("--json", "as_json", is_flag=True, help="Print the machines as JSON, nothing else.")
@SIM
def reap_verb(lanes: tuple[str, ...], yes: bool, as_json: bool, sim: str | None) -> int:
    """List every machine with our label; with --yes, delete this home's that are finished or past their run limit.

    It looks at every configured lane, or only at LANE. A machine that a live run is at is kept, and so is one that this
    home's journal doesn't know: it may be another user's. Exit code 1 while a machine is there that should be gone, 3
    when a lane didn't answer.
    """
    desk = open_desk(sim)
    report = reap_machines(desk.rehearsed() if sim is not None else desk.settings, lanes, delete=yes)
    console.show(report, as_json, reap_report)
    return exit_codes.of_reap(report)
