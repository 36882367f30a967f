"""sim: simulated clouds by themselves."""

from __future__ import annotations

import math
import os
from pathlib import Path

import click

from widelane import config
from widelane.cli import console, exit_codes
from widelane.errors import NotFoundError
from widelane.simcloud import client

_HOME = click.option(
    "--home", type=click.Path(file_okay=False, path_type=Path), metavar="DIR", help="Default: the home of runs."
)
_SCENARIO = click.Path(dir_okay=False, path_type=Path)


@click.group("sim")
def sim_verb() -> None:
    """A simulated Compute Engine, for any client that speaks its REST API."""


@sim_verb.command("serve")
@click.argument("scenario", type=_SCENARIO, metavar="SCENARIO")
@click.option("--port", type=click.IntRange(0, 65535), default=0, metavar="N", help="Default: any that is free.")
@_HOME
def serve(scenario: Path, port: int, home: Path | None) -> None:
    """Serve a scenario until Ctrl-C or `widelane sim stop`. State is kept, by the scenario's content."""
    from widelane.simcloud import server  # noqa: PLC0415 - `stop` needs no server

    def ready(endpoint: client.SimEndpoint) -> None:
        console.out(f"{endpoint.url}  project {endpoint.project}, {endpoint.clock_rate:g} simulated seconds a second\n")

    folder = home or _default_home()
    config.make_home(folder)
    server.serve(scenario, folder, port, ready=ready, idle_seconds=math.inf)


@sim_verb.command("stop")
@click.argument("scenario", type=_SCENARIO, metavar="[SCENARIO]", required=False)
@_HOME
def stop(scenario: Path | None, home: Path | None) -> int:
    """End the simulated cloud of a scenario, or every one of the home, with the machines in it."""
    root = home or _default_home()
    folders = [client.state_folder(scenario, root)] if scenario is not None else sorted((root / "simcloud").glob("*"))
    found = [endpoint for folder in folders if (endpoint := client.running(folder)) is not None]
    if not found:
        raise NotFoundError("no simulated cloud runs", hint="`widelane sim serve SCENARIO` starts one")
    ended = [client.stop(endpoint) for endpoint in found]
    for endpoint, gone in zip(found, ended, strict=True):
        console.out(f"{endpoint.url}  {'ended' if gone else 'still ending'}\n")
    return exit_codes.DONE if all(ended) else exit_codes.UNJUDGED


def _default_home() -> Path:
    return config.load(Path.cwd(), os.environ).home
