"""diff: what a change of a plan changes in its verdict."""

from __future__ import annotations

import click

from widelane.cli import console, exit_codes
from widelane.cli.given import AS_JSON, SIM, open_desk, plan_arguments
from widelane.errors import InputError
from widelane.reports.difference import difference_report
from widelane.tools.comparing import compare_plans


@click.command("diff")
@click.argument("before", metavar="A")
@click.argument("after", metavar="B")
@AS_JSON
@SIM
def diff_verb(before: str, after: str, as_json: bool, sim: str | None) -> int:
    """Say what changes from plan A to plan B.

    Width, wall clock, GPU-hours, rungs, and the most that a paid lane may be held for.
    """
    if before == after == "-":
        raise InputError("both plans can't come on stdin", hint="name a file for one of them")
    difference = compare_plans(plan_arguments(before), plan_arguments(after), open_desk(sim))
    console.show(difference, as_json, difference_report)
    return exit_codes.DONE
