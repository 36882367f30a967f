"""doctor: whether everything that a dispatch needs is there, and what to fix."""

from __future__ import annotations

import os
from pathlib import Path

import click

from widelane.cli import console, exit_codes
from widelane.dispatcher.doctor import examine_setup
from widelane.models.checkup import CheckStatus
from widelane.reports.checkup import checkup_report


@click.command("doctor")
@click.argument("lanes", metavar="[LANE]...", nargs=-1)
@click.option("--json", "as_json", is_flag=True, help="Print the checks as JSON, nothing else.")
def doctor_verb(lanes: tuple[str, ...], as_json: bool) -> int:
    """Look at credentials, quotas, images, networks, hosts, clocks, store and home, and say what to fix.

    It looks at every configured lane, or only at LANE (`gcp`, `slurm`, `ssh.box`). Nothing is changed, here or at any
    service: it only reads. Exit code 1 when a check failed; a warning is none.
    """
    report = examine_setup(Path.cwd(), os.environ, lanes)
    console.show(report, as_json, checkup_report)
    return exit_codes.REFUSED if report.status is CheckStatus.FAIL else exit_codes.DONE
