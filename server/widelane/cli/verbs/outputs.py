"""logs and pull: what a run wrote."""

from __future__ import annotations

import json
from pathlib import Path

import click

from widelane.cli import console
from widelane.cli.given import RUN, open_client
from widelane.dispatcher import Client
from widelane.reports.clean import clean, clean_line
from widelane.reports.logs import LogFollower

_STEP_SECONDS = 1.0


@click.command("logs")
@RUN
@click.option("--phase", metavar="NAME", help="Of this phase.")
@click.option("--unit", type=click.IntRange(min=0), metavar="N", help="Of the unit with this index; else of every one.")
@click.option("--follow", is_flag=True, help="Go on until the run ends.")
@click.option("--json", "as_json", is_flag=True, help="Print each log as JSON, as it was written.")
def logs_verb(run: str, phase: str | None, unit: int | None, follow: bool, as_json: bool) -> None:
    """Print what units wrote, made safe for a terminal."""
    if follow and as_json:
        raise click.UsageError("--follow prints lines, not JSON", click.get_current_context())
    runs = open_client()
    run_id = runs.status(run).run_id
    if as_json:
        logs = [log.model_dump(mode="json") for log in runs.logs(run_id, phase, unit)]
        console.out(json.dumps({"run_id": run_id, "logs": logs}, indent=2) + "\n")
    elif follow:
        _follow(runs, run_id, phase, unit)
    else:
        text = runs.log(run_id, phase, unit)
        console.out(clean(text))
        if not text:
            console.note(f"no logs yet: nothing of this has run in {run_id}")


def _follow(runs: Client, run_id: str, phase: str | None, unit: int | None) -> None:
    follower = LogFollower()
    while True:
        status = runs.status(run_id)
        console.out(follower.new(clean(runs.log(run_id, phase, unit))))
        if not status.state.live:
            return
        runs.wait(run_id, _STEP_SECONDS, after_seq=status.last_seq)


@click.command("pull")
@RUN
@click.option("--to", type=click.Path(file_okay=False, path_type=Path), metavar="DIR", help="Default: ./RUN.")
@click.option("--phase", metavar="NAME", help="Only this phase's outputs.")
@click.option("--json", "as_json", is_flag=True, help="Print the paths as JSON.")
def pull_verb(run: str, to: Path | None, phase: str | None, as_json: bool) -> None:
    """Copy a run's outputs here; prints each file's path."""
    runs = open_client()
    run_id = runs.status(run).run_id
    files = [str(path) for path in runs.pull(run_id, to or Path(run_id), phase)]
    if as_json:
        console.out(json.dumps({"run_id": run_id, "files": files}, indent=2) + "\n")
    else:
        console.out("".join(f"{clean_line(file)}\n" for file in files))
    if not files:
        console.note(f"nothing to pull: no unit of this has a result yet in {run_id}")
