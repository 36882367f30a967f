"""What several verbs take, and the desk that they all stand at."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from widelane import config, facts
from widelane.errors import InputError
from widelane.tools.desk import Desk

if TYPE_CHECKING:
    from widelane.dispatcher import Client

_LARGEST_PLAN = 32 * 1024 * 1024
"""Bytes; a longer text is no plan, as in the room that reads plans."""

AS_JSON = click.option("--json", "as_json", is_flag=True, help="Print the tool's structured content, nothing else.")
SIM = click.option(
    "--sim",
    metavar="SCENARIO|URL",
    help="Use a simulated cloud, no real lane: a scenario file (started when needed), or the URL of one that runs.",
)


def _named(_context: click.Context, _parameter: click.Parameter, run: str) -> str:
    if not run.strip():
        raise InputError("the run's name is empty", hint="give an id, a unique beginning of one, or `last`")
    return run.strip()


RUN = click.argument("run", metavar="[RUN]", default="last", callback=_named)
"""A run that is looked at; the newest unless it is named."""
NAMED_RUN = click.argument("run", metavar="RUN", callback=_named)
"""A run that is changed."""


def open_desk(sim: str | None = None) -> Desk:
    """The desk of this working folder and environment. Creates nothing.

    Raises:
        ScenarioError: `sim` is a scenario file that can't be used.
    """
    if sim is not None and "://" not in sim:
        _check_scenario(Path(sim).expanduser())
    return Desk.open(Path.cwd(), os.environ, sim)


def _check_scenario(path: Path) -> None:
    from widelane.simcloud import scenario_file  # noqa: PLC0415 - for rehearsals only
    from widelane.simcloud.atlas import Atlas  # noqa: PLC0415 - as above

    cases = {case["name"]: case for case in facts.gce_errors()["cases"]}
    scenario_file.read(path, Atlas(facts.catalog()), cases)


def open_client() -> Client:
    """The dispatcher's client, for what no tool does."""
    from widelane.dispatcher import Client  # noqa: PLC0415 - `serve` starts without it

    return Client(config.load(Path.cwd(), os.environ))


def plan_arguments(plan: str) -> dict[str, str]:
    """A plan argument as the tools take it: a path, or `-` for text on stdin."""
    if plan != "-":
        return {"plan_path": plan}
    data = sys.stdin.buffer.read(_LARGEST_PLAN + 1)
    if len(data) > _LARGEST_PLAN:
        raise InputError(f"stdin has more than {_LARGEST_PLAN // 2**20} MiB, which no plan has", hint="give a plan")
    try:
        return {"plan": data.decode("utf-8")}
    except UnicodeDecodeError as error:
        raise InputError("the plan on stdin isn't UTF-8 text", hint="give YAML or Markdown") from error
