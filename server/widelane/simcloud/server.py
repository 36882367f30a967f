"""Starts the server of one scenario: reads it, takes the state folder for itself, and hosts the cloud."""

from __future__ import annotations

import asyncio
import contextlib
import secrets
import shutil
from pathlib import Path

from widelane.errors import ScenarioError
from widelane.facts.catalog import catalog, gce_errors
from widelane.simcloud.atlas import Atlas
from widelane.simcloud.client import SCENARIO_FILE, owning, scenario_digest, state_folder
from widelane.simcloud.hosting import IDLE_SECONDS, Host, Options, Ready
from widelane.simcloud.listening import Listener
from widelane.simcloud.machines import LocalMachines
from widelane.simcloud.records import Json
from widelane.simcloud.scenario_file import read
from widelane.simcloud.state import State
from widelane.simcloud.timebase import RatedTime
from widelane.simcloud.world import World


def serve(
    scenario: Path,
    home: Path,
    port: int = 0,
    *,
    ready: Ready | None = None,
    idle_seconds: float = IDLE_SECONDS,
    isolation: str = "auto",
) -> None:
    """Serve a scenario in the foreground until it is stopped (signal, POST /sim/stop) or idle; prints nothing.

    `ready` is called once it listens. Raises ScenarioError, or BusyError when it is served already.
    """
    run(scenario, state_folder(scenario, home), Options(port, idle_seconds, isolation), ready)


def run(scenario: Path, folder: Path, options: Options, ready: Ready | None = None) -> None:
    """The same on a state folder given as it is."""
    atlas, cases = Atlas(catalog()), error_cases()
    loaded = read(scenario, atlas, cases)
    (folder / "vms").mkdir(parents=True, exist_ok=True)
    with owning(folder), contextlib.closing(State(folder / "state.sqlite")) as state:
        _claim(state, folder, scenario)
        ports = Listener()
        machines = LocalMachines(folder / "vms", ports, options.isolation)
        world = World(loaded, atlas, state, RatedTime(state, loaded.rate), machines, cases)
        asyncio.run(Host(folder, world, ports).run(options, ready))


def error_cases() -> dict[str, Json]:
    """The error table by case name."""
    return {case["name"]: case for case in gce_errors()["cases"]}


def _claim(state: State, folder: Path, scenario: Path) -> None:
    """A state folder belongs to one scenario, as it was when the state was made."""
    digest = scenario_digest(scenario)
    if state.facts.get("scenario", digest) != digest:
        hint = "use another folder, or remove this one to start over"
        raise ScenarioError(f"{folder} holds the state of another scenario than {scenario}", hint=hint)
    copy = folder / SCENARIO_FILE
    if not copy.exists():
        shutil.copyfile(scenario, copy)
    state.set_fact("scenario", digest)
    state.set_fact("cloud", state.facts.get("cloud") or secrets.token_hex(8))
    state.commit()
